"""Random and degenerate contact states: no step and no gradient is ever NaN or infinite.

Coordinates and velocities are drawn over many orders of magnitude, zero included, so that bodies overlap deeply, are
concentric or nearly so, have parallel axes or edges, and are at rest or collide fast.
"""

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from hybridsim.contact.candidates import find_candidates
from hybridsim.contact.collision.dispatch import ROUTINES
from hybridsim.contact.compliant.compliant_contact import CompliantContact
from hybridsim.contact.impulse.impulse_contact import ImpulseContact
from hybridsim.core.result import Status
from hybridsim.model.builder import ModelBuilder
from hybridsim.model.joints import ElementaryJointType
from hybridsim.model.model import Model
from hybridsim.sim.rollout import rollout
from hybridsim.sim.simulator import Simulator
from hybridsim.sim.state import State
from support.contact_pairs import ARROW, CUBE, CUBE_FACES
from support.contact_scenes import body_on_plane, solid_inertia

# the home configuration is not used: every coordinate is drawn
pytestmark = pytest.mark.filterwarnings("ignore:.*overlap in its home")

EMPTY = MappingProxyType({})

SCALES = np.array([0.0, 1e-13, 1e-11, 1e-7, 1e-4, 0.01, 0.1, 0.5])
"""Distances from coincidence [m] and angles from alignment [rad]; times ten, velocities."""
RIGHT_ANGLES = Rotation.create_group("O")
"""Attitudes in which edges and axes are parallel."""


INERTIA = solid_inertia("box", (0.1, 0.15, 0.2), 1.0)
"""Inertia of bodies of any shape: motions need not be realistic."""


def body_and_obstacle(
    shape: str,
    size: tuple[float, ...],
    other: str,
    other_size: tuple[float, ...],
    options: Mapping = EMPTY,
    **other_options,
) -> Model:
    """A free body and a shape fixed in the world."""
    scene = ModelBuilder("body and world").declare_unactuated().add_body("body", kind="free", mass=1.0, inertia=INERTIA)
    return scene.add_geom("body", shape, size, **options).add_geom("world", other, other_size, **other_options).build()


def outlines_and_tip() -> Model:
    """Both kinds of outlines, moving in a plane; a corner of the concave one is at the initial position of the tip."""
    scene = ModelBuilder("pushing").declare_unactuated().add_body("body", kind="planar", mass=1.0, inertia=INERTIA)
    scene.add_geom("body", "polygon", (0.0, 0.0, 0.1), data=ARROW - ARROW[4])
    scene.add_geom("body", "ellipse", (0.1, 0.2, 0.1))
    return scene.add_geom("world", "cylinder", (0.05, 0.1)).build()


def two_boxes() -> Model:
    scene = ModelBuilder("boxes").declare_unactuated()
    for k, size in enumerate([(0.1, 0.1, 0.1), (0.1, 0.2, 0.1)]):
        scene.add_body(f"box{k}", kind="free", mass=1.0, inertia=solid_inertia("box", size, 1.0))
        scene.add_geom(f"box{k}", "box", size)
    return scene.build()


def five_links() -> Model:
    scene = ModelBuilder("pendulum")
    for k in range(5):
        attachment = {"parent": f"link{k - 1}", "at": (0, 0, -0.5)} if k else {"at": (0, 0, 1)}
        scene.add_body(
            f"link{k}",
            axis=(0, 1, 0),
            mass=1.0,
            com=(0, 0, -0.5),
            inertia=solid_inertia("sphere", (0.15,), 1.0),
            **attachment,
        )
        scene.add_geom(f"link{k}", "sphere", (0.15,), at=(0, 0, -0.5), group=1, mask=2)
    return scene.add_geom("world", "plane", (), group=2, mask=1).build()


