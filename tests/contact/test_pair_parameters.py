"""Contact parameters per pair of shapes: from the model, or specified by the user."""

import equinox as eqx
import jax
import numpy as np
import pytest

from hybridsim.contact.candidates import find_candidates
from hybridsim.contact.compliant.compliant_contact import CompliantContact
from hybridsim.contact.impulse.impulse_contact import ImpulseContact
from hybridsim.contact.impulse.stabilization import RecoveryTime
from hybridsim.contact.pair_parameters import candidate_friction, pair_values
from hybridsim.core.errors import ModelError
from hybridsim.io.hulls import with_hulls
from hybridsim.model.builder import ModelBuilder
from hybridsim.model.floor import with_floor
from hybridsim.model.model import Model
from hybridsim.sim.rollout import rollout, simulate
from hybridsim.sim.simulator import Simulator
from support.contact_scenes import GRAVITY

STEPS, DT, SPEED = 200, 1e-3, 2.0


def two_balls() -> ModelBuilder:
    scene = ModelBuilder("balls").declare_unactuated()
    for k, x in enumerate((0.0, 1.0)):
        home = (x, 0, 0.1, 1, 0, 0, 0)
        scene.add_body(f"body{k}", joint=f"root{k}", kind="free", mass=1.0, inertia=(0.1, 0.1, 0.1), home=home)
        scene.add_geom(f"body{k}", "sphere", (0.1,), name=f"ball{k}", friction=0.3 + 0.4 * k)
    return scene.add_geom("world", "plane", (), name="floor", friction=0.5)


def sliding_block(friction: float = 0.2) -> Model:
    """A block that slides along x on rails, with less pair friction than that of the surfaces."""
    scene = ModelBuilder("block").declare_unactuated()
    scene.add_body("z", joint="z", kind="prismatic", axis=(0, 0, 1), at=(0, 0, 0.1))
    scene.add_body("block", parent="z", joint="x", kind="prismatic", axis=(1, 0, 0), mass=1.0, inertia=(1, 1, 1))
    scene.add_geom("block", "sphere", (0.1,), name="ball", friction=0.6)
    scene.add_geom("world", "plane", (), name="floor", friction=0.6)
    scene.spec.pair_friction = {("floor", "ball"): friction}
    return scene.build()


def friction_by_pair(model: Model) -> dict[str, float]:
    candidates = find_candidates(model)
    with jax.enable_x64(True):
        names, values = [p.name for p in candidates.pairs], candidate_friction(model.geometry, candidates).tolist()
        return dict(zip(names, values, strict=True))


@pytest.mark.parametrize("order", [1, -1])
def test_explicit_pair_friction_overrides_the_surfaces(order):
    scene = two_balls()
    scene.spec.geoms[1].priority = 1
    scene.spec.pair_friction = {("ball1", "floor")[::order]: 0.05, ("ball0", "ball1"): 0.9}
    model = scene.build()
    expected = {"ball0|floor": 0.5, "ball1|floor": 0.05, "ball0|ball1": 0.9}
    assert friction_by_pair(model) == expected
    assert friction_by_pair(with_hulls(model)) == expected
    expected |= {"ball0|below": 0.3, "ball1|below": 0.7}
    assert friction_by_pair(with_floor(model, -1.0, name="below")) == expected


def test_specified_friction_overrides_a_default():
    """The larger one counts only if both are specified."""

    def floor_friction(friction: float | None = None, ball_friction: float | None = None, priority: int = 0) -> float:
        ball = (
            ModelBuilder("ball").declare_unactuated().add_body("ball", kind="free", mass=1.0, inertia=(0.1, 0.1, 0.1))
        )
        settings = {} if ball_friction is None else {"friction": ball_friction}
        ball.add_geom("ball", "sphere", (0.1,), name="ball", priority=priority, **settings)
        return friction_by_pair(with_floor(ball.build(), friction=friction))["ball|floor"]

    assert floor_friction() == 1.0
    assert floor_friction(0.2) == 0.2 and floor_friction(1.4) == 1.4
    assert floor_friction(ball_friction=0.6) == 0.6
    assert floor_friction(0.2, ball_friction=0.6) == 0.6 and floor_friction(0.8, ball_friction=0.6) == 0.8
    assert floor_friction(ball_friction=0.6, priority=-1) == 1.0


def test_invalid_pairs_are_refused():
    for pair, friction, message in (
        (("ball0", "ice"), 0.1, "there is no shape 'ice'"),
        (("ball0", "ball1"), -0.1, "'ball0' and 'ball1' is -0.1"),
        (("ball0", "ball1"), np.nan, "'ball0' and 'ball1' is nan"),
    ):
        scene = two_balls()
        scene.spec.pair_friction = {pair: friction}
        with pytest.raises(ModelError, match=message):
            scene.build()
    scene.spec.pair_friction = {("ball0", "ball1"): 0.1, ("ball1", "ball0"): 0.2}
    with pytest.raises(ModelError, match="in both orders"):
        scene.build()


