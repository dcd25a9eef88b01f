"""Scenes for contact tests: a body on a plane, and stacks of boxes."""

import numpy as np
from scipy.spatial.transform import Rotation

from hybridsim.model.builder import ModelBuilder
from hybridsim.model.inertial import solid_box, solid_capsule, solid_ellipsoid
from hybridsim.model.model import Model

GRAVITY = 9.81


def solid_inertia(shape: str, size, mass: float) -> np.ndarray:
    """Inertia of a homogeneous solid about its centre of mass [kg·m²]."""
    if shape == "box":
        return solid_box(mass, tuple(size)).inertia
    if shape == "capsule":
        return solid_capsule(mass, size[0], size[1]).inertia
    return solid_ellipsoid(mass, (size[0],) * 3).inertia


def body_on_plane(
    shape: str, size, *, mass: float = 1.0, height: float = 0.0, tilt: float = 0.0, heading: float = 0.0, **surface
) -> Model:
    """A free body above a plane, aligned with it.

    Args:
        shape: shape of the body.
        size: size of the shape [m].
        mass: mass of the body [kg].
        height: gap between body and plane [m].
        tilt: inclination of the plane [rad].
        heading: downhill direction [rad from x towards y].
        **surface: surface parameters of both, such as friction.
    """
    rotation = Rotation.from_euler("ZY", [heading, tilt])
    rise = {"box": lambda: size[2], "capsule": lambda: size[0], "sphere": lambda: size[0]}[shape]() + height
    x, y, z, w = rotation.as_quat()
    builder = ModelBuilder("body on plane").declare_unactuated()
    home = (*(rise * rotation.as_matrix()[:, 2]), w, x, y, z)
    builder.add_body("body", joint="root", kind="free", mass=mass, inertia=solid_inertia(shape, size, mass), home=home)
    builder.add_geom("body", shape, size, **surface)
    roll, pitch, yaw = rotation.as_euler("xyz")
    builder.add_geom("world", "plane", (), name="floor", rpy=(roll, pitch, yaw), **surface)
    return builder.build()


def stack(
    boxes: int = 5, half: float = 0.05, mass: float = 1.0, offset: float = 1e-3, max_yaw: float = 0.0, **surface
) -> Model:
    """Stack of boxes with random horizontal offsets (standard deviation `offset` [m]) and yaw angles [rad]."""
    rng = np.random.default_rng(0)
    builder = ModelBuilder("stack").declare_unactuated()
    builder.add_geom("world", "plane", (), name="floor", **surface)
    for k in range(boxes):
        x, y = offset * rng.normal(size=2)
        yaw = rng.uniform(-max_yaw, max_yaw) if max_yaw else 0.0
        home = (x, y, half * (2 * k + 1), np.cos(0.5 * yaw), 0, 0, np.sin(0.5 * yaw))
        inertia = solid_inertia("box", (half,) * 3, mass)
        builder.add_body(f"box{k}", joint=f"free{k}", kind="free", mass=mass, inertia=inertia, home=home)
        builder.add_geom(f"box{k}", "box", (half,) * 3, name=f"box{k}", **surface)
    return builder.build()
