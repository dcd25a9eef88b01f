"""Every entry of the catalogue changes the parameter that it names and no other, and this parameter has an effect."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hybridsim.contact.compliant.compliant_contact import CompliantContact
from hybridsim.contact.compliant.friction_laws import Andersson
from hybridsim.contact.impulse.impulse_contact import ImpulseContact
from hybridsim.contact.impulse.stabilization import ERP, Baumgarte, RecoveryTime
from hybridsim.contact.pair_parameters import candidate_friction
from hybridsim.model.builder import ModelBuilder
from hybridsim.params.address import scalar_parameters
from hybridsim.params.catalogue import CATALOGUE, RowKind
from hybridsim.params.free import Free
from hybridsim.params.parameter_table import parameter_table
from hybridsim.params.scalar_parameter import GroupMember
from hybridsim.params.setup import Setup
from hybridsim.params.space import ParameterSpace
from hybridsim.sim.rollout import rollout
from hybridsim.sim.sensors import Sensors
from hybridsim.sim.simulator import Simulator
from hybridsim.sim.state import Inputs

DELTA = 0.01
"""Perturbation of an entry of θ, which is of order one."""
STEPS = 6
"""Enough for a command to pass the delay and for a body to bounce."""


def with_perturbed_parameter(setup: Setup, address: str) -> Setup:
    """The setup with one parameter perturbed."""
    space = ParameterSpace(setup, [Free(address)])
    assert space.size == 1 and space.names == (address,)
    return space.put(setup, space.initial + DELTA)


def differences(one: Setup, other: Setup) -> dict[str, int]:
    """Count of different entries of each array."""
    leaves = zip(jax.tree_util.tree_leaves_with_path(one), jax.tree.leaves(other), strict=True)
    counts = {jax.tree_util.keystr(path): int(np.sum(np.asarray(a) != np.asarray(b))) for (path, a), b in leaves}
    return {path: count for path, count in counts.items() if count}


@eqx.filter_jit
def _readings(setup: Setup, q, qd, u):
    """Final state and readings of a few steps."""
    sim = setup.sim
    state = eqx.tree_at(lambda s: (s.q, s.qd), sim.initial_state(), (q, qd))
    trajectory = rollout(sim, state, jnp.broadcast_to(u, (STEPS, *u.shape)))
    return jnp.concatenate([trajectory.q[-1], trajectory.qd[-1], setup.sensors.read(sim, trajectory.final, Inputs(u))])


def have_different_readings(setup: Setup, other: Setup, operating_points) -> bool:
    """Whether two setups have different readings at any of the operating points."""
    pairs = ((_readings(setup, *point), _readings(other, *point)) for point in operating_points)
    return any(bool(jnp.any(a != b)) for a, b in pairs)


def addresses(setup: Setup, names) -> list[str]:
    return [c.name for name in names for c in scalar_parameters(name, setup)]


ARM = [p.name for p in CATALOGUE if not p.name.startswith("geometry.")]
ARM_OPERATING_POINTS = [
    (np.array([0.45, 0.5]), np.array([0.4, 0.3]), np.array([0.1, 0.1])),
    (np.array([-0.45, -0.5]), np.array([-0.4, -0.3]), np.array([0.1, -0.1])),
    (np.array([0.05, 0.0]), np.array([0.2, 0.1]), np.array([3.0, 3.0])),
    (np.array([0.05, 0.0]), np.array([0.2, 0.1]), np.array([-3.0, -3.0])),
    (np.array([0.05, 0.0]), np.array([2.2, 5.0]), np.array([3.0, 3.0])),
    (np.array([0.05, 0.0]), np.array([-2.2, -5.0]), np.array([-3.0, -3.0])),
]
"""Beyond the upper and lower joint limits, with forces and commands clipped above and below."""


def test_every_parameter_of_model_and_sensors_changes_separately(arm):
    for name in addresses(arm, ARM):
        (parameter,) = scalar_parameters(name, arm)
        counts = differences(arm, with_perturbed_parameter(arm, name))
        if isinstance(parameter.location, GroupMember):
            assert len(counts) == 1, name
        else:
            assert list(counts.values()) == [1], name


def test_every_parameter_of_model_and_sensors_has_an_effect(arm):
    without_effect = {
        *(f"frame.placement[tip].{r}" for r in ("rx", "ry", "rz")),  # a rotation does not move the frame's origin
        *(f"joint.anchor[rail].{c}" for c in "xyz"),  # a slider has no centre of rotation
        "joint.effort_limit[elbow]",  # it has no actuator
        "joint.effort_limit[rail]",  # the actuator's force range is narrower
        "actuator.force_lower[turn]",  # the joint's limit is narrower
        "actuator.force_upper[turn]",
        *(f"sensor.delay[{channel}]" for channel in arm.sensors.names),  # applied in the comparison with measurements
    }
    inactive = {
        name
        for name in addresses(arm, ARM)
        if not have_different_readings(arm, with_perturbed_parameter(arm, name), ARM_OPERATING_POINTS)
    }
    assert inactive == without_effect


BALL_AT = np.array([0.0, 0.0, 0.0995, 1.0, 0.0, 0.0, 0.0])
BALL_OPERATING_POINTS = [
    (BALL_AT, np.array([0.1, 0.2, 0.3, 0.2, 0.1, -0.02]), np.zeros(0)),
    (BALL_AT, np.array([0.1, 0.2, 0.3, 0.2, 0.1, -2.0]), np.zeros(0)),
    (BALL_AT, np.array([0.0, 0.0, 0.0, 0.005, 0.005, 0.0]), np.zeros(0)),
]
"""Resting with slip, impact, and creep."""


def with_contact(impulse_ball: Setup, contact) -> Setup:
    model = impulse_ball.sim.model
    if isinstance(contact, CompliantContact):
        # compliant contact has no restitution
        model = eqx.tree_at(lambda m: m.geometry.restitution, model, np.zeros(2))
    return replace(impulse_ball, sim=Simulator(model, contact=contact, backend="xla"))


def test_surfaces_and_shapes_have_an_effect_in_contact(impulse_ball):
    for name in addresses(impulse_ball, [p.name for p in CATALOGUE if p.row_kind is RowKind.SHAPE]):
        assert len(differences(impulse_ball, with_perturbed_parameter(impulse_ball, name))) == 1, name
    names = ["friction", "restitution", "recovery_time", "softness"]
    for name in addresses(impulse_ball, [f"geometry.{name}" for name in names]):
        assert list(differences(impulse_ball, with_perturbed_parameter(impulse_ball, name)).values()) == [1], name
        if name.endswith("[hull]") or not name.startswith(("geometry.friction", "geometry.restitution")):
            assert have_different_readings(
                impulse_ball, with_perturbed_parameter(impulse_ball, name), BALL_OPERATING_POINTS
            ), name  # the larger value of the two surfaces counts
    for name in ("geometry.size[hull].0", "geometry.placement[hull].z", "geometry.placement[floor].rx"):
        assert have_different_readings(
            impulse_ball, with_perturbed_parameter(impulse_ball, name), BALL_OPERATING_POINTS
        ), name


def test_stiffness_and_damping_of_surfaces_have_gradients(compliant_ball):
    names = [f"geometry.{field}[{shape}]" for field in ("stiffness", "damping") for shape in ("hull", "floor")]
    space = ParameterSpace(compliant_ball, [Free(name) for name in names])
    assert [row.unit for row in space.table(space.initial)] == ["N/m", "N/m", "N·s/m", "N·s/m"]
    for name in names:
        assert list(differences(compliant_ball, with_perturbed_parameter(compliant_ball, name)).values()) == [1], name

    def height(theta):
        sim = space.put(compliant_ball, theta).sim
        q, qd, _ = BALL_OPERATING_POINTS[0]
        state = eqx.tree_at(lambda s: (s.q, s.qd), sim.initial_state(), (jnp.asarray(q), jnp.asarray(qd)))
        return rollout(sim, state, steps=STEPS).q[-1, 2]

    gradient = np.asarray(jax.grad(height)(jnp.asarray(space.initial)))
    # a stiffer contact pushes up more, a stronger damper opposes the motion
    assert (gradient[:2] > 0.0).all() and (np.abs(gradient[2:]) > 0.0).all()
    assert gradient[0] == gradient[1] and gradient[2] == gradient[3]  # the same springs in series


def test_friction_of_a_pair_of_shapes_can_be_changed(impulse_ball):
    geometry = replace(
        impulse_ball.sim.model.geometry, friction_pairs=(("hull", "floor"),), pair_friction=np.array([0.4])
    )
    sim = Simulator(replace(impulse_ball.sim.model, geometry=geometry), contact="impulse")
    setup = replace(impulse_ball, sim=sim)
    other = with_perturbed_parameter(setup, "geometry.pair_friction[hull|floor]")
    assert list(differences(setup, other).values()) == [1]
    assert float(candidate_friction(other.sim.model.geometry, sim.contact.candidates)[0]) > 0.4


@pytest.mark.parametrize(
    ("contact", "fields"),
    [
        (
            ImpulseContact(0.5, restitution=0.2, softness=0.2, cfm=0.01, stabilization=RecoveryTime(0.03), sweeps=1),
            ["friction", "restitution", "softness", "cfm", "stabilization.recovery_time"],
        ),
        (
            CompliantContact(friction=0.5, stiffness=1e4, damping=1e4, law=Andersson(transition_velocity=0.5)),
            ["friction", "stiffness", "damping", "exponent"]
            + [f"law.{field}" for field in ("transition_velocity", "static_ratio", "stribeck_velocity", "exponent")],
        ),
    ],
    ids=["impulse", "compliant"],
)
def test_every_contact_parameter_can_be_changed_and_has_an_effect(impulse_ball, contact, fields):
    setup = with_contact(impulse_ball, contact)
    listed = {row.address for row in parameter_table(setup) if row.address.startswith("contact.")}
    assert {f"contact.{field}[hull|floor]" for field in fields} <= listed
    for field in fields:
        name = f"contact.{field}[hull|floor]"
        other = with_perturbed_parameter(setup, name)
        assert list(differences(setup, other).values()) == [1], name
        assert have_different_readings(setup, other, BALL_OPERATING_POINTS), name


@pytest.mark.parametrize(
    ("stabilization", "fields"), [(ERP(0.1), ["erp"]), (Baumgarte(100.0, 200.0), ["alpha", "beta"])]
)
def test_every_stabilization_parameter_can_be_changed_and_has_an_effect(impulse_ball, stabilization, fields):
    setup = with_contact(impulse_ball, ImpulseContact(stabilization=stabilization))

    def target_velocity(setup: Setup) -> float:
        sim, gap, speed = setup.sim, np.array([-0.001]), np.array([-0.1])
        return float(
            sim.contact.stabilization.target_velocity(gap, speed, sim.dt, sim.model.geometry, sim.contact.candidates)[0]
        )

    for field in fields:
        other = with_perturbed_parameter(setup, f"contact.stabilization.{field}[hull|floor]")
        assert list(differences(setup, other).values()) == [1]
        assert target_velocity(other) != target_velocity(setup)


def test_every_actuation_parameter_can_be_changed_and_has_an_effect(arm_with_actuation):
    names = [row.address for row in parameter_table(arm_with_actuation) if row.address.startswith("actuation[")]
    assert names == [
        "actuation[0].delay",
        "actuation[1].kp",
        *(f"actuation[1].kd[{motor}]" for motor in ("push", "turn")),
        *(f"actuation[2].time_constant[{motor}]" for motor in ("push", "turn")),
    ]
    operating_points = [(np.array([0.05, 0.0]), np.array([0.2, 0.1]), np.array([0.3, 0.3]))]
    for name in names:
        assert list(differences(arm_with_actuation, with_perturbed_parameter(arm_with_actuation, name)).values()) == [
            1
        ], name
        assert have_different_readings(
            arm_with_actuation, with_perturbed_parameter(arm_with_actuation, name), operating_points
        ), name


def test_a_delay_is_bounded_by_the_buffer_of_its_stage(arm_with_actuation):
    space = ParameterSpace(arm_with_actuation, [Free("actuation[0].delay")])
    assert space.table(space.initial)[0].upper == pytest.approx(8 * 0.002)


def test_weights_of_a_network_can_be_changed_and_have_an_effect(arm):
    for name in ("graft[0].weights[1][0,2]", "graft[0].biases[1][0]", "graft[0].output_scale[0]"):
        assert list(differences(arm, with_perturbed_parameter(arm, name)).values()) == [1], name
    assert have_different_readings(arm, with_perturbed_parameter(arm, "graft[0].biases[1][0]"), ARM_OPERATING_POINTS)


def test_the_listing_shows_current_values_with_units(arm):
    rows = {row.address: row for row in parameter_table(arm)}
    assert rows["body.mass[cart]"].value == 2.0 and rows["body.mass[cart]"].unit == "kg"
    assert rows["joint.damping[rail]"].unit == "N·s/m" and rows["joint.damping[shoulder]"].unit == "N·m·s/rad"
    assert rows["joint.placement[rail].rx"].value == 0.0 and rows["joint.placement[rail].rx"].unit == "rad"
    assert rows["inertial[lower]"].value is None and "10 parameters" in rows["inertial[lower]"].description
    assert "3×2" in rows["graft[0].weights[0]"].description
    assert all(row.description for row in rows.values())
    for row in rows.values():
        assert scalar_parameters(row.address, arm), "every listed address is valid"


def test_components_of_an_actuator_bias_have_their_units():
    builder = ModelBuilder("servo")
    builder.add_body("link", joint="hinge", mass=1.0, inertia=(0.1, 0.1, 0.1))
    builder.add_body("slider", joint="rail", kind="prismatic", mass=1.0, inertia=(0.1, 0.1, 0.1))
    sim = Simulator(builder.build())
    setup = Setup(sim, Sensors.from_addresses(sim, {"time": "step.time"}))
    units = {parameter.name: parameter.unit for parameter in scalar_parameters("actuator.bias[*]", setup)}
    components = ("constant", "length", "velocity")
    assert [units[f"actuator.bias[hinge].{c}"] for c in components] == ["N·m", "N·m/rad", "N·m·s/rad"]
    assert [units[f"actuator.bias[rail].{c}"] for c in components] == ["N", "N/m", "N·s/m"]
