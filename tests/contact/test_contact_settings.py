"""Settings of contact models: public API, validation, defaults, and warnings of the simulator."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hybridsim
from hybridsim.contact.compliant.compliant_contact import CompliantContact
from hybridsim.contact.compliant.friction_laws import Andersson, Brown, Coulomb, Hollars
from hybridsim.contact.impulse.impulse_contact import ImpulseContact
from hybridsim.contact.impulse.stabilization import ERP, Baumgarte, RecoveryTime
from hybridsim.core.errors import ModelError, ModelWarning
from hybridsim.io.load import load_model
from hybridsim.model.builder import ModelBuilder
from hybridsim.model.contact_grid import contact_grid
from hybridsim.model.floor import with_floor
from hybridsim.sim.rollout import rollout, simulate
from hybridsim.sim.simulator import Simulator, _bind_contact
from support.contact_scenes import body_on_plane

BASE_AND_LINK = """<robot name="arm">
<link name="base"><collision><geometry><box size="0.4 0.4 0.4"/></geometry></collision></link>
<link name="foot"><collision><geometry><box size="0.5 0.5 0.1"/></geometry></collision></link>
<link name="arm"><inertial><origin xyz="0.2 0 0"/><mass value="1"/>
  <inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>
  <collision><origin xyz="0.2 0 0"/><geometry><box size="0.4 0.1 0.1"/></geometry></collision></link>
