"""A flat object on a table and a round tip that pushes it."""

from hybridsim.model.builder import ModelBuilder
from hybridsim.model.contact_grid import contact_grid
from hybridsim.model.inertial import solid_box
from hybridsim.model.model import Model

PUSHING, RESTING = 1, 2
"""Groups of shapes: tip and outline meet, and so do bottom and table."""


def pusher(width: float = 0.09, mass: float = 0.837, tip_radius: float = 0.00475) -> Model:
    """A square block that slides and turns on a table without tilting, and a tip moved along x and y by forces.

    The block's weight rests on nine points of its bottom, whose friction turns it about as well as that of the whole
    bottom. Without contact it falls.

    Args:
        width: edge length of the block [m].
        mass: of the block [kg].
        tip_radius: [m].
    """
    half, height = 0.5 * width, 0.5 * 0.013
    outline = [(-half, -half), (half, -half), (half, half), (-half, half)]
    table = ModelBuilder("pusher", gravity=(0.0, 0.0, -9.81))
    inertia = solid_box(mass, (half, half, height)).inertia
    # without a joint of its own along z, no weight would press the block on the table
    table.add_body("object_carrier", joint="lift", kind="prismatic", at=(0.0, 0.0, height), axis=(0, 0, 1))
    table.add_body("object", parent="object_carrier", joint="slide", kind="planar", mass=mass, inertia=inertia)
    pushing, resting = ({"friction": 0.25, "group": group, "mask": group} for group in (PUSHING, RESTING))
    table.add_geom("object", "polygon", (0.0, 0.0, height), name="outline", data=outline, **pushing)
    bottom = contact_grid(outline, 0.36 * width)
    table.add_geom("object", "points", (0.0,), name="bottom", at=(0.0, 0.0, -height), data=bottom, **resting)
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
    table.add_geom("tip", "cylinder", (tip_radius, 0.05), name="tip", **pushing)
    table.add_geom("world", "plane", (), name="table", **resting)
    for joint in ("tip_x", "tip_y"):
        table.add_actuator(joint)
    return table.build()
