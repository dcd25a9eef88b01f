"""ParameterSpace: order, bounds, maps, ties, priors, and messages that report all problems together."""

import re

import equinox as eqx
import jax
import numpy as np
import pytest

from hybridsim.contact.compliant.compliant_contact import CompliantContact
from hybridsim.contact.impulse.impulse_contact import ImpulseContact
from hybridsim.core.errors import ParameterError, SpecificationError
from hybridsim.params.free import Free
from hybridsim.params.setup import Setup
from hybridsim.params.space import ParameterSpace
from hybridsim.robots import double_pendulum, quadruped
from hybridsim.sim.sensors import Sensors
from hybridsim.sim.simulator import Simulator

AXES = "joint.axis[shoulder].x,z"
EVERYTHING = [
    Free("body.mass[upper]", bounds=(0.1, 5.0)),
    Free("joint.damping[*]", tied=True, map="log"),
    Free("inertial[lower]"),
    Free("inertial[cart].mass"),
    Free("body.com[cart].x", map="interval", bounds=(-1.0, 1.0)),
    Free("joint.placement[rail].z,rx"),
    Free("joint.placement[rail].ry"),
    Free(AXES),
    Free("gravity.magnitude"),
    Free("graft[0]", l2=1e-3, group="net"),
    Free("sensor.bias[slide]", prior=(0.4, 0.2)),
    Free(("sensor.gain[x]", "sensor.gain[z]"), tied=(1.0, -0.5), initial=3.0),
    Free("dt"),
]


@pytest.fixture(scope="module")
def space(arm):
    return ParameterSpace(arm, EVERYTHING)


def are_equal(one, other, tolerance=0.0) -> bool:
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return all(np.allclose(a, b, rtol=tolerance, atol=tolerance) for a, b in pairs)


def error_message(setup, *free_parameters) -> str:
    with pytest.raises(ParameterError) as error:
        ParameterSpace(setup, free_parameters)
    return str(error.value)


def test_entries_come_in_the_order_of_the_list_and_of_the_matches(arm):
    space = ParameterSpace(arm, [Free("joint.damping[elbow,rail]"), Free("body.mass[*]")])
    assert space.names == (
        "joint.damping[elbow]",
        "joint.damping[rail]",
        "body.mass[upper]",
        "body.mass[cart]",
        "body.mass[lower]",
    )


def test_parameters_that_are_not_listed_are_fixed(arm):
    space = ParameterSpace(arm, [Free("body.mass[cart]")])
    assert space.size == 1 and space.initial.shape == (1,)
    put = space.put(arm, space.initial + 0.5)
    restored = eqx.tree_at(lambda s: s.sim.model.body.mass, put, arm.sim.model.body.mass)
    assert are_equal(restored, arm) and not are_equal(put, arm)


def test_nothing_free_is_an_empty_vector(arm):
    space = ParameterSpace(arm, [])
    assert space.size == 0 and are_equal(space.put(arm, np.zeros(0)), arm) and space.values(np.zeros(0)) == {}


def test_the_initial_theta_reproduces_the_setup(arm):
    whole = ParameterSpace(arm, [free for free in EVERYTHING if free.initial is None])
    assert are_equal(whole.put(arm, whole.initial), arm, 1e-15)
    by_scale = [free for free in EVERYTHING if free.initial is None and free.map is None]
    exact = ParameterSpace(arm, [free for free in by_scale if free.label not in ("inertial[cart].mass", AXES)])
    assert are_equal(exact.put(arm, exact.initial), arm), "bit for bit"


@pytest.mark.parametrize("seed", range(3))
def test_theta_of_undoes_put(arm, space, seed):
    theta = space.initial + np.random.default_rng(seed).normal(scale=0.1, size=space.size)
    fitted = space.put(arm, theta)
    np.testing.assert_allclose(space.theta_of(fitted), theta, atol=1e-11)
    assert are_equal(space.put(arm, space.theta_of(fitted)), fitted, 1e-13)
    assert are_equal(space.put(fitted, theta), fitted, 1e-15), "put is idempotent"


def test_numpy_and_jax_put_the_same_values(arm, space):
    theta = space.initial + np.random.default_rng(0).normal(scale=0.1, size=space.size)
    by_numpy, by_jax = space.put(arm, theta), jax.jit(space.put)(arm, theta)
    assert all(isinstance(leaf, np.ndarray) for leaf in jax.tree.leaves(by_numpy.sim.model.body))
    assert are_equal(by_numpy, by_jax, 1e-14)


