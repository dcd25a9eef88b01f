"""Built-in models by the names that the command line and project files use."""

from collections.abc import Callable

from hybridsim.model.model import Model
from hybridsim.robots.arm import four_joint_arm
from hybridsim.robots.cartpole import cartpole, double_cartpole
from hybridsim.robots.free import ball, cube
from hybridsim.robots.pendulum import acrobot, double_pendulum, n_link_pendulum, pendulum
from hybridsim.robots.pusher import pusher
from hybridsim.robots.quadruped import quadruped
from hybridsim.robots.swimmer import swimmer

BUILT_IN: dict[str, Callable[[], Model]] = {
    "acrobot": acrobot,
    "arm": four_joint_arm,
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
"""Built-in models by name."""
