"""Setup: everything that holds parameters, i.e. a simulator and the sensors that observe it."""

import equinox as eqx

from hybridsim.sim.sensors import Sensors
from hybridsim.sim.simulator import Simulator


class Setup(eqx.Module):
    """A simulated experiment with all parameters as physical values."""

    sim: Simulator
    sensors: Sensors
