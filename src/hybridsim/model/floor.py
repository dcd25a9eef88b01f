"""A floor for models whose files define none: URDF describes robots, not their environment."""

from dataclasses import replace

import numpy as np

from hybridsim.model.geometry import (
    DEFAULT_FRICTION,
    DEFAULT_RECOVERY_TIME,
    DEFAULT_SOFTNESS,
    UNSPECIFIED,
    GeomInfo,
    Shape,
)
from hybridsim.model.model import Model
from hybridsim.model.specs import WORLD_NAME
from hybridsim.model.topology import WORLD
from hybridsim.spatial.transform import Pose

ALL_GROUPS = 2**31 - 1
"""Collision mask that includes every group."""


def with_floor(
    model: Model,
    height: float = 0.0,
    *,
    friction: float | None = None,
    restitution: float = 0.0,
    name: str = "floor",
) -> Model:
    """Copy of the model with a horizontal plane fixed to the world, which collides with all groups.

    Args:
        model: the mechanism.
        height: height of the plane [m].
        friction: Coulomb friction coefficient μ. In a contact the larger coefficient of the two shapes applies; a
            default coefficient is ignored if the other shape specifies one. By default the floor specifies none, so the
            coefficient of the other shape applies, or 1 if that shape specifies none either.
        restitution: ratio of the separation speed to the approach speed.
        name: name of the shape.

    Raises:
        ValueError: a shape of that name exists, or a value is out of range.
    """
    geometry = model.geometry
    if name in {info.name for info in geometry.infos}:
        raise ValueError(f"model {model.name!r} already has a shape named {name!r}")
    is_friction_specified = friction is not None
    friction = DEFAULT_FRICTION if friction is None else friction
    if not (friction >= 0.0 and 0.0 <= restitution <= 1.0 and np.isfinite([height, friction]).all()):
        raise ValueError(
            "a floor needs a finite height, a finite friction >= 0 and a restitution between 0 and 1, not "
            f"height={height}, friction={friction}, restitution={restitution}"
        )

    def append_row(rows, row) -> np.ndarray:
        return np.concatenate([np.asarray(rows), np.asarray(row, dtype=float)[None]])

    info = GeomInfo(
        name,
        WORLD,
        Shape.PLANE,
        group=ALL_GROUPS,
        mask=ALL_GROUPS,
        link=WORLD_NAME,
        is_friction_specified=is_friction_specified,
    )
    return replace(
        model,
        geometry=replace(
            geometry,
            infos=(*geometry.infos, info),
            placement=Pose(
                append_row(geometry.placement.R, np.eye(3)),
                append_row(geometry.placement.p, np.array([0.0, 0.0, height])),
            ),
            size=append_row(geometry.size, np.zeros(3)),
            friction=append_row(geometry.friction, friction),
            restitution=append_row(geometry.restitution, restitution),
            recovery_time=append_row(geometry.recovery_time, DEFAULT_RECOVERY_TIME),
            softness=append_row(geometry.softness, DEFAULT_SOFTNESS),
            stiffness=append_row(geometry.stiffness, UNSPECIFIED),
            damping=append_row(geometry.damping, UNSPECIFIED),
        ),
    )