<link name="hand"><collision><geometry><sphere radius="0.1"/></geometry></collision></link>
<joint name="to_foot" type="fixed"><parent link="base"/><child link="foot"/></joint>
<joint name="hinge" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/></joint>
<joint name="to_hand" type="fixed"><parent link="arm"/><child link="hand"/></joint>
</robot>"""


def test_an_arm_does_not_collide_with_its_base(tmp_path):
    """Nor do links fixed to the arm with links fixed to the base."""
    path = tmp_path / "arm.urdf"
    path.write_text(BASE_AND_LINK)
    with pytest.warns(ModelWarning, match="with_floor"):
        sim = Simulator(load_model(path), contact="impulse")
    assert sim.contact.candidates.names == ()
    trajectory = simulate(sim, sim.initial_state(q=[0.5]), steps=100)
    assert abs(trajectory.qd[-1, 0]) > 0.1


def test_with_floor_adds_a_floor():
    ball = ModelBuilder("ball").declare_unactuated()
    ball.add_body("ball", joint="root", kind="free", mass=1.0, inertia=(0.01, 0.01, 0.01), home=(0, 0, 1, 1, 0, 0, 0))
    ball.add_geom("ball", "sphere", (0.1,), name="ball", group=4, mask=4)
    model = with_floor(ball.build(), 0.5, friction=0.3, restitution=0.2)
    sim = Simulator(model, contact="impulse")
    assert sim.contact.candidates.names == ("ball|floor",)
    assert simulate(sim, steps=2000).q[-1, 2] == pytest.approx(0.6, abs=1e-4)
    assert model.geometry.friction[-1] == 0.3 and model.geometry.restitution[-1] == 0.2
    with pytest.raises(ValueError, match="already has"):
        with_floor(model)
    with pytest.raises(ValueError, match="restitution between"):
        with_floor(model, friction=-1.0, name="other")


@pytest.mark.parametrize("dt", [1e-3, 1e-2])
@pytest.mark.parametrize("stabilization", [ERP(), Baumgarte()], ids=["erp", "baumgarte"])
def test_default_stabilizations_are_stable_at_every_time_step(stabilization, dt):
    model = body_on_plane("box", (0.05, 0.05, 0.05), height=0.1)
    sim = Simulator(model, contact=ImpulseContact(stabilization=stabilization), dt=dt)
    trajectory = simulate(sim, steps=round(1.0 / dt))
    assert trajectory.q[:, 2].max() < 0.1501 and trajectory.q[-1, 2] == pytest.approx(0.05, abs=2e-3)


@pytest.mark.parametrize("backend", ["native", "xla"])
def test_joint_limits_need_no_shapes(backend):
    arm = ModelBuilder("arm").declare_unactuated()
    arm.add_body(
        "link", joint="hinge", axis=(0, 1, 0), mass=1.0, com=(0.2, 0, 0), inertia=(0.01, 0.01, 0.01), upper=0.3
    )
    trajectory = simulate(Simulator(arm.build(), contact="impulse", backend=backend), steps=1000)
    assert trajectory.q[-1, 0] == pytest.approx(0.3, abs=1e-3)


def test_default_compliance_depends_only_on_the_mechanisms_in_contact():
    """A heavy body without contact has no effect."""

    def contact(other: float):
        scene = ModelBuilder("two").declare_unactuated()
        for name, mass, x in (("block", 1.0, 0.0), ("other", other, 3.0)):
            home = (x, 0, 0.1, 1, 0, 0, 0)
            scene.add_body(name, joint=f"{name}_root", kind="free", mass=mass, inertia=(0.01, 0.01, 0.01), home=home)
            scene.add_geom(name, "sphere", (0.1,), name=name)
        scene.add_geom("world", "plane", (), name="floor")
        return Simulator(scene.build(), contact=CompliantContact(only=("block|floor",))).contact

    light, heavy = contact(1.0), contact(500.0)
    np.testing.assert_array_equal(light.stiffness, heavy.stiffness)
    np.testing.assert_array_equal(light.law.transition_velocity, heavy.law.transition_velocity)


def test_initial_overlaps_are_reported():
    """Within a tree when the simulator is built, between trees when `initial_state` uses the home configuration."""
    scene = ModelBuilder("arm").declare_unactuated()
    scene.add_body("base", joint="root", kind="free", mass=1.0, inertia=(0.1, 0.1, 0.1), home=(0, 0, 0.1, 1, 0, 0, 0))
    scene.add_geom("base", "box", (0.1, 0.1, 0.1), name="base")
    scene.add_body("hip", parent="base", joint="hip", axis=(1, 0, 0), at=(0.1, 0, 0), mass=0.1, inertia=(0.01,) * 3)
    scene.add_body("thigh", parent="hip", joint="thigh", axis=(0, 1, 0), mass=0.1, inertia=(0.01,) * 3)
    scene.add_geom("thigh", "capsule", (0.03, 0.1), name="thigh", at=(0, 0, 0.1))
    model = scene.build()
    with pytest.warns(
        ModelWarning, match=r"overlap in its home .* thigh\|base by \d.* mm; .*exclude=\('thigh\|base',\)"
    ):
        Simulator(model, contact="impulse")
    # resting on the floor within a millimetre is intended
    for height in (0.0, 0.0009):
        Simulator(with_floor(model, height), contact=ImpulseContact(self_collision=False)).initial_state()
    sim = Simulator(with_floor(model, 0.05), contact=ImpulseContact(self_collision=False))
    sim.initial_state(q=[0, 0, 0.2, 1, 0, 0, 0, 0, 0])
    with pytest.warns(ModelWarning, match=r"base\|floor by 50 mm") as caught:
        sim.initial_state()
    assert caught[0].filename == __file__


@pytest.mark.filterwarnings("error")
def test_rollouts_from_a_given_state_do_not_warn_about_the_home_configuration():
    ball = ModelBuilder("ball").declare_unactuated()
    ball.add_body("ball", kind="free", mass=1.0, inertia=(0.01, 0.01, 0.01)).add_geom("ball", "sphere", (0.1,))
    sim = Simulator(with_floor(ball.build()), contact="impulse", backend="xla")
    with jax.enable_x64(True):
        rollout(sim, sim.initial_state(q=[0, 0, 1, 1, 0, 0, 0]), steps=1)
    with pytest.warns(ModelWarning, match="overlap in its home"):
        sim.initial_state()


def test_warnings_are_shown_at_the_users_line():
    ball = ModelBuilder("ball").declare_unactuated()
    ball.add_body("ball", kind="free", mass=1.0, inertia=(0.01, 0.01, 0.01)).add_geom("ball", "sphere", (0.1,))
    ball.add_geom("world", "ellipsoid", (0.1, 0.1, 0.2))
    with pytest.warns(ModelWarning) as caught:
        Simulator(ball.build(), contact="impulse")
    assert [w.filename for w in caught] == [__file__, __file__]


def test_a_file_that_disables_contact_is_reported(tmp_path):
    path = tmp_path / "m.xml"
    path.write_text(
        '<mujoco><option><flag contact="disable"/></option><worldbody><geom name="f" type="plane" size="0 0 1"/>'
        '<body pos="0 0 1"><freejoint/><geom name="g" size=".1"/></body></worldbody>'
        '<contact><pair geom1="f" geom2="g"/></contact></mujoco>'
    )
    with pytest.warns(ModelWarning, match='<flag contact="disable"/>'):
        sim = Simulator(load_model(path), contact="impulse")
    assert sim.contact.candidates.names == ()


def test_compliant_contact_warns_about_restitution():
    with pytest.warns(ModelWarning, match=r"does not use the restitution of 'body_geom0\|floor"):
        Simulator(body_on_plane("sphere", (0.1,), restitution=0.5), contact="compliant")


def test_contact_settings_are_public():
    for item in (Baumgarte, ERP, RecoveryTime, Andersson, Brown, Coulomb, Hollars, contact_grid):
        namespace = hybridsim.model if item is contact_grid else hybridsim.contact
        assert getattr(namespace, item.__name__) is item


def test_a_class_is_not_a_contact_model():
    for contact_class in (ImpulseContact, CompliantContact):
        with pytest.raises(TypeError, match=rf"write {contact_class.__name__}\(\)"):
            _bind_contact(contact_class, body_on_plane("sphere", (0.1,)), np.array(1e-3), "euler")


def test_time_steps_can_be_traced_and_masses_only_with_explicit_parameters():
    """The time step can be traced; masses must be concrete unless all parameters that depend on them are specified."""
    model = body_on_plane("sphere", (0.1,), height=-1e-4)

    def speed(model, dt, contact):
        sim = Simulator(model, contact=contact, dt=dt, backend="xla")
        return rollout(sim, sim.initial_state(), steps=1).qd[-1, 5]

    def speed_as_function_of_mass(contact):
        return lambda mass: speed(eqx.tree_at(lambda m: m.body.mass, model, mass[None]), 1e-3, contact)

    with jax.enable_x64(True):
        value, slope = jax.value_and_grad(lambda dt: speed(model, dt, CompliantContact()))(1e-3)
        specified = CompliantContact(stiffness=1e5, damping=1e5, law=Coulomb(0.01))
        assert float(jax.grad(speed_as_function_of_mass(specified))(jnp.asarray(1.0))) != 0.0
        with pytest.raises(ValueError, match="simulator with contact scales softness and stiffness by masses"):
            jax.grad(speed_as_function_of_mass(CompliantContact()))(jnp.asarray(1.0))
    assert float(slope) == pytest.approx(float(value) / 1e-3, rel=1e-9)


INVALID = {
    "negative": (lambda: ImpulseContact(friction=-0.5), "finite and nonnegative"),
    "negative by name": (lambda: ImpulseContact(friction={"*": -0.5}), "finite and nonnegative"),
    "infinite by name": (lambda: ImpulseContact(friction={"*": np.inf}), "finite and nonnegative"),
    "not a number by name": (lambda: CompliantContact(stiffness={"*": np.nan}), "finite and nonnegative"),
    "restitution above 1": (lambda: ImpulseContact(restitution=5.0), "between 0 and 1"),
    "erp above 1": (lambda: ImpulseContact(stabilization=ERP(3.0)), "between 0 and 1"),
    "no exponent": (lambda: CompliantContact(exponent=0.0), "exponent must be positive"),
    "reach": (lambda: ImpulseContact(reach=float("nan")), "must be nonnegative"),
}


@pytest.mark.parametrize("case", INVALID)
def test_invalid_parameters_are_refused(case):
    make, message = INVALID[case]
    with pytest.raises(ValueError, match=message):
        Simulator(body_on_plane("sphere", (0.1,)), contact=make())


@pytest.mark.parametrize(
    "invalid",
    [
        {"friction": -0.5},
        {"friction": np.nan},
        {"restitution": 5.0},
        {"softness": np.inf},
        {"stiffness": 0.0},
        {"damping": -1.0},
    ],
)
def test_invalid_surfaces_are_refused(invalid):
    with pytest.raises(ModelError, match=next(iter(invalid))):
        body_on_plane("sphere", (0.1,), **invalid)
