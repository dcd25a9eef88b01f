"""Native compilation of a function of arrays."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from hybridsim.native.llvm import machine
from hybridsim.native.runtime.rollout import Rollout


class NativeFunction:
    """A compiled function of arrays, for one set of arguments or a batch of them."""

    def __init__(
        self, function: Callable, *arguments: Any, key: str | None = None, target: machine.CpuTarget | None = None
    ):
        """Prepare a function; code is generated at the first call.

        Args:
            function: function of pytrees of arrays.
            arguments: example arguments; only shapes and types matter.
            key: identifier of the function in the kernel cache; without a key it is not cached.
            target: processor to generate code for; the host by default.
        """

        def step(fixed, free, carry, inputs):
            return carry, function(*inputs)

        self.rollout = Rollout(step, None, None, None, arguments, key=key, target=target)

    def __call__(self, *arguments: Any, batched: bool = False, threads: int = 1) -> Any:
        """Results of the function as NumPy arrays.

        Args:
            arguments: arrays of the compiled shapes.
            batched: whether the arrays have a leading batch axis.
            threads: number of threads.
        """
        layouts = self.rollout.layouts
        with jax.enable_x64(True):
            leaves = jax.tree.leaves(arguments)
            if batched and not leaves:
                raise ValueError("batched=True needs at least one array argument")
            batch = np.shape(leaves[0])[0] if batched else 1
            rows = layouts.inputs.pack(arguments, (batch,) if batched else ()).reshape(batch, 1, -1)
            empty = np.zeros(0)
            result = self.rollout.forward(empty, empty, np.zeros((batch, 0)), rows, threads=threads)
            outputs = result.outputs[:, 0]
            return layouts.outputs.unpack(outputs if batched else outputs[0])
