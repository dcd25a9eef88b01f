"""Random mechanisms for tests, with all joint types, branching and off-diagonal inertias; valid by construction."""

import equinox as eqx
import numpy as np
from hypothesis import strategies as st

from hybridsim.model.builder import ModelBuilder
from hybridsim.model.coordinates import zero_configuration
from hybridsim.model.joints import ElementaryJointType
from hybridsim.model.model import Model

KINDS = ("revolute", "continuous", "prismatic", "spherical", "universal", "planar", "fixed")


def random_model(
    seed: int, bodies: int = 6, *, kinds=KINDS, floating: bool | None = None, mimic: bool = False
) -> Model:
    """A random tree of `bodies` bodies (compound joints add massless ones)."""
    rng = np.random.default_rng(seed)
    floating = bool(rng.integers(2)) if floating is None else floating
    builder = ModelBuilder(f"random{seed}", gravity=rng.normal(size=3) * 5.0)
    names = ["world"]
    one_dof_joints = []
    for i in range(bodies):
        # the first joint moves, so that every model has a degree of freedom
        kind = ("free" if floating else "revolute") if i == 0 else str(rng.choice(kinds))
        parameters = {}
        if kind in ("revolute", "continuous", "prismatic"):
            if mimic and one_dof_joints and rng.integers(2):
                parameters = {"mimic": one_dof_joints[0], "mimic_ratio": rng.normal(), "mimic_offset": rng.normal()}
            else:
                one_dof_joints.append(f"j{i}")
        if kind not in ("free", "fixed", "prismatic"):
            parameters["anchor"] = rng.normal(size=3) * 0.3 if kind in ("revolute", "spherical") else np.zeros(3)
        # the parent is one of the last three bodies; a body fixed to the world would not be part of the mechanism
        first = max(len(names) - 3, 1 if kind == "fixed" else 0)
        builder.add_body(
            f"b{i}",
            parent="world" if kind == "free" else names[rng.integers(first, len(names))],
            joint=f"j{i}",
            kind=kind,
            at=rng.normal(size=3) if kind != "free" else np.zeros(3),
            rpy=rng.uniform(-3, 3, size=3) if kind != "free" else np.zeros(3),
            axis=rng.normal(size=3),
            axis2=rng.normal(size=3),
            mass=rng.uniform(0.5, 3.0),
            com=rng.normal(size=3) * 0.3,
            inertia=random_inertia(rng),
            armature=0.1 if kind == "free" else rng.uniform(0.0, 0.3),
            **parameters,
        )
        names.append(f"b{i}")
    return builder.build(merge=bool(rng.integers(2)))


def random_inertia(rng: np.random.Generator) -> np.ndarray:
    """Inertia of random points: positive definite, with strict triangle inequality."""
    points = rng.normal(size=(8, 3)) * 0.3
    return sum(p @ p * np.eye(3) - np.outer(p, p) for p in points) / 8.0


def random_q(model: Model, rng: np.random.Generator) -> np.ndarray:
    """Random coordinates with unit quaternions."""
    q = zero_configuration(model.topology) + rng.uniform(-2.0, 2.0, size=model.nq)
    bounds = zip(model.topology.joint_types, model.topology.q_slices, strict=True)
    for kind, (_, stop) in bounds:
        if kind in (ElementaryJointType.SPHERICAL, ElementaryJointType.FREE):
            q[stop - 4 : stop] = rng.normal(size=4)
            q[stop - 4 : stop] /= np.linalg.norm(q[stop - 4 : stop])
    return q


def random_state(model: Model, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random coordinates, velocities and one more vector of the same length."""
    rng = np.random.default_rng(seed)
    return random_q(model, rng), rng.normal(size=model.nv), rng.normal(size=model.nv)


def without_free_armature(model: Model) -> Model:
    """The model without armature of free joints, which has no weight and no part in the momentum."""
    free = [kind is ElementaryJointType.FREE for kind in model.topology.joint_types for _ in range(kind.nv)]
    return eqx.tree_at(lambda m: m.joint.armature, model, np.where(free, 0.0, model.joint.armature))


def tree_specs(*, mimic: bool | None = None) -> st.SearchStrategy[dict]:
    """Hypothesis strategy for arguments of `random_model`.

    The model is built in the test, as run-time type checks draw random numbers, which a strategy must not do.
    """
    return st.fixed_dictionaries(
        {
            "seed": st.integers(0, 10**6),
            "bodies": st.integers(1, 7),
            "floating": st.booleans(),
            "mimic": st.booleans() if mimic is None else st.just(mimic),
        }
    )


EVERY_KIND = {"seed": 47, "bodies": 7, "floating": True, "mimic": False}
"""A tree with all joint types and three roots, one of them free; verified by a test."""
WITH_MIMICS = {"seed": 56, "bodies": 5, "floating": True, "mimic": True}
"""A tree with a revolute and a prismatic mimic joint."""
