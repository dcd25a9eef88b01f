"""Candidate pairs: bodies, groups and masks, explicit pairs and patterns, and warnings about unsupported pairs."""

import warnings

import numpy as np
import pytest

from hybridsim.contact.candidates import Candidates, find_candidates
from hybridsim.core.errors import ModelWarning
from hybridsim.model.builder import ModelBuilder
from hybridsim.model.geometry import Shape

INERTIAL = {"mass": 1.0, "inertia": (1.0, 1.0, 1.0)}


def _legs() -> ModelBuilder:
    """A trunk with a thigh and a shank, another free body, and a floor."""
    legs = ModelBuilder("legs")
    legs.add_body("trunk", kind="free", **INERTIAL)
    legs.add_geom("trunk", "box", (0.2, 0.1, 0.1), name="chest")
    legs.add_body("thigh", parent="trunk", axis=(0, 1, 0), **INERTIAL)
    legs.add_geom("thigh", "capsule", (0.05, 0.2), name="upper")
    legs.add_body("shank", parent="thigh", axis=(0, 1, 0), **INERTIAL)
    legs.add_geom("shank", "sphere", (0.05,), name="foot")
    legs.add_body("ball", kind="free", **INERTIAL)
    legs.add_geom("ball", "sphere", (0.1,), name="ball")
    legs.add_geom("world", "plane", (), name="floor")
    return legs


def _names(candidates: Candidates) -> set[str]:
    return {pair.name for pair in candidates.pairs}


def test_default_candidates():
    candidates = find_candidates(_legs().build())
    assert _names(candidates) == {
        *("chest|floor", "upper|floor", "foot|floor", "ball|floor"),
        *("foot|chest", "ball|chest", "ball|upper", "foot|ball"),
    }
    # a body and its parent never collide
    assert "upper|chest" not in _names(candidates) and "foot|upper" not in _names(candidates)


def test_self_collision_can_be_disabled():
    candidates = find_candidates(_legs().build(), self_collision=False)
    assert _names(candidates) == {
        *("chest|floor", "upper|floor", "foot|floor", "ball|floor"),
        *("ball|chest", "ball|upper", "foot|ball"),
    }


def test_shapes_of_one_body_never_collide():
    model = ModelBuilder("one")
    model.add_body("body", kind="free", **INERTIAL)
    for k in range(2):
        model.add_geom("body", "sphere", (0.1,), name=f"s{k}")
        model.add_geom("world", "plane", (), name=f"p{k}")
    assert _names(find_candidates(model.build())) == {f"s{j}|p{k}" for j in range(2) for k in range(2)}


@pytest.mark.parametrize("kind", ["universal", "planar"])
def test_bodies_on_both_sides_of_a_compound_joint_do_not_collide(kind):
    """The massless intermediate bodies of the joint are skipped."""
    model = ModelBuilder("wrist")
    model.add_body("arm", kind="free", **INERTIAL)
    model.add_geom("arm", "sphere", (0.1,), name="arm")
    model.add_body("hand", parent="arm", kind=kind, **INERTIAL)
    model.add_geom("hand", "sphere", (0.1,), name="hand")
    model.add_body("finger", parent="hand", axis=(0, 1, 0), **INERTIAL)
    model.add_geom("finger", "sphere", (0.1,), name="finger")
    assert _names(find_candidates(model.build())) == {"arm|finger"}


def test_a_merged_link_belongs_to_its_parent_body():
    model = ModelBuilder("merged")
    model.add_body("arm", kind="free", **INERTIAL)
    model.add_body("tool", parent="arm", kind="fixed", **INERTIAL)
    model.add_geom("arm", "sphere", (0.1,), name="a")
    model.add_geom("tool", "sphere", (0.1,), name="t")
    model.add_geom("world", "plane", (), name="floor")
    model = model.build()
    assert _names(find_candidates(model)) == {"a|floor", "t|floor"}
    # the link and its parent body can both be named
    assert _names(find_candidates(model, only=["tool|world"])) == {"t|floor"}
    assert _names(find_candidates(model, only=["arm|world"])) == {"a|floor", "t|floor"}


@pytest.mark.parametrize(
    ("one", "other", "can_collide"),
    [
        ((1, 1), (1, 1), True),
        ((1, 0), (2, 0), False),
        ((1, 0), (2, 1), True),
        ((4, 2), (2, 0), True),
        ((1, 2), (4, 2), False),
    ],
)
def test_groups_and_masks(one, other, can_collide):
    model = ModelBuilder("groups")
    for name, (group, mask) in (("a", one), ("b", other)):
        model.add_body(name, kind="free", **INERTIAL)
        model.add_geom(name, "sphere", (0.1,), name=name, group=group, mask=mask)
    assert _names(find_candidates(model.build())) == ({"a|b"} if can_collide else set())


def test_excluded_and_explicit_pairs():
    legs = _legs()
    legs.spec.excluded_pairs += [("ball", "trunk"), ("world", "thigh")]
    # explicit pairs override every other rule, including parent and child
    legs.spec.explicit_pairs += [("chest", "upper"), ("floor", "upper")]
    legs.spec.geoms[-1].group = legs.spec.geoms[-1].mask = 0
    candidates = find_candidates(legs.build())
    assert _names(candidates) == {"upper|chest", "upper|floor", "foot|chest", "ball|upper", "foot|ball"}