HILLS = {"data": np.random.default_rng(0).normal(scale=0.2, size=(5, 4))}
DIE = {"data": 0.1 * CUBE, "faces": CUBE_FACES}
POINTS = {"data": [(0.0, 0.0, 0.0), (0.1, 0.0, 0.0), (-0.1, 0.1, 0.0), (0.0, -0.1, 0.05)]}
SCENES = {
    "cube on plane": partial(body_on_plane, "box", (0.1, 0.1, 0.1)),
    "capsule on plane": partial(body_on_plane, "capsule", (0.1, 0.2)),
    "cylinder on plane": partial(body_and_obstacle, "cylinder", (0.1, 0.2), "plane", ()),
    "ellipsoid on plane": partial(body_and_obstacle, "ellipsoid", (0.1, 0.2, 0.3), "plane", ()),
    "points on plane": partial(body_and_obstacle, "points", (0.01,), "plane", (), POINTS),
    "hull on plane": partial(body_and_obstacle, "mesh", (1, 1, 1), "plane", (), DIE),
    "spheres": partial(body_and_obstacle, "sphere", (0.1,), "sphere", (0.2,)),
    "sphere and capsule": partial(body_and_obstacle, "sphere", (0.1,), "capsule", (0.1, 0.2)),
    "capsules": partial(body_and_obstacle, "capsule", (0.1, 0.2), "capsule", (0.1, 0.3)),
    "capsule and box": partial(body_and_obstacle, "capsule", (0.1, 0.2), "box", (0.1, 0.2, 0.3)),
    "sphere and box": partial(body_and_obstacle, "sphere", (0.1,), "box", (0.1, 0.2, 0.3)),
    "boxes": two_boxes,
    "hull and sphere": partial(body_and_obstacle, "mesh", (1, 1, 1), "sphere", (0.1,), DIE),
    "hull and box": partial(body_and_obstacle, "mesh", (1, 1, 1), "box", (0.1, 0.2, 0.3), DIE),
    "pendulum on ground": five_links,
    "sphere on terrain": partial(body_and_obstacle, "sphere", (0.1,), "heightfield", (0.4, 0.3), **HILLS),
    "capsule on terrain": partial(body_and_obstacle, "capsule", (0.1, 0.2), "heightfield", (0.4, 0.3), **HILLS),
    "box on terrain": partial(body_and_obstacle, "box", (0.1, 0.1, 0.1), "heightfield", (0.4, 0.3), **HILLS),
    "points on terrain": partial(body_and_obstacle, "points", (0.01,), "heightfield", (0.4, 0.3), POINTS, **HILLS),
    "hull on terrain": partial(body_and_obstacle, "mesh", (1, 1, 1), "heightfield", (0.4, 0.3), DIE, **HILLS),
    "outlines and tip": outlines_and_tip,
}

IMPULSE = {"friction": 0.5, "softness": 0.2, "cfm": 0.01}
CONTACTS = {
    "unrolled": ImpulseContact(**IMPULSE, restitution=0.3),
    "implicit": ImpulseContact(**IMPULSE, restitution=0.3, gradient="implicit"),
    "circular cone": ImpulseContact(**IMPULSE, cone="circular"),
    "implicit circular cone": ImpulseContact(**IMPULSE, cone="circular", gradient="implicit"),
    "reach": ImpulseContact(**IMPULSE, reach=0.1),
    "compliant": CompliantContact(friction=0.5),
    "brown": CompliantContact(friction=0.5, law="brown", reach=0.1),
}


