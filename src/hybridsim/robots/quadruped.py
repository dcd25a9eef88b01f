"""Quadruped with the masses, inertias and dimensions of the Unitree A1, from the manufacturer's robot description."""

import numpy as np

from hybridsim.model.builder import ModelBuilder
from hybridsim.model.inertial import inertia_matrix
from hybridsim.model.model import Model

STANDING = (0.0, 0.8, -1.6)
"""Hip, thigh and calf angles of the home configuration [rad]."""

LEGS = {"FR": (1.0, -1.0), "FL": (1.0, 1.0), "RR": (-1.0, -1.0), "RL": (-1.0, 1.0)}
"""Legs, with the signs of their x and y positions."""

ROBOT_GROUP, GROUND_GROUP = 1, 2
"""Collision groups. The robot collides with the ground only; self-collisions would add hundreds of contacts."""


def quadruped() -> Model:
    """Trunk and four legs with three joints each: 13 bodies, 18 degrees of freedom, 12 actuators.

    The feet are the frames `FR_foot`, `FL_foot`, `RR_foot`, `RL_foot`. There are no self-collisions.
    """
    robot = ModelBuilder("quadruped")
    robot.add_body(
        "trunk",
        joint="root",
        kind="free",
        mass=4.713,
        com=(0.012731, 0.002186, 0.000515),
        inertia=(0.01683993, 0.056579028, 0.064713601, 8.3902e-05, 0.000597679, 2.5134e-05),
        home=(0.0, 0.0, 0.3, 1.0, 0.0, 0.0, 0.0),
    )
    robot.add_geom("trunk", "box", (0.1335, 0.097, 0.057), group=ROBOT_GROUP, mask=GROUND_GROUP)
    for leg, (sign_x, sign_y) in LEGS.items():
        _add_leg(robot, leg, sign_x, sign_y)
    robot.add_geom("world", "plane", (), name="ground", friction=1.0, group=GROUND_GROUP, mask=ROBOT_GROUP)
    return robot.build()


def _add_leg(robot: ModelBuilder, leg: str, sign_x: float, sign_y: float) -> None:
    robot.add_body(
        f"{leg}_hip",
        parent="trunk",
        joint=f"{leg}_hip_joint",
        at=(0.183 * sign_x, 0.047 * sign_y, 0.0),
        axis=(1.0, 0.0, 0.0),
        mass=0.696,
        com=(-0.003311 * sign_x, 0.000635 * sign_y, 3.1e-05),
        inertia=_mirror((0.000469246, 0.00080749, 0.000552929, -9.409e-06, -3.42e-07, -4.66e-07), sign_x, sign_y),
        lower=-0.802851455917,
        upper=0.802851455917,
        effort_limit=20.0,
        home=STANDING[0],
    )
    robot.add_geom(
        f"{leg}_hip", "cylinder", (0.046, 0.02), rpy=(0.5 * np.pi, 0.0, 0.0), group=ROBOT_GROUP, mask=GROUND_GROUP
    )
    robot.add_body(
        f"{leg}_thigh",
        parent=f"{leg}_hip",
        joint=f"{leg}_thigh_joint",
        at=(0.0, 0.08505 * sign_y, 0.0),
        axis=(0.0, 1.0, 0.0),
        mass=1.013,
        com=(-0.003237, -0.022327 * sign_y, -0.027326),
        inertia=_mirror((0.005529065, 0.005139339, 0.001367788, 4.825e-06, 0.000343869, 2.2448e-05), 1.0, sign_y),
        lower=-1.0471975512,
        upper=4.18879020479,
        effort_limit=55.0,
        home=STANDING[1],
    )
    robot.add_geom(
        f"{leg}_thigh", "box", (0.017, 0.01225, 0.1), at=(0.0, 0.0, -0.1), group=ROBOT_GROUP, mask=GROUND_GROUP
    )
    robot.add_body(
        f"{leg}_calf",
        parent=f"{leg}_thigh",
        joint=f"{leg}_calf_joint",
        at=(0.0, 0.0, -0.2),
        axis=(0.0, 1.0, 0.0),
        mass=0.166,
        com=(0.006435, 0.0, -0.107388),
        inertia=(0.002997972, 0.003014022, 3.2426e-05, 0.0, -0.000141163, 0.0),
        lower=-2.69653369433,
        upper=-0.916297857297,
        effort_limit=55.0,
        home=STANDING[2],
    )
    robot.add_geom(f"{leg}_calf", "box", (0.008, 0.008, 0.1), at=(0.0, 0.0, -0.1), group=ROBOT_GROUP, mask=GROUND_GROUP)
    robot.add_body(
        f"{leg}_foot",
        parent=f"{leg}_calf",
        kind="fixed",
        at=(0.0, 0.0, -0.2),
        mass=0.06,
        inertia=(9.6e-06, 9.6e-06, 9.6e-06),
    )
    robot.add_geom(f"{leg}_foot", "sphere", (0.02,), friction=0.8, group=ROBOT_GROUP, mask=GROUND_GROUP)


def _mirror(entries, sign_x: float, sign_y: float) -> np.ndarray:
    """Inertia of a link mirrored in x and y: products of inertia change sign with the axes they involve."""
    signs = np.diag([sign_x, sign_y, 1.0])
    return signs @ inertia_matrix(entries) @ signs
