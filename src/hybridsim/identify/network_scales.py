"""How large the inputs of networks are in the recordings, so that a network sees numbers of about one.

States are those that the recordings tell at many times, as far as channels measure them; all else follows from the
model with networks as they are.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Float

from hybridsim.identify.problem import FitProblem, Stage
from hybridsim.networks.mlp import MLP
from hybridsim.sim.state import State
from hybridsim.sim.step import observe
from hybridsim.taps.address import Selection
from hybridsim.taps.blueprint import BoundGraft

Array = np.ndarray
STATES = 256
"""At most, of all runs together."""
STEADY = 1e-3
"""Standard deviation, by the size or by one, up to which something hardly changes."""


class SignalScales(NamedTuple):
    """Of what a network reads and changes, in the order of its numbers."""

    mean: Float[Array, " inputs"]
    deviation: Float[Array, " inputs"]
    """Standard deviation; for what hardly changes, its size, or one if that is larger."""
    output: Float[Array, " outputs"]
    """Root mean square of the quantity that is changed; one where that is always zero."""


def signal_scales(problem: FitProblem) -> tuple[SignalScales, ...]:
    """What the recordings for training say of the inputs and outputs of every graft."""
    sim = problem.setup.sim
    dt, grafts = float(sim.dt), sim.bound_blueprint().grafts
    back = max((read.past for graft in grafts for read in graft.inputs), default=0)
    objective, guess = problem.objective(Stage(window=(10 + back) * dt, stride=10 * dt))
    windows = objective.windows
    which = np.unique(np.linspace(0, windows.count - 1, min(windows.count, STATES)).round().astype(int))
    inputs = jax.tree.map(lambda x: np.asarray(x)[which, 0], windows.inputs)

    def seen(q, qd, t, given):
        blank = sim.initial_state(q, qd)
        return observe(sim, State(blank.q, blank.qd, t, blank.aux), given)

    with jax.enable_x64(True):
        found = jax.jit(jax.vmap(seen))(guess.q[which], guess.qd[which], windows.start[which], inputs)
        values = {name: np.asarray(array) for name, array in found.items()}
    return tuple(_sizes(graft, values) for graft in grafts)


def scale_to_data(
    problem: FitProblem, *, inputs: Collection[int] | None = None, outputs: Collection[int] = ()
) -> FitProblem:
    """The same problem with networks whose scales are taken from its recordings.

    Args:
        problem: with networks as they are before a fit.
        inputs: numbers of the grafts whose inputs are shifted and scaled, of all by default; those of a user's own kind
            need a method `normalised(mean, deviation)`, as the networks of hybridsim have it.
        outputs: numbers of the grafts, perceptrons all, whose outputs are multiplied by the usual size of what they
            change.
    """
    grafts = problem.setup.sim.blueprint.grafts
    chosen = range(len(grafts)) if inputs is None else inputs
    nets: list[Any] = []
    for number, (graft, sizes) in enumerate(zip(grafts, signal_scales(problem), strict=True)):
        net: Any = graft.net
        if number in chosen and hasattr(net, "normalised"):
            net = net.normalised(sizes.mean, sizes.deviation)
        if number in outputs and isinstance(net, MLP):
            net = eqx.tree_at(lambda n: n.output_scale, net, sizes.output)
        nets.append(net)
    setup = eqx.tree_at(lambda s: [graft.net for graft in s.sim.blueprint.grafts], problem.setup, nets)
    return replace(problem, setup=setup)


def _sizes(graft: BoundGraft, values: dict[str, Array]) -> SignalScales:
    reads = [_numbers(read, values, together=graft.is_per_row(read)) for read in graft.inputs]
    changes = [_numbers(out, values, together=graft.per == "element") for out in graft.outputs]
    mean = np.array([x.mean() for some in reads for x in some])
    deviation = np.array([x.std() for some in reads for x in some])
    output = np.array([np.sqrt(np.square(x).mean()) for some in changes for x in some])
    if graft.mode == "scale":
        output = np.ones_like(output)  # a factor has no unit
    # what hardly changes in the recordings may do so elsewhere
    steady = deviation <= STEADY * np.maximum(np.abs(mean), 1.0)
    return SignalScales(
        mean, np.where(steady, np.maximum(np.abs(mean), 1.0), deviation), np.where(output > 0, output, 1.0)
    )


def _numbers(selection: Selection, values: dict[str, Array], *, together: bool) -> list[Array]:
    """All values of each number that is selected, over states; those of all rows together for one network per row.

    Of what is not known before a step is made, numbers of the size of one.
    """
    width, count = max(len(selection.quantity.components), 1), len(selection.rows) * selection.per_row
    array = values.get(selection.quantity.name)
    if array is None or array[0].size != selection.total_rows * width:
        # what no evaluation of the dynamics knows, and configurations that are changed along degrees of freedom
        return [np.array([-1.0, 1.0])] * (selection.per_row if together else count)
    array = array.reshape(len(array), selection.total_rows, width)[:, list(selection.rows)]
    array = array[:, :, list(selection.components)] if selection.components else array
    if together:
        return list(array.reshape(-1, array.shape[2]).T)
    return list(array.reshape(len(array), -1).T)
