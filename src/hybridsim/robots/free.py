"""Free bodies: a cube and a ball."""

from hybridsim.model.builder import ModelBuilder
from hybridsim.model.inertial import solid_box, solid_ellipsoid
from hybridsim.model.model import Model


def cube(width: float = 0.1, mass: float = 0.37) -> Model:
    """A cube of even density, free to fly and tumble.

    Args:
        width: edge length [m].
        mass: [kg].
    """
    half = 0.5 * width
    body = ModelBuilder("cube").passive()
    inertia = solid_box(mass, (half, half, half)).inertia
    body.add_body("cube", joint="root", kind="free", mass=mass, inertia=inertia, home=(0, 0, 3 * width, 1, 0, 0, 0))
    body.add_geom("cube", "box", (half, half, half), friction=0.5)
    body.add_geom("world", "plane", (), name="ground", friction=0.5)
    return body.build()


def ball(radius: float = 0.1, mass: float = 1.0) -> Model:
    """A ball of even density, free to fly and roll.

    Args:
        radius: [m].
        mass: [kg].
    """
    body = ModelBuilder("ball").passive()
    inertia = solid_ellipsoid(mass, (radius, radius, radius)).inertia
    body.add_body("ball", joint="root", kind="free", mass=mass, inertia=inertia, home=(0, 0, 3 * radius, 1, 0, 0, 0))
    body.add_geom("ball", "sphere", (radius,), friction=0.5)
    body.add_geom("world", "plane", (), name="ground", friction=0.5)
    return body.build()