def test_forward_and_reverse_derivatives_of_put_agree(arm, space):
    def flat(theta):
        model = space.put(arm, theta).sim.model
        parts = (model.body.mass, model.body.inertia, model.joint.placement.R, model.joint.axis, model.gravity)
        return jax.numpy.concatenate([jax.numpy.asarray(part).reshape(-1) for part in parts])

    forward, reverse = (jax.jit(d(flat))(space.initial) for d in (jax.jacfwd, jax.jacrev))
    assert np.isfinite(forward).all()
    np.testing.assert_allclose(forward, reverse, atol=1e-14)


def test_scales_make_theta_of_order_one(arm):
    space = ParameterSpace(arm, [Free("body.mass[cart]"), Free("joint.placement[rail].z"), Free("dt")])
    assert (np.abs(space.initial) >= 0.7).all() and (np.abs(space.initial) < 1.5).all()
    narrow = ParameterSpace(arm, [Free("gravity.z", bounds=(-9.9, -9.7))])
    assert 1.0 < narrow.upper[0] - narrow.lower[0] < 4.0
    assert ParameterSpace(arm, [Free("body.mass[cart]", scale=4.0)]).initial[0] == 0.5
    space = ParameterSpace(arm, [Free("body.com[cart].y")])
    assert 0.1 < space.initial[0] < 0.3, "a component is scaled by its whole vector"


def test_nonnegative_parameters_have_a_lower_bound(arm):
    space = ParameterSpace(arm, [Free("joint.damping[rail]"), Free("body.mass[cart]"), Free("sensor.bias[x]")])
    rows = space.table(space.initial)
    assert rows[0].lower == 0.0 and 0.0 < rows[1].lower < 1e-5 and rows[2].lower == -np.inf
    assert space.lower[0] == 0.0 and (space.upper == np.inf).all()
    assert ParameterSpace(arm, [Free("body.mass[cart]", bounds=(0.0, 3.0))]).lower[0] > 0.0


def test_bounds_are_those_of_theta(arm):
    free_parameters = [
        Free("body.mass[cart]", bounds=(1.0, 4.0)),
        Free("body.mass[upper]", bounds=(0.5, 3.0), map="log"),
    ]
    space = ParameterSpace(arm, [*free_parameters, Free("body.mass[lower]", bounds=(0.5, 3.0), map="interval")])
    low, high = (
        space.values(np.nan_to_num(space.lower, neginf=-40.0)),
        space.values(np.nan_to_num(space.upper, posinf=40.0)),
    )
    np.testing.assert_allclose(list(low.values()), [1.0, 0.5, 0.5], rtol=1e-14)
    np.testing.assert_allclose(list(high.values()), [4.0, 3.0, 3.0], rtol=1e-14)
    assert space.lower[2] == -np.inf and space.upper[2] == np.inf


def test_a_tie_has_one_entry_and_drives_all(arm):
    space = ParameterSpace(arm, [Free("joint.damping[*]", tied=True)])
    assert space.names == ("joint.damping[*]",) and space.size == 1
    damping = space.put(arm, 2.0 * space.initial).sim.model.joint.damping
    np.testing.assert_array_equal(damping, [0.4, 0.4, 0.4])
    assert len(space.values(space.initial)) == 3


def test_a_tie_with_factors_multiplies(arm):
    mirrored = Free(("sensor.bias[x]", "sensor.bias[z]"), tied=(1.0, -0.5), initial=3.0, bounds=(0.0, 4.0))
    space = ParameterSpace(arm, [mirrored])
    values = space.values(space.initial)
    assert values == {"sensor.bias[x]": 3.0, "sensor.bias[z]": -1.5}
    x, z = space.table(space.upper)
    assert (x.upper, x.at_bound) == (4.0, "upper") and (z.lower, z.at_bound) == (-2.0, "lower")


def test_a_tie_of_different_values_needs_an_initial_value(arm):
    assert "different values (body.mass[upper] = 1.5, body.mass[cart] = 2" in error_message(
        arm, Free("body.mass[*]", tied=True)
    )
    space = ParameterSpace(arm, [Free("body.mass[*]", tied=True, initial=1.0)])
    assert set(space.values(space.initial).values()) == {1.0}
    with pytest.raises(ParameterError, match="no theta reproduces"):
        space.theta_of(arm)


def test_priors_are_specified_in_values_and_stored_in_theta(arm):
    free_parameters = [
        Free("body.mass[cart]", prior=(1.5, 0.1)),
        Free("body.mass[upper]", prior=(1.5, 0.3), map="log"),
        Free("body.mass[lower]"),
        Free("inertial[cart].mass", prior=(2.0, 0.5)),
    ]
    space = ParameterSpace(arm, free_parameters[:3])
    np.testing.assert_allclose(list(space.values(space.prior_mean).values())[:2], [1.5, 1.5], rtol=1e-15)
    scale = space.values(space.initial + 1.0)["body.mass[cart]"] - 2.0
    np.testing.assert_allclose(space.prior_std, [0.1 / scale, 0.2, np.inf])
    assert ParameterSpace(arm, free_parameters[3:]).prior_std[0] == 0.25


