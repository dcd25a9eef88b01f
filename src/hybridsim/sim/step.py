"""One step of the simulation."""

from hybridsim.core.types import ArrayLike, require_float64
from hybridsim.model.coordinates import require_size
from hybridsim.sim.forward import forward
from hybridsim.sim.integrate import next_state
from hybridsim.sim.simulator import Simulator
from hybridsim.sim.state import Inputs, State, as_inputs


def step(sim: Simulator, state: State, inputs: Inputs | ArrayLike | None = None) -> State:
    """The state one time step later.

    Args:
        sim: the simulator.
        state: where to start.
        inputs: commands, or commands with external wrenches and user inputs; zero commands by default.
    """
    require_float64()
    return next_state(sim, state, _checked(sim, inputs))


def observe(sim: Simulator, state: State, inputs: Inputs | ArrayLike | None = None) -> dict:
    """Every tapped quantity of one evaluation of the dynamics, by its name in the catalogue."""
    require_float64()
    taps = sim.open_taps(state, record=True)
    forward(sim, state, _checked(sim, inputs), taps)
    return taps.record()


def _checked(sim: Simulator, inputs: Inputs | ArrayLike | None) -> Inputs:
    """Inputs of the right shapes; commands for one actuator must not drive them all."""
    model, given = sim.model, as_inputs(inputs, sim.model.nu)
    require_size(model, "the command", given.u, size=model.nu, names=model.actuator.names)
    if given.wrench is not None and given.wrench.shape != (model.nb, 6):
        raise ValueError(f"wrenches have shape {given.wrench.shape}, but model {model.name!r} wants ({model.nb}, 6)")
    return given
