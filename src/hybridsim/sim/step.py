"""One step of the simulation."""

from hybridsim.core.types import AnyArray, require_float64
from hybridsim.sim.forward import forward
from hybridsim.sim.integrate import next_state
from hybridsim.sim.simulator import Simulator
from hybridsim.sim.state import Inputs, State, as_inputs


def step(sim: Simulator, state: State, inputs: Inputs | AnyArray | None = None) -> State:
    """The state one time step later.

    Args:
        sim: the simulator.
        state: where to start.
        inputs: commands, or commands with external wrenches and user inputs; zero commands by default.
    """
    require_float64()
    return next_state(sim, state, as_inputs(inputs, sim.model.nu))


def observe(sim: Simulator, state: State, inputs: Inputs | AnyArray | None = None) -> dict:
    """Every tapped quantity of one evaluation of the dynamics, by its name in the catalogue."""
    require_float64()
    taps = sim.open_taps(record=True)
    forward(sim, state, as_inputs(inputs, sim.model.nu), taps)
    return taps.record()
