"""Parameter addresses: what they select, and messages for those that select nothing."""

import re

import pytest

from hybridsim.contact.compliant.compliant_contact import CompliantContact
from hybridsim.contact.compliant.friction_laws import Coulomb
from hybridsim.contact.impulse.impulse_contact import ImpulseContact
from hybridsim.contact.impulse.stabilization import Baumgarte
from hybridsim.core.errors import ParameterError
from hybridsim.params.address import scalar_parameters
from hybridsim.params.setup import Setup
from hybridsim.robots import cartpole, quadruped
from hybridsim.sim.sensors import Sensors
from hybridsim.sim.simulator import Simulator


def names(address, setup):
    return [c.name for c in scalar_parameters(address, setup)]


@pytest.fixture(scope="module")
def walker():
    sim = Simulator(quadruped(), contact=CompliantContact(stiffness=1e5, law=Coulomb(0.01), self_collision=False))
    return Setup(sim, Sensors.from_addresses(sim, {"height": "joint.q[root.z]"}))


def test_rows_have_wildcards_and_lists_and_may_be_omitted(arm):
    assert names("body.mass[*er]", arm) == ["body.mass[upper]", "body.mass[lower]"]
    assert names("body.mass[lower, cart]", arm) == ["body.mass[lower]", "body.mass[cart]"]
    assert (
        names("body.mass", arm) == names("body.mass[*]", arm) == [f"body.mass[{b}]" for b in ("upper", "cart", "lower")]
    )
    assert names("body.mass[lower,*er]", arm) == ["body.mass[lower]", "body.mass[upper]"]


def test_components_have_wildcards_and_lists_too(arm):
    assert names("joint.placement[rail].x,z", arm) == ["joint.placement[rail].x", "joint.placement[rail].z"]
    assert names("joint.placement[rail].r*", arm) == [f"joint.placement[rail].r{c}" for c in "xyz"]
    assert len(names("body.inertia[cart]", arm)) == 6 and names("gravity", arm) == [
        "gravity.x",
        "gravity.y",
        "gravity.z",
    ]
    assert names("gravity.magnitude", arm) == ["gravity.magnitude"] and names("dt", arm) == ["dt"]


def test_a_joint_with_several_degrees_of_freedom_has_its_own_name(walker):
    assert len(names("joint.damping[root]", walker)) == 6
    assert names("joint.damping[FR_hip_joint]", walker) == ["joint.damping[FR_hip_joint]"]


def test_only_mimic_joints_have_a_ratio_and_only_one_dof_joints_a_rest(arm, walker):
    assert names("joint.mimic_ratio", arm) == ["joint.mimic_ratio[elbow]"]
    assert len(names("joint.rest", walker)) == 12
    with pytest.raises(ParameterError, match="no mimic joint"):
        names("joint.mimic_ratio", walker)


def test_pairs_are_named_by_shapes_links_or_bodies_in_either_order(walker):
    calf_pairs = names("contact.stiffness[ground|FR_calf]", walker)
    assert calf_pairs and calf_pairs == names("contact.stiffness[FR_calf]", walker)
    assert set(calf_pairs) < set(names("contact.stiffness", walker))
    assert len(names("contact.law.transition_velocity[*]", walker)) == len(names("contact.stiffness", walker))


def test_a_network_is_addressed_as_a_whole_by_array_and_by_entry(arm):
    whole = names("graft[0]", arm)
    assert whole == names("graft[*]", arm) == names("graft", arm)
    assert whole == names("graft[0].weights", arm) + names("graft[0].biases", arm)
    assert len(whole) == 3 * 2 + 3 + 3 + 1, "the scales of inputs and outputs are frozen"
    assert names("graft[0].weights[0][*,1]", arm) == [f"graft[0].weights[0][{k},1]" for k in range(3)]
    assert names("graft[0].input_scale", arm) == ["graft[0].input_scale[0]", "graft[0].input_scale[1]"]


def test_actuation_stages_are_addressed_by_index_and_actuator(arm_with_actuation):
    assert names("actuation[1].kd[turn]", arm_with_actuation) == ["actuation[1].kd[turn]"]
    assert names("actuation[2,1]", arm_with_actuation) == [
        *names("actuation[2].time_constant", arm_with_actuation),
        "actuation[1].kp",
        *names("actuation[1].kd[push,turn]", arm_with_actuation),
    ]


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("body.mas[cart]", "no parameter 'body.mas'; did you mean 'body.mass'"),
        ("bodymass", "did you mean 'body.mass'"),
        ("body.mass[kart]", "nothing is named 'kart'; did you mean 'cart'"),
        ("body.com[cart].q", "no component 'q'; valid names are 'x', 'y', 'z'"),
        ("body.mass[cart].x", "no component 'x'; there are none"),
        ("body.mass[cart", "missing closing bracket"),
        ("body.mass[cart]x", "cannot parse the address"),
        ("sensor.bias[slid]", "did you mean 'slide'"),
        ("inertial[upper].massive", "variants .mass, .com and .diagonal"),
        ("inertial[uper]", "did you mean 'upper'"),
        ("graft[1]", "no parameter 'graft[1]'"),
        ("graft[0].weight[0]", "did you mean 'graft[0].weights[0]'"),
        ("graft[0].weights[0][9,9]", "has shape 3×2"),
        ("graft[0].weights[0][1]", "takes 2 indices"),
        ("contact.friction[a|b]", "has no candidate pairs"),
        ("actuation[0].kp", "there are none"),
    ],
)
def test_unknown_addresses_are_refused_with_the_closest_valid_names(arm, address, message):
    with pytest.raises(ParameterError, match=re.escape(message)):
        scalar_parameters(address, arm)


def test_a_contact_parameter_taken_from_the_surfaces_is_refused_with_its_address(walker, impulse_ball):
    with pytest.raises(ParameterError, match=r"from the surfaces; free geometry\.friction"):
        scalar_parameters("contact.friction[*]", walker)
    with pytest.raises(ParameterError, match="recovery_time"):
        scalar_parameters("contact.stabilization.recovery_time", impulse_ball)
    setup = Setup(
        Simulator(impulse_ball.sim.model, contact=ImpulseContact(stabilization=Baumgarte())), impulse_ball.sensors
    )
    with pytest.raises(ParameterError, match=r"derives its stabilization\.alpha from the time step"):
        scalar_parameters("contact.stabilization.alpha", setup)
    with pytest.raises(ParameterError, match=re.escape("nothing is named 'hul|floor'")):
        scalar_parameters("contact.cfm[hul|floor]", impulse_ball)


def test_a_scalar_for_all_actuators_has_no_rows(arm_with_actuation):
    with pytest.raises(ParameterError, match="kp is a scalar and takes 0 indices"):
        scalar_parameters("actuation[1].kp[turn]", arm_with_actuation)


def test_gravity_without_a_direction_has_no_magnitude():
    model = cartpole()
    weightless = type(model)(**{**vars(model), "gravity": 0.0 * model.gravity})
    sim = Simulator(weightless)
    with pytest.raises(ParameterError, match="has no direction; free gravity"):
        scalar_parameters("gravity.magnitude", Setup(sim, Sensors.from_addresses(sim, {"x": "joint.q[slider]"})))
