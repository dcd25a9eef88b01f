"""Gradients of all algorithms and of rollouts, in forward and reverse mode, against finite differences."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hybridsim.dynamics import energy
from hybridsim.dynamics.aba import forward_dynamics
from hybridsim.dynamics.actuation import (
    Actuation,
    AffineActuator,
    FirstOrderLag,
    PDServo,
    SeriesElastic,
    TorqueSpeedLimit,
    TransportDelay,
)
from hybridsim.dynamics.crba import mass_matrix
from hybridsim.dynamics.jacobian import body_jacobian, frame_jacobian
from hybridsim.dynamics.kinematics import kinematics
from hybridsim.dynamics.passive import passive_torques
from hybridsim.dynamics.regressor import inertial_regressor
from hybridsim.dynamics.rnea import inverse_dynamics
from hybridsim.model.builder import ModelBuilder
from hybridsim.model.coordinates import difference, retract
from hybridsim.model.stretch import stretch_links
from hybridsim.robots import double_pendulum, pendulum
from hybridsim.sim.choices import INTEGRATORS
from hybridsim.sim.rollout import rollout
from hybridsim.sim.rollout_xla import MAX_STORED_STEPS
from hybridsim.sim.simulator import Simulator
from hybridsim.sim.state import Inputs
from hybridsim.spatial.rotation import matrix_from_rotation_vector
from support.derivatives import check_derivatives
from support.random_models import random_inertia, random_q
from support.slow import slow

MODEL_PARAMETERS = {
    "mass": lambda m: m.body.mass,
    "com": lambda m: m.body.com,
    "inertia": lambda m: m.body.inertia,
    "position": lambda m: m.joint.placement.p,
    "axis": lambda m: m.joint.axis,
    "anchor": lambda m: m.joint.anchor,
    "armature": lambda m: m.joint.armature,
    "gravity": lambda m: m.gravity,
}
PASSIVE_PARAMETERS = {
    "stiffness": lambda m: m.joint.stiffness,
    "damping": lambda m: m.joint.damping,
    "friction": lambda m: m.joint.friction,
    "stribeck_friction": lambda m: m.joint.stribeck_friction,
    "stribeck_velocity": lambda m: m.joint.stribeck_velocity,
    "friction_width": lambda m: m.joint.friction_width,
    "lower": lambda m: m.joint.lower,
    "upper": lambda m: m.joint.upper,
    "limit_stiffness": lambda m: m.joint.limit_stiffness,
    "limit_damping": lambda m: m.joint.limit_damping,
}


COMMON = {
    "stiffness": 2.0,
    "damping": 0.3,
    "friction": 0.4,
    "stribeck_friction": 0.3,
    "friction_width": 0.5,
    "stribeck_velocity": 1.0,
}
"""Passive parameters of all joints in the tests; each has an effect."""


@pytest.fixture(scope="module")
def model():
    """A mechanism with a free base, a ball joint, hinges, a slider, springs, friction and an active limit."""
    rng = np.random.default_rng(0)
    builder = ModelBuilder("all", gravity=(0.3, -0.4, -9.0))
    for name, parent, kind, extra in (
        ("base", "world", "free", {}),
        ("upper", "base", "spherical", {"anchor": (0.1, -0.2, 0.1), **COMMON}),
        (
            "lower",
            "upper",
            "revolute",
            {"anchor": (0.05, 0.1, 0.0), "lower": -0.3, "upper": 0.3, "rest": 0.2, **COMMON},
        ),
        ("slide", "base", "prismatic", COMMON),
        ("finger", "slide", "revolute", COMMON),
    ):
        builder.add_body(
            name,
            parent=parent,
            kind=kind,
            at=rng.normal(size=3) * 0.5 if parent != "world" else (0, 0, 0),
            rpy=rng.uniform(-1, 1, size=3) if parent != "world" else (0, 0, 0),
            axis=rng.normal(size=3),
            mass=rng.uniform(0.5, 2.0),
            com=rng.normal(size=3) * 0.2,
            inertia=random_inertia(rng),
            armature=0.1 if parent != "world" else 0.0,
            limit_stiffness=20.0,
            limit_damping=2.0,
            **extra,
        )
    return builder.build()


def _parameters(model, *groups) -> dict:
    rng = np.random.default_rng(1)
    values = {name: get(model) for group in groups for name, get in group.items()}
    # infinite limits are not differentiated
    for name in {"lower", "upper"} & set(values):
        values[name] = np.array([values[name][model.topology.tree_dof_names.index("lower")]])
    return values | {
        "q": np.zeros(model.nv),
        "qd": rng.normal(size=model.nv),
        "orientation": np.zeros((model.nb, 3)),
        "lengths": np.ones(model.nb),
    }


def _model_and_state(model, parameters):
    """Model and state at given parameters; `q` and the joints' `orientation` are displacements in the tangent space."""
    where = MODEL_PARAMETERS | PASSIVE_PARAMETERS
    q = retract(model, jnp.asarray(random_q(model, np.random.default_rng(2))), parameters["q"])
    changed = stretch_links(model, parameters["lengths"])
    for name, value in parameters.items():
        if name in ("com", "position", "anchor"):
            # link lengths scale these vectors
            value = where[name](changed) + value - where[name](model)
        if name in ("lower", "upper"):
            dof = model.topology.tree_dof_names.index("lower")
            value = jnp.asarray(where[name](model)).at[dof].set(value[0])
        if name in where:
            changed = eqx.tree_at(where[name], changed, value)
    R = jax.vmap(lambda R, r: R @ matrix_from_rotation_vector(r))(
        jnp.asarray(model.joint.placement.R), parameters["orientation"]
    )
    return eqx.tree_at(lambda m: m.joint.placement.R, changed, R), q, parameters["qd"]


