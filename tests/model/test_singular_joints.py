import pytest

from hybridsim.core.errors import ModelError
from hybridsim.model.builder import ModelBuilder
from hybridsim.model.singular_joints import bodies_with_singular_joints
from hybridsim.model.specs import JointKind

SOLID = {"mass": 1.0, "inertia": (0.1, 0.1, 0.1)}


def singular_joint_names(builder: ModelBuilder) -> list[str]:
    return [body.joint.name for body in bodies_with_singular_joints(builder.spec)]


@pytest.mark.parametrize("kind", JointKind)
def test_no_joint_type_is_singular_with_a_solid_body(kind):
    assert singular_joint_names(ModelBuilder("m").add_body("a", kind=kind, **SOLID)) == []


@pytest.mark.parametrize("kind", [kind for kind in JointKind if kind is not JointKind.FIXED])
def test_every_joint_type_is_singular_with_a_massless_body(kind):
    assert singular_joint_names(ModelBuilder("m").add_body("a", kind=kind)) == ["a"]


def test_point_mass_on_the_joint_axis_is_singular():
    builder = ModelBuilder("m").add_body("a", axis=(0.0, 1.0, 0.0), mass=1.0, com=(0.0, 0.0, 1.0))
    assert singular_joint_names(builder) == []
    builder.add_body("b", axis=(0.0, 1.0, 0.0), mass=1.0, com=(0.0, 1.0, 0.0))
    assert singular_joint_names(builder) == ["b"]
    assert singular_joint_names(ModelBuilder("m").add_body("a", kind="spherical", mass=1.0, com=(0.0, 0.0, 1.0))) == [
        "a"
    ]


def test_anchor_offsets_the_axis():
    builder = ModelBuilder("m").add_body("a", axis=(0.0, 1.0, 0.0), mass=1.0, anchor=(0.0, 0.0, 0.5))
    assert singular_joint_names(builder) == []


def test_massless_body_between_parallel_axes_is_singular():
    builder = ModelBuilder("m").add_body("a").add_body("b", parent="a", at=(0.0, 0.0, 1.0), **SOLID)
    assert singular_joint_names(builder) == ["a"]
    crossed = ModelBuilder("m").add_body("a").add_body("b", parent="a", axis=(1.0, 0.0, 0.0), **SOLID)
    assert singular_joint_names(crossed) == []


def test_armature_prevents_singularity():
    assert singular_joint_names(ModelBuilder("m").add_body("a", armature=0.01)) == []


def test_massless_mimic_joint_is_not_singular():
    builder = ModelBuilder("m").add_body("a", **SOLID).add_body("b", parent="a", mimic="a")
    assert singular_joint_names(builder) == []


def test_builder_rejects_singular_joints():
    with pytest.raises(ModelError, match="can move without moving any mass"):
        ModelBuilder("m").add_body("a", mass=1.0).build()
    with pytest.raises(ModelError, match="carries no mass"):
        ModelBuilder("m").add_body("a").build()