SOME = {"ball1|floor": 0.25}
"""A value for one pair only."""


@pytest.mark.parametrize(
    ("contact", "values", "expected"),
    [
        (ImpulseContact(friction=SOME), lambda c: c.friction, [0.7, 0.5, 0.25]),
        (ImpulseContact(restitution=SOME), lambda c: c.restitution, [0.1, 0.4, 0.25]),
        (ImpulseContact(softness=SOME), lambda c: c.softness, [0.2, 0.3, 0.25]),
        (ImpulseContact(stabilization=RecoveryTime(SOME)), lambda c: c.stabilization.recovery_time, [0.02, 0.04, 0.25]),
        (CompliantContact(friction=SOME), lambda c: c.friction, [0.7, 0.5, 0.25]),
    ],
    ids=["friction", "restitution", "softness", "recovery time", "compliant friction"],
)
@pytest.mark.filterwarnings("ignore:compliant contact does not use the restitution")
def test_unmatched_pairs_keep_the_values_of_the_model(contact, values, expected):
    scene = two_balls()
    scene.spec.geoms[0].restitution = 0.1
    scene.spec.geoms[2].restitution, scene.spec.geoms[2].softness, scene.spec.geoms[2].recovery_time = 0.4, 0.4, 0.06
    np.testing.assert_allclose(values(Simulator(scene.build(), contact=contact).contact), expected, rtol=1e-15)


@pytest.mark.parametrize("field", ["stiffness", "damping"])
def test_unmatched_pairs_keep_default_compliance(field):
    model = two_balls().build()
    plain = getattr(Simulator(model, contact="compliant").contact, field)
    specified = getattr(Simulator(model, contact=CompliantContact(**{field: SOME})).contact, field)
    np.testing.assert_array_equal(specified, [*plain[:2], 0.25])


def test_parameters_without_a_default_must_cover_every_pair():
    with pytest.raises(ValueError, match=r"cfm is not specified for 'ball0\|ball1', 'ball0\|floor'; add '\*'"):
        Simulator(two_balls().build(), contact=ImpulseContact(cfm=SOME))


def test_surface_compliances_are_in_series():
    """A surface without a stiffness is rigid, and one with priority counts for both."""
    scene = two_balls()
    for geom, stiffness, damping in zip(scene.spec.geoms, (3e4, 6e4, np.inf), (300.0, np.inf, np.inf), strict=True):
        geom.stiffness, geom.damping = stiffness, damping

    def values(exponent: float) -> tuple[np.ndarray, np.ndarray]:
        contact = Simulator(scene.build(), contact=CompliantContact(exponent=exponent)).contact
        return contact.stiffness, contact.damping

    stiffness, damping = values(1.0)
    np.testing.assert_allclose(stiffness, [2e4, 3e4, 6e4])
    # at a depth of 1 mm; 1 s/m times the stiffness where no surface specifies it
    np.testing.assert_allclose(damping, [300.0 / 1e-3, 300.0 / 1e-3, 6e4])
    stiffness, damping = values(1.5)
    np.testing.assert_allclose(stiffness * 1e-3**1.5, np.array([2e4, 3e4, 6e4]) * 1e-3)
    np.testing.assert_allclose(damping[:2] * 1e-3**1.5, 300.0)
    scene.spec.geoms[1].priority = 1
    np.testing.assert_allclose(values(1.0)[0], [6e4, 3e4, 6e4])


@pytest.mark.parametrize("backend", ["native", pytest.param("xla", marks=pytest.mark.slow)])
def test_stiffness_of_a_surface_is_a_parameter_with_a_gradient(backend):
    """The equilibrium depth of a ball follows from its stiffness, with the derivative −depth/stiffness."""
    scene = ModelBuilder("ball").declare_unactuated()
    scene.add_body("ball", joint="z", kind="prismatic", axis=(0, 0, 1), mass=1.0, inertia=(1, 1, 1))
    scene.add_geom("ball", "sphere", (0.1,), name="ball", stiffness=2e4, damping=200.0)
    scene.add_geom("world", "plane", (), name="floor", at=(0, 0, -0.1))
    sim = Simulator(scene.build(), contact=CompliantContact(exponent=1.0), dt=DT, backend=backend)

    def final_height(stiffness):
        changed = eqx.tree_at(lambda s: s.model.geometry.stiffness, sim, stiffness)
        return rollout(changed, sim.initial_state(), steps=1000).q[-1, 0]

    with jax.enable_x64(True):
        height, gradient = jax.value_and_grad(final_height)(sim.model.geometry.stiffness)
    assert height == pytest.approx(-GRAVITY / 2e4, rel=1e-3)
    assert gradient[0] == pytest.approx(GRAVITY / 2e4**2, rel=1e-2) and gradient[1] == 0.0