def _kinematics_and_energies(model, q, qd):
    kin = kinematics(model, q, qd)
    return (
        (kin.X_WB.R, kin.X_WB.p, kin.V_WB_B),
        body_jacobian(model, kin, 4),
        frame_jacobian(model, kin, 2, jnp.array([0.1, 0.2, 0.3])),
        energy.kinetic_energy(model, kin, qd),
        energy.gravity_energy(model, kin),
        energy.momentum(model, kin),
        energy.centre_of_mass(model, kin),
    )


TORQUE = np.linspace(-1.0, 1.0, 12)
WRENCH = np.linspace(-1.0, 1.0, 30).reshape(5, 6)

ALGORITHMS = {
    "kinematics and energies": _kinematics_and_energies,
    "inverse dynamics": lambda m, q, qd: inverse_dynamics(m, q, qd, TORQUE, WRENCH),
    "mass matrix": lambda m, q, qd: mass_matrix(m, q),
    "forward dynamics": lambda m, q, qd: forward_dynamics(m, q, qd, TORQUE, WRENCH),
    "regressor": lambda m, q, qd: inertial_regressor(m, q, qd, TORQUE),
}


# also covered by forward dynamics
COVERED = ("kinematics and energies", "inverse dynamics", "regressor")


@pytest.mark.parametrize("name", [slow(name) if name in COVERED else name for name in ALGORITHMS])
def test_algorithm(model, name):
    check_derivatives(lambda p: ALGORITHMS[name](*_model_and_state(model, p)), _parameters(model, MODEL_PARAMETERS))


def test_passive_torques(model):
    parameters = _parameters(model, PASSIVE_PARAMETERS)
    # in this state, joint `lower` is beyond its upper limit
    sizes = check_derivatives(lambda p: passive_torques(*_model_and_state(model, p)), parameters)
    assert all(sizes[name] > 0.0 for name in PASSIVE_PARAMETERS if name not in ("lower", "upper"))
    assert sizes["lower"] > 0.0 or sizes["upper"] > 0.0


