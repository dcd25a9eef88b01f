"""A flat object on a table and a round tip that pushes it."""

from hybridsim.model.builder import ModelBuilder
from hybridsim.model.inertial import solid_box
from hybridsim.model.model import Model


def pusher(width: float = 0.09, mass: float = 0.837, tip_radius: float = 0.00475) -> Model:
    """A square block that slides and turns in the plane, and a tip moved along x and y by forces.

    Args:
        width: edge length of the block [m].
        mass: of the block [kg].
        tip_radius: [m].
    """
    half, height = 0.5 * width, 0.5 * 0.013
    table = ModelBuilder("pusher", gravity=(0.0, 0.0, -9.81))
    inertia = solid_box(mass, (half, half, height)).inertia
    table.add_body("object", joint="slide", kind="planar", at=(0.0, 0.0, height), mass=mass, inertia=inertia)
    table.add_geom("object", "box", (half, half, height), friction=0.25)
    table.add_body("tip_carrier", joint="tip_x", kind="prismatic", at=(-0.1, 0.0, height), axis=(1, 0, 0))
    table.add_body(
        "tip",
        parent="tip_carrier",
        joint="tip_y",
        kind="prismatic",
        axis=(0, 1, 0),
        mass=0.5,
        inertia=(1e-4, 1e-4, 1e-4),
    )
    table.add_geom("tip", "cylinder", (tip_radius, 0.05), friction=0.25)
    table.add_geom("world", "plane", (), name="table", friction=0.25)
    for joint in ("tip_x", "tip_y"):
        table.add_actuator(joint)
    return table.build()