def test_regularization_groups_and_weights_are_stored_per_entry(arm):
    space = ParameterSpace(arm, [Free("dt"), Free("graft[0].biases", l1=0.5, l2=2.0, group="net")])
    assert space.l1.tolist() == [0.0] + [0.5] * 4 and space.l2.tolist() == [0.0] + [2.0] * 4
    assert space.groups == ("", *["net"] * 4)
    assert space.is_weight.tolist() == [False] + [True] * 4
    assert space.units[0] == "s"


def test_the_table_shows_values_before_and_after(arm):
    space = ParameterSpace(arm, [Free("body.mass[cart]", bounds=(1.0, 3.0)), Free("joint.axis[rail].y")])
    theta = np.array([space.upper[0], 0.1])
    mass, *axis = space.table(theta)
    assert (mass.name, mass.before, mass.after, mass.unit) == ("body.mass[cart]", 2.0, 3.0, "kg")
    assert mass.at_bound == "upper" and (mass.lower, mass.upper) == (1.0, 3.0)
    assert [row.name[-1] for row in axis] == ["x", "y", "z"]
    assert np.linalg.norm([row.after for row in axis]) == pytest.approx(1.0, abs=1e-15)


def test_all_labels_differ(space):
    assert len(set(space.names)) == space.size == len(space.units) == len(space.groups)


@pytest.mark.parametrize(
    ("free", "message"),
    [
        (
            Free("body.mass[cart]", bounds=(3.0, 5.0)),
            "'body.mass[cart]' has the initial value 2, outside its bounds 3 and 5",
        ),
        (Free("body.mass[cart]", bounds=(-1.0, 3.0)), "must be between 0 and inf (without mass"),
        (Free("body.mass[cart]", map="interval"), "map 'interval' needs two finite bounds"),
        (Free("body.mass[cart]", map="interval", bounds=(2.0, 3.0)), "at one of its bounds 2 and 3"),
        (Free("sensor.bias[x]", map="log", initial=-1.0), "has the initial value -1, which has no logarithm"),
        (Free("body.com[cart].x", map="log", initial=0.0), "has no logarithm"),
        (Free("body.mass[cart]", prior=(-1.0, 1.0), map="log"), "prior mean -1 is outside the range of the map"),
        (Free("inertial[cart]", initial=1.0), "always have the model's values as initial values"),
        (Free("inertial[*]", tied=True), "cannot be tied"),
        (Free("inertial[cart]", map="log"), "have their own parametrization"),
        (Free(("inertial[cart].mass", "dt")), "parameters with different default maps"),
        (Free("geometry.restitution[*]"), "no shape"),
    ],
    ids=lambda x: x if isinstance(x, str) else x.label or "empty",
)
def test_invalid_options_are_refused_with_a_reason(arm, free, message):
    assert message in error_message(arm, free)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bounds": (5.0, 3.0)}, "has the lower bound 5, which is not below the upper bound 3"),
        ({"bounds": (3.0,)}, "bounds of Free('body.mass[cart]') has 1 entry"),
        ({"bounds": (np.nan, 1.0)}, "must not be nan"),
        ({"map": "lgo"}, "did you mean 'log'? valid values are linear, log, interval"),
        ({"initial": np.nan}, "must be finite or 'current', not nan"),
        ({"prior": (1.0, 0.0)}, "prior[1] of Free('body.mass[cart]') must be greater than 0, not 0.0"),
        ({"scale": 0.0}, "scale of Free('body.mass[cart]') must be greater than 0, not 0.0"),
        ({"l1": -1.0}, "l1 of Free('body.mass[cart]') must be at least 0, not -1.0"),
        ({"tied": (1.0, 2.0)}, "one nonzero factor for each name"),
        ({"tied": (0.0,)}, "one nonzero factor for each name"),
        ({"name": ""}, "name of Free must be nonempty text"),
        ({"name": " "}, "must be one or more addresses"),
        ({"name": ()}, "must be text or a nonempty list, not []"),
        ({"per": "runs"}, "did you mean 'run'?"),
        ({"group": 1}, "group of Free('body.mass[cart]') must be text, not 1"),
    ],
)
def test_invalid_arguments_are_refused_at_once(options, message):
    with pytest.raises(SpecificationError) as error:
        Free(**{"name": "body.mass[cart]"} | options)
    assert message in str(error.value)