def test_difference_and_retract(model):
    target = random_q(model, np.random.default_rng(5))

    def differences(p):
        q = retract(model, jnp.asarray(random_q(model, np.random.default_rng(6))), p["q"])
        return difference(model, q, target), difference(model, jnp.asarray(target), q)

    check_derivatives(differences, {"q": np.zeros(model.nv)})


MIMIC_PARAMETERS = {"ratio": lambda m: m.joint.mimic_ratio, "offset": lambda m: m.joint.mimic_offset}


def test_mimic_joint():
    """Dynamics in reduced coordinates, of a gripper whose second finger mimics the first."""
    gripper = ModelBuilder("gripper", gravity=(0.3, -0.4, -9.0))
    gripper.add_body("slide", kind="prismatic", axis=(0.1, 0.2, 1.0), mass=1.0, inertia=(0.1, 0.2, 0.25), **COMMON)
    for name, extra in (("left", {}), ("right", {"mimic": "left", "mimic_ratio": -0.7, "mimic_offset": 0.2})):
        gripper.add_body(
            name,
            parent="slide",
            at=(0.2, 0.1, 0.3),
            rpy=(0.1, 0.2, 0.3),
            axis=(0.3, 1.0, 0.2),
            mass=0.7,
            com=(0.1, 0.2, -0.3),
            inertia=(0.02, 0.03, 0.04, 0.001, 0.002, 0.003),
            armature=0.1,
            **COMMON,
            **extra,
        )
    model = gripper.build()
    torque, wrench = np.array([0.5, -0.4]), WRENCH[:3]

    def dynamics_and_rollout(p):
        changed = model
        for name, get in (MODEL_PARAMETERS | MIMIC_PARAMETERS).items():
            changed = eqx.tree_at(get, changed, p[name])
        q, qd = p["q"], p["qd"]
        sim = eqx.tree_at(lambda s: s.model, Simulator(model, dt=0.01), changed)
        state = eqx.tree_at(lambda s: (s.q, s.qd), sim.initial_state(), (q, qd))
        kin = kinematics(changed, q, qd)
        return (
            kin.X_WB.p,
            frame_jacobian(changed, kin, 2, jnp.array([0.1, 0.2, 0.3])),
            inverse_dynamics(changed, q, qd, torque, wrench),
            rollout(sim, state, Inputs(np.ones((3, model.nu)), np.tile(wrench, (3, 1, 1)))).q,
        )

    parameters = {name: get(model) for name, get in (MODEL_PARAMETERS | MIMIC_PARAMETERS).items()}
    sizes = check_derivatives(
        dynamics_and_rollout, parameters | {"q": np.array([0.1, 0.4]), "qd": np.array([0.5, -0.8])}
    )
    assert min(sizes.values()) > 0.01, sizes


ACTUATION = {
    "servo": lambda p: Actuation(PDServo(p["kp"], p["kd"]), TorqueSpeedLimit(p["stall"], p["speed"])),
    "lag": lambda p: Actuation(FirstOrderLag(p["tau"]), AffineActuator()),
    "delay": lambda p: Actuation(TransportDelay(p["delay"], samples=4), AffineActuator()),
    "spring": lambda p: Actuation(SeriesElastic(p["k"], p["d"], p["J"])),
}
ACTUATION_PARAMETERS = {
    "servo": {"kp": 3.0, "kd": 0.2, "stall": 0.4, "speed": 5.0},
    "lag": {"tau": 0.02},
    "delay": {"delay": 0.0123},
    "spring": {"k": 30.0, "d": 0.5, "J": 0.02},
}


@pytest.mark.parametrize("kind", ACTUATION)
def test_actuators_through_a_rollout(kind):
    parameters = {name: np.full(2, value) for name, value in ACTUATION_PARAMETERS[kind].items()}
    commands = np.random.default_rng(3).normal(size=(6, 2))

    def final(p):
        sim = Simulator(double_pendulum(), actuation=ACTUATION[kind](p), dt=0.01)
        return rollout(sim, sim.initial_state([0.3, -0.4], [0.5, 0.2]), p["u"]).qd[-1]

    sizes = check_derivatives(final, parameters | {"u": commands})
    assert min(sizes.values()) > 0.0, f"a parameter of {kind} has no effect: {sizes}"