NAMES = ["ball0|ball1", "ball0|floor", "ball1|floor"]
"""The pairs in order."""


@pytest.mark.parametrize(
    ("specified", "expected"),
    [
        ({"*": 0.1}, [0.1, 0.1, 0.1]),
        ({"*": 0.1, "floor": 0.2}, [0.1, 0.2, 0.2]),
        ({"*": 0.1, "world": 0.2}, [0.1, 0.2, 0.2]),
        ({"*": 0.1, "body1": 0.2}, [0.2, 0.1, 0.2]),
        ({"*": 0.1, "ball[1-9]": 0.2}, [0.2, 0.1, 0.2]),
        ({"*": 0.1, "floor|ball0": 0.2}, [0.1, 0.2, 0.1]),
        ({"*": 0.1, "world|body*": 0.2}, [0.1, 0.2, 0.2]),
        ({"ball1": 0.3, "floor": 0.2}, [0.3, 0.2, 0.2]),
        ({"floor": 0.2, "ball1": 0.3}, [0.3, 0.2, 0.3]),
        ({"floor": 0.2, "*": 0.3}, [0.3, 0.3, 0.3]),
        (np.array([0.1, 0.2, 0.3]), [0.1, 0.2, 0.3]),
    ],
)
def test_patterns_match_as_for_only_and_exclude(specified, expected):
    """The last matching pattern applies."""
    model = two_balls().build()
    candidates = find_candidates(model)
    assert [pair.name for pair in candidates.pairs] == NAMES
    np.testing.assert_array_equal(pair_values("friction", specified, candidates), expected)
    if isinstance(specified, dict):
        for pattern in specified:
            chosen = {pair.name for pair in find_candidates(model, only=(pattern,)).pairs}
            assert {NAMES[k] for k in candidates.match(pattern)} == chosen


def test_patterns_match_merged_links():
    scene = two_balls()
    scene.add_body("foot", parent="body0", kind="fixed").add_geom("foot", "sphere", (0.1,), name="sole")
    candidates = find_candidates(scene.build())
    values = pair_values("friction", {"*": 0.1, "foot|floor": 0.2}, candidates)
    assert [pair.name for k, pair in enumerate(candidates.pairs) if values[k] == 0.2] == ["sole|floor"]


@pytest.mark.parametrize(
    ("specified", "message"),
    [
        (
            {"*": 0.1, "foot*": 0.2},
            r"no pair of shapes matches 'foot\*' of friction; valid names are 'ball0\|ball1', 'ball0",
        ),
        ({"*": 0.1, "ball0|ball0": 0.2}, r"no pair of shapes matches 'ball0\|ball0'"),
        ({"ball0": 0.1}, r"friction is not specified for 'ball1\|floor'; add '\*' for all other pairs"),
        ({"*": np.array([0.1, 0.2])}, r"friction has shape \(3, 2\)"),
        (np.array([0.1, 0.2]), r"friction has shape \(2,\), but there are 3 pairs"),
        (np.array("ice"), "friction must be numeric, not array"),
    ],
)
def test_invalid_values_are_refused(specified, message):
    with pytest.raises(ValueError, match=message):
        pair_values("friction", specified, find_candidates(two_balls().build()))


@pytest.mark.parametrize("backend", ["native", pytest.param("xla", marks=pytest.mark.slow)])
@pytest.mark.parametrize("contact", [ImpulseContact(), CompliantContact()], ids=["impulse", "compliant"])
def test_a_block_decelerates_by_the_friction_of_its_pair(contact, backend):
    """Speed change and its derivative with respect to friction are −μ g t and −g t."""
    sim = Simulator(sliding_block(), contact=contact, dt=DT, backend=backend)
    start = sim.initial_state(qd=[0.0, SPEED])
    # impulse contact still settles by nanometres per second; compliant contact is unloaded at first, and oscillates
    tolerance = 1e-7 if isinstance(contact, ImpulseContact) else 0.1
    speed = simulate(sim, start, steps=STEPS).qd[-1, 1]
    assert SPEED - speed == pytest.approx(0.2 * GRAVITY * STEPS * DT, rel=tolerance)

    def final_speed(friction):
        changed = eqx.tree_at(lambda s: s.model.geometry.pair_friction, sim, friction)
        return rollout(changed, start, steps=STEPS).qd[-1, 1]

    with jax.enable_x64(True):
        assert jax.grad(final_speed)(np.array([0.2]))[0] == pytest.approx(-GRAVITY * STEPS * DT, rel=tolerance)
