"""Units of channels and commands are those of what they measure and drive."""

import pytest

import hybridsim as hs
from hybridsim.errors import SpecificationError
from hybridsim.robots import cartpole, cube

CASES = [
    ("joint.q[hinge]", "deg", ""),
    ("joint.q[hinge]", "ms", "a unit of time, but joint.q[hinge] is an angle"),
    ("joint.q[hinge]", "mm", "a unit of length"),
    ("joint.q[slider]", "mm", ""),
    ("joint.q[slider]", "deg", "a unit of angle, but joint.q[slider] is a length"),
    ("joint.qd[hinge]", "rpm", ""),
    ("joint.qd[hinge]", "deg", "is an angular velocity"),
    ("joint.qd[slider]", "cm/s", ""),
    ("joint.tau[hinge]", "mNm", ""),
    ("joint.tau[hinge]", "mm", "is a torque"),
    ("joint.tau[slider]", "Nm", "is a force"),
    ("joint.tau[hinge]", "A", ""),
    ("joint.q[hinge]", "px", ""),
    ("joint.q[hinge] + joint.q[slider]", "s", ""),
    ("body.pose[pole].p.x", "cm", ""),
    ("body.pose[pole].r.x", "cm", "is an angle"),
    ("body.twist[pole].omega.x", "deg/s", ""),
    ("body.twist[pole].v.x", "deg/s", "is a velocity"),
    ("step.time", "ms", ""),
]


def experiment(measures, unit, commands=(), model=None, **settings):
    channel = hs.Channel("column", measures, unit=unit, noise=1.0, **settings)
    return hs.Experiment(model or cartpole(), dt=0.01, channels=[channel], commands=list(commands))


@pytest.mark.parametrize(("measures", "unit", "message"), CASES)
def test_units_of_channels(measures, unit, message):
    if not message:
        assert experiment(measures, unit).assembly
        return
    with pytest.raises(SpecificationError, match="is a unit of") as caught:
        experiment(measures, unit)
    (problem,) = caught.value.problems
    assert message in problem.message and problem.code == "data.unit" and "specify it as scale" in problem.fix


def test_a_scale_and_a_gain_convert_units():
    assert experiment("joint.q[hinge]", "mm", scale=10.0).assembly
    assert experiment("joint.q[hinge]", "mm", gain=0.1).assembly


@pytest.mark.parametrize(("unit", "message"), [("N", ""), ("kN", ""), ("A", ""), ("Nm", "force"), ("mm", "force")])
def test_units_of_commands(unit, message):
    command = hs.Command("force", joint="slider", unit=unit)
    if not message:
        assert experiment("joint.q[hinge]", "deg", [command]).assembly
        return
    with pytest.raises(SpecificationError, match=f"the command of 'slider' is a {message}"):
        experiment("joint.q[hinge]", "deg", [command])


def test_units_of_coordinates_of_a_free_body():
    assert experiment("joint.q[root.z]", "mm", model=cube()).assembly
    with pytest.raises(SpecificationError, match="is a length"):
        experiment("joint.q[root.z]", "deg", model=cube())
    assert experiment("joint.qd[root.wx]", "deg/s", model=cube()).assembly
