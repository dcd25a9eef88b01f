"""Workloads of the contact benchmark: mechanisms in contact with the ground."""

from dataclasses import replace

import numpy as np
from scipy.spatial.transform import Rotation

from benchmarks.workloads import W2, W3, Body, Shape, Workload

NO_PARAMETERS = np.zeros(0)
BATCHES = (1, 64, 1024)
ONE_ITERATION = 'iterations="1" ls_iterations="4"'
"""One iteration of MuJoCo's solver; with more, MJX has no reverse-mode derivative."""
TESTED_SWEEPS = 2
"""Sweeps of projected Gauss–Seidel with which the tests of a stack of boxes and a standing quadruped pass."""
MAX_PENETRATION = 0.02
"""Largest penetration allowed at the end of a rollout [m]."""


def _balls_on_links(p) -> list[Body]:
    return [replace(b, shapes=(Shape("sphere", (0.15,), b.centre),)) for b in W2.bodies(p)]


FIVE_LINKS = replace(
    W2, name="five links", title="five-link pendulum on the ground", bodies=_balls_on_links, friction=0.5
)

_HALF = 0.05
_CUBE = Body(
    "cube",
    -1,
    "free",
    (0, 0, 0),
    1.0,
    (0, 0, 0),
    (1.0 * _HALF**2 * 2 / 3,) * 3,
    (Shape("box", (_HALF,) * 3, (0, 0, 0)),),
)
CUBE = Workload(
    "cube",
    "cube that falls on an edge and comes to rest",
    lambda p: [_CUBE],
    NO_PARAMETERS,
    "",
    q0=np.array([0.0, 0.0, 0.1, *Rotation.from_euler("xyz", [0.4, 0.3, 0.0]).as_quat(scalar_first=True)]),
    dt=0.001,
    steps=500,
    friction=0.5,
)


def _with_feet(bodies: list[Body]) -> list[Body]:
    foot = (Shape("sphere", (0.02,), (0.14, 0.0, -0.14)),)
    return [replace(b, shapes=foot) if b.name.endswith("calf") else b for b in bodies]


def _with_balls(bodies: list[Body]) -> list[Body]:
    return [replace(b, shapes=(*b.shapes, Shape("sphere", (0.03,), (0.0, 0.0, 0.0)))) for b in bodies]


_STANDING = np.array([0.0, 0.0, 0.3, 1.0, 0.0, 0.0, 0.0, *(12 * [0.0])])
"""Configuration with the feet on the ground, without penetration."""

QUADRUPED = replace(
    W3,
    name="quadruped 4",
    title="quadruped on four feet",
    bodies=lambda p: _with_feet(W3.nominal_bodies()),
    parameters=NO_PARAMETERS,
    parameter_names="",
    q0=_STANDING,
    friction=0.7,
)
QUADRUPED_17 = replace(
    QUADRUPED,
    name="quadruped 17",
    title="quadruped with 17 contacts",
    bodies=lambda p: _with_balls(_with_feet(W3.nominal_bodies())),
)
WORKLOADS = {w.name: w for w in (FIVE_LINKS, CUBE, QUADRUPED, QUADRUPED_17)}


def steps_of(w: Workload, batch: int) -> int:
    """Steps per trajectory of a batch; the time per step is the same with more."""
    return w.steps if batch == 1 else min(w.steps, 50 if w.is_free and w.nv > 6 else 500)


def gradient_variables(w: Workload) -> str:
    """Names of the variables of gradients."""
    return w.parameter_names or "initial state and torques"


def penetration(w: Workload, q: np.ndarray) -> float:
    """Depth of the lowest point of all shapes below the ground [m]."""
    poses, lowest, k = [], np.inf, 0
    for b in w.nominal_bodies():
        R, p = poses[b.parent] if b.parent >= 0 else (np.eye(3), np.zeros(3))
        p = p + R @ np.asarray(b.position, float)
        if b.joint == "free":
            p, R = np.array(q[:3]), Rotation.from_quat(q[3:7], scalar_first=True).as_matrix()
            k = 7
        else:
            R = R @ Rotation.from_euler(b.joint, q[k]).as_matrix()
            k += 1
        poses.append((R, p))
        for shape in b.shapes:
            extent = shape.size[0] if shape.kind == "sphere" else np.abs(R[2]) @ np.asarray(shape.size)
            lowest = min(lowest, p[2] + R[2] @ np.asarray(shape.position, float) - extent)
    return -lowest


def check_final_state(w: Workload, q: np.ndarray) -> str:
    """Check the final state of a rollout and describe it.

    Raises:
        ValueError: the state is not finite or below the ground.
    """
    if not np.isfinite(q).all():
        raise ValueError(f"{w.title}: the rollout is not finite")
    depth = penetration(w, np.asarray(q, float))
    if not depth <= MAX_PENETRATION:
        raise ValueError(f"{w.title}: ended {1e3 * depth:.1f} mm below the ground")
    return f"ended {1e3 * max(depth, 0.0):.2f} mm below the ground"
