"""A floor for mechanisms whose files have none: URDF describes robots, not what they stand on."""

from dataclasses import replace

import numpy as np

from hybridsim.model.geometry import (
    DEFAULT_FRICTION,
    DEFAULT_RECOVERY_TIME,
    DEFAULT_SOFTNESS,
    NOT_TOLD,
    GeomInfo,
    Shape,
)
from hybridsim.model.model import Model
from hybridsim.model.specs import WORLD_NAME
from hybridsim.model.topology import WORLD
from hybridsim.spatial.transform import Pose

EVERYTHING = 2**31 - 1
"""Mask of a shape that collides with all groups."""


def with_floor(
    model: Model,
    height: float = 0.0,
    *,
    friction: float | None = None,
    restitution: float = 0.0,
    name: str = "floor",
) -> Model:
    """The model with a level plane in the world that everything can touch.

    Args:
        model: the mechanism.
        height: of the plane [m].
        friction: Coulomb's μ; where two surfaces touch, the larger one counts, but for shapes without a friction of
            their own. If it is not given, that of what stands on the floor counts, and 1 where that has none either.
        restitution: speed after an impact by the speed before it.
        name: of the shape.

    Raises:
        ValueError: a shape of that name is there already, or a number makes no sense.
    """
    geometry = model.geometry
    if name in {info.name for info in geometry.infos}:
        raise ValueError(f"model {model.name!r} already has a shape named {name!r}")
    has_friction = friction is not None
    friction = DEFAULT_FRICTION if friction is None else friction
    if not (friction >= 0.0 and 0.0 <= restitution <= 1.0 and np.isfinite([height, friction]).all()):
        raise ValueError(
            "a floor needs a finite height and friction, friction of at least 0 and restitution between 0 and 1, not "
            f"height={height}, friction={friction}, restitution={restitution}"
        )

    def added(rows, row) -> np.ndarray:
        return np.concatenate([np.asarray(rows), np.asarray(row, dtype=float)[None]])

    info = GeomInfo(
        name, WORLD, Shape.PLANE, group=EVERYTHING, mask=EVERYTHING, link=WORLD_NAME, has_friction=has_friction
    )
    return replace(
        model,
        geometry=replace(
            geometry,
            infos=(*geometry.infos, info),
            placement=Pose(
                added(geometry.placement.R, np.eye(3)), added(geometry.placement.p, np.array([0.0, 0.0, height]))
            ),
            size=added(geometry.size, np.zeros(3)),
            friction=added(geometry.friction, friction),
            restitution=added(geometry.restitution, restitution),
            recovery_time=added(geometry.recovery_time, DEFAULT_RECOVERY_TIME),
            softness=added(geometry.softness, DEFAULT_SOFTNESS),
            stiffness=added(geometry.stiffness, NOT_TOLD),
            damping=added(geometry.damping, NOT_TOLD),
        ),
    )