@pytest.mark.slow
@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_rollout_of_large_mechanism(model, integrator):
    check_rollout(model, integrator)


@pytest.mark.parametrize("integrator", [slow(name) if name == "rk4" else name for name in INTEGRATORS])
def test_rollout(integrator):
    """Rollout of two hinges, which compiles quickly; the second one is beyond its limit."""
    rng = np.random.default_rng(0)
    builder = ModelBuilder("small", gravity=(0.3, -0.4, -9.0))
    for name, parent in (("upper", "world"), ("lower", "upper")):
        builder.add_body(
            name,
            parent=parent,
            at=(0.2, 0.1, -0.5),
            rpy=(0.3, 0.2, 0.1),
            axis=(0.2, 1.0, 0.3),
            mass=0.8,
            com=(0.1, -0.1, -0.2),
            inertia=random_inertia(rng),
            armature=0.1,
            anchor=(0.05, 0.1, 0.0),
            lower=-2.5,
            upper=-2.4,
            rest=0.2,
            limit_stiffness=20.0,
            limit_damping=2.0,
            **COMMON,
        )
    check_rollout(builder.build(), integrator)


def check_rollout(model, integrator):
    rng = np.random.default_rng(4)
    parameters = _parameters(model, MODEL_PARAMETERS, PASSIVE_PARAMETERS)
    steps, nu = 4, model.nu
    parameters |= {
        "u": rng.normal(size=(steps, nu)),
        "wrench": rng.normal(size=(steps, model.nb, 6)),
        "dt": np.asarray(0.01),
    }

    def trajectory(p):
        changed, q, qd = _model_and_state(model, p)
        sim = eqx.tree_at(lambda s: (s.model, s.dt), Simulator(model, integrator=integrator), (changed, p["dt"]))
        state = eqx.tree_at(lambda s: (s.q, s.qd), sim.initial_state(), (q, qd))
        out = rollout(sim, state, Inputs(p["u"], p["wrench"]))
        return out.q, out.qd

    sizes = check_derivatives(trajectory, parameters, tolerance=1e-6)
    without_effect = set(parameters) - {name for name, size in sizes.items() if size > 1e-6}
    # only one of the two limits can be active
    assert len(without_effect) <= 1 and without_effect <= {"lower", "upper"}, without_effect


def test_reverse_mode_with_checkpoints_equals_forward_mode():
    """For a rollout long enough to be divided into √T checkpointed blocks."""
    sim = Simulator(pendulum(damping=0.1), dt=0.001, backend="xla")

    def final(mass, steps):
        changed = eqx.tree_at(lambda s: s.model.body.mass, sim, mass)
        return rollout(changed, sim.initial_state([1.0]), steps=steps).q[-1, 0]

    reverse = jax.jit(jax.grad(final), static_argnums=1)(jnp.ones(1), MAX_STORED_STEPS + 7)
    forward = jax.jit(jax.jacfwd(final), static_argnums=1)(jnp.ones(1), MAX_STORED_STEPS + 7)
    np.testing.assert_allclose(reverse, forward, rtol=1e-10)


@pytest.mark.slow
def test_memory_of_long_gradients_is_bounded():
    """Beyond `MAX_STORED_STEPS` steps, a reverse sweep stores about √T states, not all intermediate values."""
    sim = Simulator(pendulum(), dt=0.001, backend="xla")

    def memory(steps):
        def final(sim):
            return rollout(sim, sim.initial_state([1.0]), steps=steps).final.q[0]

        return jax.jit(jax.grad(final)).lower(sim).compile().memory_analysis().temp_size_in_bytes

    short, long = memory(1024), memory(16 * 1024)
    assert long < 8 * short, f"16 times the steps take {long / short:.1f} times the memory"
