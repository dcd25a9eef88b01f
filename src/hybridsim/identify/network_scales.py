"""Scales of network inputs and outputs in the recordings, for normalization.

They are statistics over states estimated from the measurements (the initial guesses of many windows); all other
quantities are computed from these states by the model with its current networks.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Float

from hybridsim.core.errors import TapError
from hybridsim.identify.problem import FitProblem
from hybridsim.identify.stage import Stage
from hybridsim.networks.mlp import MLP
from hybridsim.sim.state import State
from hybridsim.sim.step import observe
from hybridsim.taps.address import Selection
from hybridsim.taps.blueprint import BoundGraft

Array = np.ndarray
MAX_STATES = 256
"""Maximum number of states, of all runs together."""
MIN_VARIATION = 1e-3
"""Standard deviation, relative to max(|mean|, 1), below which a signal counts as constant."""


class SignalScales(NamedTuple):
    """Scales of the inputs and outputs of a network, in their order."""

    mean: Float[Array, " inputs"]
    std: Float[Array, " inputs"]
    """Standard deviation; max(|mean|, 1) for constant signals."""
    output: Float[Array, " outputs"]
    """Root mean square of the quantity that the network acts on; one if that is always zero."""


def signal_scales(problem: FitProblem) -> tuple[SignalScales, ...]:
    """Scales of the inputs and outputs of every graft in the training runs."""
    sim = problem.setup.sim
    dt, grafts = float(sim.dt), sim.bound_blueprint().grafts
    lag = max((selection.lag for graft in grafts for selection in graft.inputs), default=0)
    objective, guess = problem.objective(Stage(window=(10 + lag) * dt, stride=10 * dt))
    windows = objective.windows
    selected_windows = np.unique(np.linspace(0, windows.count - 1, min(windows.count, MAX_STATES)).round().astype(int))
    inputs = jax.tree.map(lambda x: np.asarray(x)[selected_windows, 0], windows.inputs)

    def observe_at(q, qd, t, inputs):
        state = sim.initial_state(q, qd)
        return observe(sim, State(state.q, state.qd, t, state.aux), inputs)

    with jax.enable_x64(True):
        arrays = jax.jit(jax.vmap(observe_at))(
            guess.q[selected_windows], guess.qd[selected_windows], windows.start[selected_windows], inputs
        )
        values = {name: np.asarray(array) for name, array in arrays.items()}
    return tuple(_scales(graft, values) for graft in grafts)


def scale_to_data(
    problem: FitProblem, *, inputs: Collection[int] | None = None, outputs: Collection[int] = ()
) -> FitProblem:
    """Normalize the networks of a problem to the scales of its recordings.

    Args:
        problem: problem before a fit.
        inputs: indices of the grafts whose inputs are shifted and scaled, all by default; user-defined networks need a
            method `normalize_inputs(mean, std)` like those of hybridsim.
        outputs: indices of the grafts whose outputs are multiplied by the root mean square of the quantity they act on.

    Raises:
        TapError: a network in `outputs` is no MLP.
    """
    grafts = problem.setup.sim.blueprint.grafts
    selected = range(len(grafts)) if inputs is None else inputs
    nets: list[Any] = []
    for index, (graft, scales) in enumerate(zip(grafts, signal_scales(problem), strict=True)):
        net: Any = graft.net
        if index in selected and hasattr(net, "normalize_inputs"):
            net = net.normalize_inputs(scales.mean, scales.std)
        if index in outputs:
            if not isinstance(net, MLP):
                name = ", ".join(graft.outputs)
                message = f"normalize of the graft on {name} contains outputs, but {type(net).__name__} is no MLP"
                raise TapError(f"{message}; remove outputs from normalize")
            net = eqx.tree_at(lambda n: n.output_scale, net, scales.output)
        nets.append(net)
    setup = eqx.tree_at(lambda s: [graft.net for graft in s.sim.blueprint.grafts], problem.setup, nets)
    return replace(problem, setup=setup)


def _scales(graft: BoundGraft, values: dict[str, Array]) -> SignalScales:
    inputs = [_signals(selection, values, pooled=graft.is_per_row(selection)) for selection in graft.inputs]
    outputs = [_signals(selection, values, pooled=graft.per == "element") for selection in graft.outputs]
    mean = np.array([x.mean() for signals in inputs for x in signals])
    std = np.array([x.std() for signals in inputs for x in signals])
    output = np.array([np.sqrt(np.square(x).mean()) for signals in outputs for x in signals])
    if graft.mode == "scale":
        output = np.ones_like(output)  # a factor is dimensionless
    # a signal that is constant in the recordings may vary elsewhere
    is_constant = std <= MIN_VARIATION * np.maximum(np.abs(mean), 1.0)
    return SignalScales(
        mean, np.where(is_constant, np.maximum(np.abs(mean), 1.0), std), np.where(output > 0, output, 1.0)
    )


def _signals(selection: Selection, values: dict[str, Array], *, pooled: bool) -> list[Array]:
    """Values of each selected signal over all states; with one network per row, pooled over rows.

    Quantities that are not available before a step get values of unit scale.
    """
    width, count = max(len(selection.quantity.components), 1), len(selection.rows) * selection.scalars_per_row
    array = values.get(selection.quantity.name)
    if array is None or array[0].size != selection.total_rows * width:
        # not computed by `observe`, or a delta of the configuration, which has nv entries instead of nq
        return [np.array([-1.0, 1.0])] * (selection.scalars_per_row if pooled else count)
    array = array.reshape(len(array), selection.total_rows, width)[:, list(selection.rows)]
    array = array[:, :, list(selection.components)] if selection.components else array
    if pooled:
        return list(array.reshape(-1, array.shape[2]).T)
    return list(array.reshape(len(array), -1).T)
