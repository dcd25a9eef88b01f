"""One time step of a simulation, and the quantities it computes."""

from hybridsim.core.types import ArrayLike, require_float64
from hybridsim.model.coordinates import require_size
from hybridsim.sim.forward import forward
from hybridsim.sim.integrate import next_state
from hybridsim.sim.simulator import Simulator
from hybridsim.sim.state import Inputs, State, as_inputs


def step(sim: Simulator, state: State, inputs: Inputs | ArrayLike | None = None) -> State:
    """State one time step later.

    Args:
        sim: the simulator.
        state: current state.
        inputs: commands, or commands with external wrenches and user inputs; zero commands by default.
    """
    require_float64()
    return next_state(sim, state, _validate_inputs(sim, inputs))


def observe(sim: Simulator, state: State, inputs: Inputs | ArrayLike | None = None) -> dict:
    """All tapped quantities of one evaluation of the dynamics, by their names in the catalogue."""
    require_float64()
    taps = sim.open_taps(state, record=True)
    forward(sim, state, _validate_inputs(sim, inputs), taps)
    return taps.published_values()


def _validate_inputs(sim: Simulator, inputs: Inputs | ArrayLike | None) -> Inputs:
    """Convert commands to `Inputs` and check shapes, so that the command of one actuator is not broadcast to all."""
    model, inputs = sim.model, as_inputs(inputs, sim.model.nu)
    require_size(model, "the command", inputs.u, size=model.nu, names=model.actuator.names)
    if inputs.wrench is not None and inputs.wrench.shape != (model.nb, 6):
        raise ValueError(f"wrenches have shape {inputs.wrench.shape}, but model {model.name!r} expects ({model.nb}, 6)")
    return inputs
