"""Bodies on planes, for tests of contact."""

import numpy as np
from scipy.spatial.transform import Rotation

from hybridsim.model.builder import ModelBuilder
from hybridsim.model.inertial import solid_box, solid_capsule, solid_ellipsoid
from hybridsim.model.model import Model

GRAVITY = 9.81


def inertia_of(shape: str, size, mass: float) -> np.ndarray:
    """Of an evenly filled shape about its centre [kg·m²]."""
    if shape == "box":
        return solid_box(mass, tuple(size)).inertia
    if shape == "capsule":
        return solid_capsule(mass, size[0], size[1]).inertia
    return solid_ellipsoid(mass, (size[0],) * 3).inertia


def on_plane(
    shape: str, size, *, mass: float = 1.0, height: float = 0.0, tilt: float = 0.0, heading: float = 0.0, **surface
) -> Model:
    """A free body above a plane, turned with it.

    Args:
        shape: its shape.
        size: its size [m].
        mass: [kg].
        height: of its lowest point above the plane [m].
        tilt: angle by which the plane slopes [rad].
        heading: direction in which it slopes downwards [rad from x towards y].
        **surface: friction and the like, of both.
    """
    turn = Rotation.from_euler("ZY", [heading, tilt])
    rise = {"box": lambda: size[2], "capsule": lambda: size[0], "sphere": lambda: size[0]}[shape]() + height
    x, y, z, w = turn.as_quat()
    builder = ModelBuilder("body on plane").passive()
    home = (*(rise * turn.as_matrix()[:, 2]), w, x, y, z)
    builder.add_body("body", joint="root", kind="free", mass=mass, inertia=inertia_of(shape, size, mass), home=home)
    builder.add_geom("body", shape, size, **surface)
    roll, pitch, yaw = turn.as_euler("xyz")
    builder.add_geom("world", "plane", (), name="floor", rpy=(roll, pitch, yaw), **surface)
    return builder.build()


def stack(
    boxes: int = 5, half: float = 0.05, mass: float = 1.0, offset: float = 1e-3, turn: float = 0.0, **surface
) -> Model:
    """Boxes on each other, out of line by about an offset [m] and turned against each other by up to an angle [rad]."""
    rng = np.random.default_rng(0)
    builder = ModelBuilder("stack").passive()
    builder.add_geom("world", "plane", (), name="floor", **surface)
    for k in range(boxes):
        x, y = offset * rng.normal(size=2)
        yaw = rng.uniform(-turn, turn) if turn else 0.0
        home = (x, y, half * (2 * k + 1), np.cos(0.5 * yaw), 0, 0, np.sin(0.5 * yaw))
        inertia = inertia_of("box", (half,) * 3, mass)
        builder.add_body(f"box{k}", joint=f"free{k}", kind="free", mass=mass, inertia=inertia, home=home)
        builder.add_geom(f"box{k}", "box", (half,) * 3, name=f"box{k}", **surface)
    return builder.build()