def test_only_and_exclude():
    model = _legs().build()
    assert _names(find_candidates(model, only=["foot|floor"])) == {"foot|floor"}
    assert _names(find_candidates(model, only=["floor|foot"])) == {"foot|floor"}
    assert _names(find_candidates(model, only=["sh*|world"])) == {"foot|floor"}
    assert _names(find_candidates(model, only=["ball"])) == {"ball|floor", "ball|chest", "ball|upper", "foot|ball"}
    assert _names(find_candidates(model, only=["*|floor"], exclude=["ball"])) == {
        "chest|floor",
        "upper|floor",
        "foot|floor",
    }
    assert _names(find_candidates(model, exclude=["*|floor", "foot|chest"])) == {
        "ball|chest",
        "ball|upper",
        "foot|ball",
    }


def test_a_pattern_that_matches_no_pair_is_an_error():
    with pytest.raises(ValueError, match=r"no candidate pair of shapes of model 'legs' matches 'knee', 'upper\|chest'"):
        find_candidates(_legs().build(), only=["foot", "knee"], exclude=["upper|chest"])


def test_names_order_and_bodies():
    candidates = find_candidates(_legs().build(), only=["*|floor", "foot|ball"])
    # pairs of one kind are adjacent, in the order in which the kinds first appear
    assert [p.name for p in candidates.pairs] == ["chest|floor", "upper|floor", "foot|ball", "foot|floor", "ball|floor"]
    several = tuple(f"{pair}.{k}" for pair, n in (("chest|floor", 4), ("upper|floor", 2)) for k in range(n))
    assert candidates.names == (*several, "foot|ball", "foot|floor", "ball|floor")
    assert candidates.nc == 9 and candidates.pair_indices == (0, 0, 0, 0, 1, 1, 2, 3, 4)
    assert candidates.bodies == ((0, -1),) * 4 + ((1, -1),) * 2 + ((2, 3), (2, -1), (3, -1))
    assert [("|".join(kinds), members) for kinds, members in candidates.pair_groups] == [
        ("box|plane", (0,)),
        ("capsule|plane", (1,)),
        ("sphere|sphere", (2,)),
        ("sphere|plane", (3, 4)),
    ]


def test_pairs_without_a_routine_are_reported():
    model = ModelBuilder("odd")
    for k, kind in enumerate(("cylinder", "cylinder", "ellipsoid", "sphere")):
        model.add_body(f"b{k}", kind="free", **INERTIAL)
        model.add_geom(f"b{k}", kind, (0.1, 0.1, 0.1), name=f"g{k}")
    message = (
        r"model 'odd' have no collision routine and pass through each other: "
        r"cylinder–cylinder \(1\), cylinder–ellipsoid \(2\), cylinder–sphere \(2\)"
    )
    with pytest.warns(ModelWarning, match=message):
        candidates = find_candidates(model.build())
    assert not candidates.pairs and candidates.nc == 0 and candidates.bodies == ()
    # no warning about excluded pairs
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        find_candidates(model.build(), exclude=["g*"])


def _shape_pair(shape: str, other: str = "plane", **more) -> ModelBuilder:
    model = ModelBuilder("shapes")
    model.add_body("body", kind="free", **INERTIAL)
    model.add_geom("body", shape, (1.0, 1.0, 1.0), name="shape", **more)
    model.add_geom("world", other, (0.1, 0.1, 0.1), name="other")
    return model


def test_a_mesh_needs_a_hull():
    with pytest.raises(ValueError, match=r"mesh of shape 'shape' has not been read.*with_hulls\(model\)"):
        find_candidates(_shape_pair("mesh", mesh_file="some.stl").build())
    corners = np.eye(3)
    assert find_candidates(_shape_pair("mesh", data=corners).build()).nc == 4
    with pytest.raises(ValueError, match="hull of shape 'shape' has no faces, but contact with 'other' requires them"):
        find_candidates(_shape_pair("mesh", "box", data=corners).build())


@pytest.mark.parametrize(
    ("shape", "other", "what"),
    [
        ("points", "plane", "of type points has no points"),
        ("polygon", "cylinder", "of type polygon has no outline"),
        ("sphere", "heightfield", "of type heightfield has no heights"),
    ],
)
def test_shapes_need_their_data(shape, other, what):
    with pytest.raises(ValueError, match=what):
        find_candidates(_shape_pair(shape, other).build())


def test_one_contact_per_point():
    candidates = find_candidates(_shape_pair("points", data=np.zeros((7, 3))).build())
    assert candidates.nc == 7 and candidates.names[-1] == "shape|other.6"
    assert candidates.pairs[0].data_sizes == ((7, 3), ())
    assert candidates.infos[0].shape is Shape.POINTS


def test_many_contacts_are_reported():
    heap = ModelBuilder("heap")
    for k in range(12):
        heap.add_body(f"box{k}", kind="free", **INERTIAL)
        heap.add_geom(f"box{k}", "box", (0.1, 0.1, 0.1))
    model = heap.add_geom("world", "plane", (), name="floor").build()
    with pytest.warns(ModelWarning, match=r"312 contacts of model 'heap'.*only, exclude or self_collision"):
        find_candidates(model)
    assert find_candidates(model, only=("*|floor",)).nc == 48
