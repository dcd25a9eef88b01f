"""Free bodies: a cube and a ball."""

from hybridsim.model.builder import ModelBuilder
from hybridsim.model.inertial import solid_box, solid_ellipsoid
from hybridsim.model.model import Model


def cube(width: float = 0.1, mass: float = 0.37) -> Model:
    """Free cube of uniform density above a ground plane.

    Args:
        width: edge length [m].
        mass: mass [kg].
    """
    half = 0.5 * width
    builder = ModelBuilder("cube").declare_unactuated()
    inertia = solid_box(mass, (half, half, half)).inertia
    builder.add_body("cube", joint="root", kind="free", mass=mass, inertia=inertia, home=(0, 0, 3 * width, 1, 0, 0, 0))
    builder.add_geom("cube", "box", (half, half, half), friction=0.5)
    builder.add_geom("world", "plane", (), name="ground", friction=0.5)
    return builder.build()


def ball(radius: float = 0.1, mass: float = 1.0) -> Model:
    """Free ball of uniform density above a ground plane.

    Args:
        radius: radius [m].
        mass: mass [kg].
    """
    builder = ModelBuilder("ball").declare_unactuated()
    inertia = solid_ellipsoid(mass, (radius, radius, radius)).inertia
    builder.add_body("ball", joint="root", kind="free", mass=mass, inertia=inertia, home=(0, 0, 3 * radius, 1, 0, 0, 0))
    builder.add_geom("ball", "sphere", (radius,), friction=0.5)
    builder.add_geom("world", "plane", (), name="ground", friction=0.5)
    return builder.build()