def test_a_value_that_is_not_finite_needs_an_initial_value():
    sim = Simulator(double_pendulum())
    setup = Setup(sim, Sensors.from_addresses(sim, {"q": "joint.q[joint0]"}))
    assert "'joint.upper[joint0]' is inf, which cannot be an initial value" in error_message(
        setup, Free("joint.upper[joint0]")
    )
    space = ParameterSpace(setup, [Free("joint.upper[joint0]", initial=1.0)])
    assert space.put(setup, space.initial).sim.model.joint.upper.tolist() == [1.0, np.inf]


@pytest.mark.parametrize(
    "names",
    [
        ("body.mass[cart]", "body.mass[*]"),
        ("inertial[cart]", "body.mass[cart]"),
        ("body.inertia[cart].xx", "inertial[cart].mass"),
        ("inertial[cart].com", "body.com[cart].x"),
        ("inertial[cart]", "inertial[cart].diagonal"),
        ("gravity.z", "gravity.magnitude"),
        ("joint.placement[rail].rx", "joint.placement[rail].r*"),
        ("graft[0].weights", "graft[0]"),
    ],
)
def test_a_value_is_determined_by_one_parameter(arm, names):
    message = error_message(arm, *map(Free, names))
    assert re.search("is free twice|determine the same value", message)
    assert "twice" in error_message(arm, Free(("dt", "dt")))


def test_components_of_a_rotation_and_of_an_inertia_may_be_free_separately(arm):
    space = ParameterSpace(arm, [Free("joint.placement[rail].rx"), Free("joint.placement[rail].rz")])
    R = space.put(arm, np.array([0.2, 0.1])).sim.model.joint.placement.R[1]
    np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-15)
    ParameterSpace(arm, [Free("inertial[cart].mass"), Free("inertial[cart].com")])


def test_all_problems_are_reported_together(arm):
    message = error_message(
        arm, Free("body.mas"), Free("dt", map="interval"), Free("gravity.z", bounds=(0.0, 1.0)), Free("dt"), Free("dt")
    )
    assert len(message.splitlines()) == 4


def test_friction_that_impulse_contact_has_no_row_for_is_refused():
    sim = Simulator(quadruped(), contact=ImpulseContact(only=("*_calf|ground",)))
    setup = Setup(sim, Sensors.from_addresses(sim, {"z": "joint.q[root.z]"}))
    assert "would have no effect: with impulse contact, dry friction" in error_message(
        setup, Free("joint.friction[FR_hip_joint]")
    )
    ParameterSpace(setup, [Free("joint.lower[FR_hip_joint]")])


def test_stiffness_without_effect_in_contact_is_refused(compliant_ball):
    assert "takes its stiffness from the surfaces; free geometry.stiffness" in error_message(
        compliant_ball, Free("contact.stiffness[hull|floor]")
    )
    contact = CompliantContact(stiffness=1e5)
    setup = Setup(Simulator(compliant_ball.sim.model, contact=contact, backend="xla"), compliant_ball.sensors)
    assert "no contact takes its stiffness from this surface" in error_message(setup, Free("geometry.stiffness[hull]"))
    ParameterSpace(setup, [Free("contact.stiffness[hull|floor]"), Free("geometry.damping[hull]")])


def test_the_stiffness_of_a_surface_is_positive(compliant_ball):
    space = ParameterSpace(compliant_ball, [Free("geometry.stiffness[hull]"), Free("geometry.damping[hull]")])
    stiffness, damping = space.table(space.initial)
    assert 0.0 < stiffness.lower < 1.0 and damping.lower == 0.0


def test_wrong_lengths_and_traced_setups_are_refused(arm, space):
    with pytest.raises(ValueError, match=f"{space.size} free parameters"):
        space.put(arm, np.zeros(space.size + 1))
    with pytest.raises(ParameterError, match="outside jit"):
        jax.jit(lambda setup: ParameterSpace(setup, []).initial)(arm)
    with pytest.raises(TypeError, match="Setup"):
        ParameterSpace(arm.sim, [])
    with pytest.raises(TypeError, match="Free"):
        ParameterSpace(arm, ["dt"])  # pyright: ignore[reportArgumentType]


def test_initial_values_may_come_from_an_earlier_fit(arm):
    fewer = ParameterSpace(arm, [Free("joint.damping[*]")])
    more = ParameterSpace(arm, [Free("body.mass[*]"), Free("joint.damping[*]")])
    estimate = fewer.initial + 1.0
    again = more.with_initial_entries(dict(zip(fewer.names, estimate, strict=True)))
    shared = [more.names.index(name) for name in fewer.names]
    np.testing.assert_array_equal(again.initial[shared], estimate)
    others = np.delete(np.arange(more.size), shared)
    np.testing.assert_array_equal(again.initial[others], more.initial[others])
    assert not np.array_equal(more.initial, again.initial) and again.theta_map == more.theta_map