def multiscale_values(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Random values of many scales; one scale along the last axis, and sometimes a single nonzero value there."""
    sizes = rng.choice(SCALES, size=(*shape[:-1], 1))
    only = np.eye(shape[-1])[rng.integers(shape[-1], size=shape[:-1])]
    return sizes * rng.normal(size=shape) * np.where(rng.random((*shape[:-1], 1)) < 0.3, only, 1.0)


def attitudes(rng: np.random.Generator, count: int) -> np.ndarray:
    """Quaternions: aligned with the world's axes up to a rotation of any size."""
    aligned = RIGHT_ANGLES[rng.integers(len(RIGHT_ANGLES), size=count)]
    return (Rotation.from_rotvec(multiscale_values(rng, count, 3)) * aligned).as_quat()[:, [3, 0, 1, 2]]


def random_states(sim: Simulator, count: int, seed: int) -> tuple[State, np.ndarray]:
    """Random states and commands."""
    rng, model = np.random.default_rng(seed), sim.model
    q = np.zeros((count, model.nq))
    for kind, (first, last) in zip(model.topology.joint_types, model.topology.q_slices, strict=True):
        if kind is ElementaryJointType.FREE:
            q[:, first : first + 3] = multiscale_values(rng, count, 3)
            q[:, first + 3 : last] = attitudes(rng, count)
        elif kind is ElementaryJointType.PRISMATIC:
            q[:, first:last] = multiscale_values(rng, count, last - first)
        else:
            right = 0.5 * np.pi * rng.integers(-2, 3, size=(count, last - first))
            q[:, first:last] = right + multiscale_values(rng, count, last - first)
    qd = 10.0 * np.concatenate([multiscale_values(rng, count, 1) for _ in range(model.nv)], axis=1)
    qd *= rng.random((count, 1)) < 0.8  # the others are at rest
    aux = sim.initial_state().aux
    aux = jax.tree.map(lambda x: np.abs(multiscale_values(rng, count, len(x))) if x.size else x, aux)
    commands = multiscale_values(rng, count, model.nu) if model.nu else np.zeros((count, 0))
    return State(q, qd, np.zeros(count), aux), commands


def check_finite(model: Model, contact, count: int, backend: str = "native") -> None:
    """Check that steps from many states are finite, with gradients with respect to states, commands and parameters."""
    sim = Simulator(model, contact=contact, dt=1e-3, backend=backend)
    states, commands = random_states(sim, count, seed=1)

    def parts(sim: Simulator):
        geometry = sim.model.geometry
        return sim.contact, geometry.size, geometry.data, geometry.recovery_time

    parameters, static = eqx.partition(parts(sim), eqx.is_inexact_array)

    def step(parameters, states, commands):
        changed = eqx.tree_at(parts, sim, eqx.combine(parameters, static))
        trajectory = jax.vmap(lambda state, u: rollout(changed, state, u[None]))(states, commands)
        return trajectory.final, trajectory.status

    @jax.jit
    def step_and_gradient(parameters, states, commands):
        final, pullback, status = jax.vjp(step, parameters, states, commands, has_aux=True)
        return final, status, pullback(jax.tree.map(lambda x: jnp.cos(jnp.arange(x.size)).reshape(x.shape), final))

    final, status, gradient = step_and_gradient(parameters, states, commands)
    failed = np.flatnonzero(np.asarray(status) != Status.OK)
    assert not len(failed), f"{len(failed)} steps diverge, q = {states.q[failed[0]]}, qd = {states.qd[failed[0]]}"
    for what, tree in (("state", final), ("gradient", gradient)):
        for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
            bad = np.argwhere(~np.isfinite(leaf))
            assert not len(bad), f"{what} {jax.tree_util.keystr(path)} is not finite in {len(bad)} entries: {bad[:3]}"


QUICK = {
    ("spheres", "unrolled"),
    ("capsules", "implicit"),
    ("cube on plane", "compliant"),
    ("cylinder on plane", "compliant"),
    ("hull and sphere", "compliant"),
    ("outlines and tip", "compliant"),
}
"""Quick to compile, with every kind of derivative once and most kinds of shapes."""


@pytest.mark.parametrize(("scene", "contact"), sorted(QUICK))
def test_steps_and_gradients_of_random_states_are_finite(scene, contact):
    check_finite(SCENES[scene](), CONTACTS[contact], 2_000)


def test_every_routine_has_a_scene():
    assert {kinds for make in SCENES.values() for kinds, _ in find_candidates(make()).pair_groups} == set(ROUTINES)


@pytest.mark.slow
@pytest.mark.parametrize("contact", CONTACTS)
@pytest.mark.parametrize("scene", SCENES)
def test_steps_and_gradients_of_100_000_random_states_are_finite(scene, contact):
    """The total for every contact model, over all scenes."""
    check_finite(SCENES[scene](), CONTACTS[contact], 100_000 // len(SCENES))
