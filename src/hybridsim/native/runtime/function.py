"""A function of arrays as machine code: the simplest use of native kernels."""

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
            function: of trees of arrays.
            arguments: examples; only shapes and types count.
            key: identifies the function on disk; without a key nothing is kept there.
            target: processor to generate code for; the one that this runs on by default.
        """

        def step(fixed, free, carry, inputs):
            return carry, function(*inputs)

        self.rollout = Rollout(step, None, None, None, arguments, key=key, target=target)

    def __call__(self, *arguments: Any, batched: bool = False, threads: int = 1) -> Any:
        """The function's results as NumPy arrays.

        Args:
            arguments: arrays of the compiled shapes.
            batched: do the arrays have a leading axis, of trajectories, samples or whatever is computed side by side?
            threads: how many to use.
        """
        forms = self.rollout.forms
        with jax.enable_x64(True):
            leaves = jax.tree.leaves(arguments)
            if batched and not leaves:
                raise ValueError("a function without arrays has no batch")
            batch = np.shape(leaves[0])[0] if batched else 1
            rows = forms.inputs.pack(arguments, (batch,) if batched else ()).reshape(batch, 1, -1)
            nothing = np.zeros(0)
            result = self.rollout.forward(nothing, nothing, np.zeros((batch, 0)), rows, threads=threads)
            outputs = result.outputs[:, 0]
            return forms.outputs.unpack(outputs if batched else outputs[0])
