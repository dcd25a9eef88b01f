"""Planar pushing: a block on a table, and a round tip that pushes it."""

from hybridsim.model.builder import ModelBuilder
from hybridsim.model.contact_grid import contact_grid
from hybridsim.model.inertial import solid_box
from hybridsim.model.model import Model

TIP_GROUP, TABLE_GROUP = 1, 2
"""Collision groups: the tip collides with the outline of the block, the table with its bottom."""


def pusher(width: float = 0.09, mass: float = 0.837, tip_radius: float = 0.00475) -> Model:
    """Square block that slides and yaws on a table without tilting, and a tip that is force-controlled along x and y.

    Nine points of the block's bottom are in contact with the table; their frictional torque approximates that of the
    whole bottom. If contact is disabled, the block falls.

    Args:
        width: edge length of the block [m].
        mass: mass of the block [kg].
        tip_radius: radius of the tip [m].
    """
    half, half_height = 0.5 * width, 0.5 * 0.013
    outline = [(-half, -half), (half, -half), (half, half), (-half, half)]
    builder = ModelBuilder("pusher", gravity=(0.0, 0.0, -9.81))
    inertia = solid_box(mass, (half, half, half_height)).inertia
    # the prismatic joint along z lets the table carry the weight of the block
    builder.add_body("object_carrier", joint="lift", kind="prismatic", at=(0.0, 0.0, half_height), axis=(0, 0, 1))
    builder.add_body("object", parent="object_carrier", joint="slide", kind="planar", mass=mass, inertia=inertia)
    with_tip, with_table = ({"friction": 0.25, "group": group, "mask": group} for group in (TIP_GROUP, TABLE_GROUP))
    builder.add_geom("object", "polygon", (0.0, 0.0, half_height), name="outline", data=outline, **with_tip)
    bottom = contact_grid(outline, 0.36 * width)
    builder.add_geom("object", "points", (0.0,), name="bottom", at=(0.0, 0.0, -half_height), data=bottom, **with_table)
    builder.add_body("tip_carrier", joint="tip_x", kind="prismatic", at=(-0.1, 0.0, half_height), axis=(1, 0, 0))
    builder.add_body(
        "tip",
        parent="tip_carrier",
        joint="tip_y",
        kind="prismatic",
        axis=(0, 1, 0),
        mass=0.5,
        inertia=(1e-4, 1e-4, 1e-4),
    )
    builder.add_geom("tip", "cylinder", (tip_radius, 0.05), name="tip", **with_tip)
    builder.add_geom("world", "plane", (), name="table", **with_table)
    for joint in ("tip_x", "tip_y"):
        builder.add_actuator(joint)
    return builder.build()
