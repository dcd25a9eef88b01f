import pytest

from hybridsim.core.errors import ModelError
from hybridsim.model.builder import ModelBuilder
from hybridsim.model.mobility import singular_joints

SOLID = {"mass": 1.0, "inertia": (0.1, 0.1, 0.1)}


def singular(builder: ModelBuilder) -> list[str]:
    return [body.joint.name for body in singular_joints(builder.spec)]


@pytest.mark.parametrize(
    "kind", ["revolute", "prismatic", "spherical", "universal", "planar", "free", "fixed", "continuous"]
)
def test_a_solid_body_resists_every_joint(kind):
    assert singular(ModelBuilder("m").add_body("a", kind=kind, **SOLID)) == []


@pytest.mark.parametrize("kind", ["revolute", "prismatic", "spherical", "universal", "planar", "free"])
def test_a_massless_body_resists_none(kind):
    assert singular(ModelBuilder("m").add_body("a", kind=kind)) == ["a"]


def test_a_point_mass_resists_off_its_axis_only():
    builder = ModelBuilder("m").add_body("a", axis=(0.0, 1.0, 0.0), mass=1.0, com=(0.0, 0.0, 1.0))
    assert singular(builder) == []
    builder.add_body("b", axis=(0.0, 1.0, 0.0), mass=1.0, com=(0.0, 1.0, 0.0))
    assert singular(builder) == ["b"]
    assert singular(ModelBuilder("m").add_body("a", kind="spherical", mass=1.0, com=(0.0, 0.0, 1.0))) == ["a"]


def test_an_anchor_moves_the_axis():
    builder = ModelBuilder("m").add_body("a", axis=(0.0, 1.0, 0.0), mass=1.0, anchor=(0.0, 0.0, 0.5))
    assert singular(builder) == []


def test_two_joints_about_one_axis_share_no_inertia():
    builder = ModelBuilder("m").add_body("a").add_body("b", parent="a", at=(0.0, 0.0, 1.0), **SOLID)
    assert singular(builder) == ["a"]
    crossed = ModelBuilder("m").add_body("a").add_body("b", parent="a", axis=(1.0, 0.0, 0.0), **SOLID)
    assert singular(crossed) == []


def test_armature_helps():
    assert singular(ModelBuilder("m").add_body("a", armature=0.01)) == []


def test_a_mimic_joint_moves_with_its_master():
    builder = ModelBuilder("m").add_body("a", **SOLID).add_body("b", parent="a", mimic="a")
    assert singular(builder) == []


def test_the_builder_says_so():
    with pytest.raises(ModelError, match="can move without moving any mass"):
        ModelBuilder("m").add_body("a", mass=1.0).build()
    with pytest.raises(ModelError, match="carries no mass"):
        ModelBuilder("m").add_body("a").build()
