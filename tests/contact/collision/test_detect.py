"""Detection of all candidates: every row agrees with the routine for its two shapes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from hybridsim.contact.candidates import find_candidates
from hybridsim.contact.collision.contact_points import FAR, PlacedShape
from hybridsim.contact.collision.detect import detect
from hybridsim.contact.collision.dispatch import ROUTINES
from hybridsim.model.builder import ModelBuilder
from hybridsim.model.topology import WORLD
from hybridsim.spatial.transform import Pose
from support.contact_pairs import CUBE, CUBE_FACES

SOLID = {"mass": 1.0, "inertia": (1.0, 1.0, 1.0)}


def _crowd() -> ModelBuilder:
    """Free bodies of many shapes, some with point data, on fixed and moving ground."""
    crowd = ModelBuilder("crowd")
    rng = np.random.default_rng(7)
    shapes = [
        ("sphere", (0.1,), {}),
        ("box", (0.1, 0.2, 0.3), {}),
        ("sphere", (0.2,), {}),
        ("points", (0.01,), {"data": rng.normal(size=(3, 3))}),
        ("points", (0.02,), {"data": rng.normal(size=(5, 3))}),
        ("points", (0.03,), {"data": rng.normal(size=(3, 3))}),
        ("mesh", (1, 1, 1), {"data": CUBE * 0.2, "faces": CUBE_FACES}),
        ("mesh", (1, 1, 1), {"data": CUBE * 0.1, "faces": CUBE_FACES}),
        ("mesh", (1, 1, 1), {"data": np.eye(3), "group": 2, "mask": 2}),
    ]
    for k, (kind, size, more) in enumerate(shapes):
        crowd.add_body(f"b{k}", kind="free", **SOLID)
        crowd.add_geom(f"b{k}", kind, size, name=f"{kind}{k}", at=rng.normal(size=3), rpy=rng.normal(size=3), **more)
    crowd.add_body("ship", kind="free", **SOLID)
    crowd.add_geom("ship", "plane", (), name="deck", at=(0.0, 0.0, 0.5), mask=3)
    crowd.add_geom("world", "plane", (), name="floor", mask=3)
    crowd.add_geom("world", "heightfield", (3.0, 2.0), name="hills", data=rng.normal(size=(4, 5)))
    crowd.add_geom("world", "heightfield", (1.0, 2.0), name="dunes", data=rng.normal(size=(3, 3)))
    return crowd


def _poses(n: int) -> Pose:
    rng = np.random.default_rng(8)
    return Pose(Rotation.random(n, rng=rng).as_matrix(), rng.normal(size=(n, 3)))


@pytest.fixture(scope="module")
def crowd():
    model = _crowd().build()
    pairs = ["*|floor", "*|deck", "sphere*|hills", "sphere*|dunes", "sphere*|sphere*", "sphere*|box*"]
    return model, find_candidates(model, only=pairs, exclude=["deck|floor", "deck|hills", "deck|dunes"])


def test_every_row_agrees_with_its_routine(crowd):
    model, candidates = crowd
    X_WB = _poses(model.nb)
    result = jax.jit(lambda X: detect(model.geometry, X, candidates))(X_WB)
    geometry, offset = model.geometry, 0
    assert result.gap.shape == (candidates.nc,)

    def placed_shape(k: int) -> PlacedShape:
        info = geometry.infos[k]
        X_BG = jax.tree.map(lambda x: np.asarray(x[k]), geometry.placement)
        X_WG = X_BG if info.body == WORLD else jax.tree.map(lambda x: x[info.body], X_WB) @ X_BG
        return PlacedShape(
            X_WG, geometry.size[k], geometry.data[info.data_index] if info.data_index >= 0 else None, info.faces
        )

    for pair in candidates.pairs:
        kinds = geometry.infos[pair.first].shape, geometry.infos[pair.second].shape
        expected = jax.jit(ROUTINES[kinds].contacts)(placed_shape(pair.first), placed_shape(pair.second))
        assert len(expected.gap) == pair.max_points
        for name in ("gap", "normal", "on_first", "on_second"):
            rows = getattr(result, name)[offset : offset + pair.max_points]
            assert np.allclose(rows, getattr(expected, name), atol=1e-12), f"{pair.name}: {name}"
        offset += pair.max_points
    assert offset == candidates.nc


def test_shapes_with_equal_data_sizes_are_batched(crowd):
    _, candidates = crowd
    members = {}
    for kinds, rows in candidates.pair_groups:
        members.setdefault(kinds, []).append([candidates.pairs[k].name for k in rows])
    assert members["points", "plane"] == [
        ["points3|deck", "points3|floor", "points5|deck", "points5|floor"],
        ["points4|deck", "points4|floor"],
    ]
    assert members["mesh", "plane"] == [
        ["mesh6|deck", "mesh6|floor", "mesh7|deck", "mesh7|floor"],
        ["mesh8|deck", "mesh8|floor"],
    ]
    # terrains of different sizes
    assert len(members["sphere", "heightfield"]) == 2


def test_shared_terrain_is_not_copied(crowd):
    model, candidates = crowd
    program = str(jax.make_jaxpr(lambda X: detect(model.geometry, X, candidates))(_poses(model.nb)))
    assert "f64[2,4,5]" not in program and "f64[4,5]" in program


@pytest.mark.slow
def test_derivatives_with_respect_to_sizes_placements_and_data(crowd):
    model, _ = crowd
    candidates = find_candidates(model, only=["points*|deck", "mesh*|floor", "sphere*|hills"])

    def total(geometry):
        points = detect(geometry, _poses(model.nb), candidates)
        return jnp.where(points.gap < FAR, points.gap, 0.0).sum() + points.on_first.sum()

    gradient = jax.jit(jax.grad(total))(jax.tree.map(np.asarray, model.geometry))
    last = {info.shape: k for k, info in enumerate(model.geometry.infos)}
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(gradient))
    assert abs(gradient.size[last["sphere"], 0]) > 0.1 and np.abs(gradient.placement.p[last["plane"]]).max() > 0.1
    indices = [info.data_index for info in model.geometry.infos if info.name != "dunes" and info.data_index >= 0]
    assert all(np.abs(gradient.data[k]).max() > 1e-3 for k in indices)


def test_no_candidates():
    model = ModelBuilder("single").add_body("body", kind="free", **SOLID).build()
    result = detect(model.geometry, _poses(1), find_candidates(model))
    assert result.gap.shape == (0,) and result.normal.shape == (0, 3)
