"""MuJoCo's distance and contacts of a pair of shapes, for comparison."""

from dataclasses import dataclass

import mujoco
import numpy as np
from scipy.spatial.transform import Rotation

from hybridsim.model.geometry import Shape
from support.contact_pairs import Placements

MAX_DISTANCE = 10.0
"""Cutoff distance in MuJoCo [m]."""


@dataclass(frozen=True)
class References:
    """MuJoCo's distance and deepest contact of each placement, one per row."""

    distance: np.ndarray
    """Signed distance, negative in penetration [m]."""
    in_contact: np.ndarray
    """Whether there is a contact."""
    depth: np.ndarray
    """Gap of the contact, negative [m]; NaN without contact, as the following fields."""
    normal: np.ndarray
    """Unit vector from the second shape to the first."""
    position: np.ndarray
    """Midpoint between the surfaces [m]."""


def references(kinds: tuple[Shape, Shape], placements: Placements, n: int) -> References:
    """MuJoCo's results for the first `n` placements of two shapes."""
    rows = [_reference(kinds, placements, i) for i in range(n)]
    distance, in_contact, depth, normal, position = (np.array(column) for column in zip(*rows, strict=True))
    return References(distance, in_contact, depth, normal, position)


def _geom(kind: Shape, name: str, R: np.ndarray, p: np.ndarray, size: np.ndarray) -> str:
    x, y, z, w = Rotation.from_matrix(R).as_quat()
    shape = f'type="{kind}" size="{_text(size)}"'
    if kind is Shape.MESH:
        shape = 'type="mesh" mesh="hull"'
    elif kind is Shape.PLANE:
        shape = 'type="plane" size="0 0 1"'
    geom = f'<geom name="{name}" {shape} pos="{_text(p)}" quat="{_text(np.array([w, x, y, z]))}"/>'
    inertial = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
    # MuJoCo allows planes on static bodies only
    return geom if kind is Shape.PLANE else f"<body><freejoint/>{inertial}{geom}</body>"


def _reference(kinds: tuple[Shape, Shape], placements: Placements, i: int) -> tuple:
    geoms = [_geom(kinds[k], f"g{k}", placements.R[k][i], placements.p[k][i], placements.size[k][i]) for k in (0, 1)]
    meshes = [d for d in placements.data if d is not None]
    asset = f'<asset><mesh name="hull" vertex="{_text(meshes[0].ravel())}"/></asset>' if meshes else ""
    option = '<option ccd_tolerance="1e-13" ccd_iterations="500"/>'
    xml = f"<mujoco>{option}{asset}<worldbody>{''.join(geoms)}</worldbody></mujoco>"
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    first, second = (mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_GEOM, f"g{k}") for k in (0, 1))
    distance = mujoco.mj_geomDistance(model, data, first, second, MAX_DISTANCE, None)
    if not data.ncon:
        return distance, False, np.nan, np.full(3, np.nan), np.full(3, np.nan)
    contact = data.contact[data.contact.dist.argmin()]
    # MuJoCo's normals point from its first geom to its second one
    normal = contact.frame[:3] * (-1.0 if contact.geom[0] == first else 1.0)
    return distance, True, contact.dist, normal, contact.pos.copy()


def _text(values: np.ndarray) -> str:
    return " ".join(map(repr, values.tolist()))
