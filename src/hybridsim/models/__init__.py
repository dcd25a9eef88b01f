"""Built-in mechanisms, by name; each is one function that returns a Model."""

from collections.abc import Callable

from hybridsim.model.model import Model
from hybridsim.models.arm import arm_from_dh, planar_arm
from hybridsim.models.cartpole import cartpole, double_cartpole
from hybridsim.models.free import ball, cube
from hybridsim.models.pendulum import acrobot, double_pendulum, n_link_pendulum, pendulum
from hybridsim.models.pusher import pusher
from hybridsim.models.quadruped import quadruped
from hybridsim.models.swimmer import swimmer

BUILT_IN: dict[str, Callable[[], Model]] = {
    "acrobot": acrobot,
    "arm": planar_arm,
    "ball": ball,
    "cartpole": cartpole,
    "cube": cube,
    "double_cartpole": double_cartpole,
    "double_pendulum": double_pendulum,
    "pendulum": pendulum,
    "pendulum5": lambda: n_link_pendulum(5),
    "pusher": pusher,
    "quadruped": quadruped,
    "swimmer": swimmer,
}
"""Mechanisms that the command line knows by name."""

__all__ = [
    "BUILT_IN",
    "acrobot",
    "arm_from_dh",
    "ball",
    "cartpole",
    "cube",
    "double_cartpole",
    "double_pendulum",
    "n_link_pendulum",
    "pendulum",
    "planar_arm",
    "pusher",
    "quadruped",
    "swimmer",
]
