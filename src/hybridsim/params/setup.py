"""Setup: everything that a parameter may live in, a simulator and the sensors that look at it."""

import equinox as eqx

from hybridsim.sim.sensors import Sensors
from hybridsim.sim.simulator import Simulator


class Setup(eqx.Module):
    """A simulated experiment, as plain physical numbers."""

    sim: Simulator
    sensors: Sensors
