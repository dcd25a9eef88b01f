"""Inverse kinematics: reachable and unreachable targets, limits, and derivatives."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hybridsim.core.result import Status
from hybridsim.dynamics.inverse_kinematics import Target, inverse_kinematics
from hybridsim.dynamics.kinematics import frame_pose, kinematics
from hybridsim.model.builder import ModelBuilder
from hybridsim.robots import four_joint_arm
from hybridsim.robots.arm import DH, arm_from_dh
from hybridsim.spatial.rotation import matrix_from_rotation_vector
from support.derivatives import check_derivatives

SIX_AXES = (
    DH(0.0, np.pi / 2, 0.4),
    DH(0.5, 0.0, 0.0),
    DH(0.1, np.pi / 2, 0.0),
    DH(0.0, -np.pi / 2, 0.4),
    DH(0.0, np.pi / 2, 0.0),
    DH(0.0, 0.0, 0.1),
)
GOAL = np.array([0.3, 0.4, 0.2, -0.5, 0.7, 0.1])


def tool_pose(model, q, frame="tool"):
    return frame_pose(model, kinematics(model, q, np.zeros(model.nv)), frame)


def two_links(**second):
    """Two links of half a metre in the x-y plane, with a point `tip` at the end."""
    arm = ModelBuilder("two")
    arm.add_body("upper", axis=(0, 0, 1), mass=1.0, inertia=(0.1, 0.1, 0.1))
    arm.add_body("lower", parent="upper", at=(0.5, 0, 0), axis=(0, 0, 1), mass=1.0, inertia=(0.1, 0.1, 0.1), **second)
    return arm.add_frame("tip", "lower", at=(0.5, 0.0, 0.0)).build()


def test_reachable_targets_are_reached():
    model = four_joint_arm()
    q_goal = np.array([0.4, -0.5, 0.9, -0.3])
    tool = tool_pose(model, q_goal)
    target = Target("tool", position=tool.p, rotation=tool.R)
    solution = jax.jit(lambda q: inverse_kinematics(model, [target], q))(np.array([0.1, 0.1, 0.1, 0.1]))
    assert int(solution.status) == Status.OK and float(solution.error) < 1e-8
    np.testing.assert_allclose(solution.q, q_goal, atol=1e-6)
    far = jax.jit(lambda q: inverse_kinematics(model, [Target("tool", position=np.array([9.0, 0, 0]))], q))(q_goal)
    assert int(far.status) == Status.MAX_ITERATIONS, "out of reach must not be reported as success"


def test_solutions_stay_within_limits():
    model = two_links(lower=0.2, upper=1.0)
    target = Target("tip", position=np.array([0.2, 0.2, 0.0]))
    guess = np.array([0.1, 0.5])
    limited = jax.jit(lambda q: inverse_kinematics(model, [target], q))(guess)
    assert int(limited.status) == Status.MAX_ITERATIONS
    np.testing.assert_allclose(limited.q[1], 1.0, atol=1e-12)
    unlimited = jax.jit(lambda q: inverse_kinematics(model, [target], q, respect_limits=False))(guess)
    assert int(unlimited.status) == Status.OK and float(unlimited.q[1]) > 1.0


def test_invalid_targets_are_explained():
    model, q = four_joint_arm(), np.zeros(4)
    with pytest.raises(KeyError, match="no body or frame named 'hand'"):
        inverse_kinematics(model, [Target("hand", position=np.zeros(3))], q)
    with pytest.raises(ValueError, match="neither position nor rotation"):
        inverse_kinematics(model, [Target("tool")], q)
    with pytest.raises(ValueError, match="at least one target"):
        inverse_kinematics(model, [], q)
    with pytest.raises(ValueError, match="q has shape"):
        inverse_kinematics(model, [Target("tool", position=np.zeros(3))], np.zeros(3))


def test_derivative_at_a_reached_pose():
    """Six axes and six constraints: the solution is locally unique."""
    model = arm_from_dh(SIX_AXES)
    tool = tool_pose(model, GOAL)

    def solution(p):
        changed = eqx.tree_at(lambda m: m.joint.placement.p, model, p["joint positions"])
        target = Target("tool", tool.p + p["position"], tool.R @ matrix_from_rotation_vector(p["rotation"]))
        return inverse_kinematics(changed, [target], GOAL + 0.05, tolerance=1e-12).q

    zero = np.zeros(3)
    parameters = {"joint positions": model.joint.placement.p, "position": zero, "rotation": zero}
    sizes = check_derivatives(solution, parameters, tolerance=1e-6)
    assert min(sizes.values()) > 0.1


def test_a_redundant_arm_follows_its_target_by_the_minimum_norm_motion():
    model = four_joint_arm()
    q = np.array([0.4, -0.5, 0.9, -0.3])
    tool = tool_pose(model, q)

    def solution(position):
        return inverse_kinematics(model, [Target("tool", position=position)], q).q

    dq, dq_reverse, J = jax.jit(
        lambda p, q: (
            jax.jacfwd(solution)(p),
            jax.jacrev(solution)(p),
            jax.jacfwd(lambda q: tool_pose(model, q).p)(q),
        )
    )(tool.p, q)
    np.testing.assert_allclose(dq_reverse, dq, atol=1e-12)
    np.testing.assert_allclose(dq, jnp.linalg.pinv(J, rtol=1e-8), atol=1e-9)


def test_derivative_out_of_reach():
    """An arm that points at its target rotates with it; the derivative is that of the least-squares solution."""
    model = two_links()

    def solution(p):
        changed = eqx.tree_at(lambda m: m.joint.placement.p, model, p["joint positions"])
        solution = inverse_kinematics(changed, [Target("tip", position=p["target"])], np.array([0.3, 0.4]))
        return solution.q, solution.error

    parameters = {"joint positions": model.joint.placement.p, "target": np.array([1.5, 0.6, 0.3])}
    sizes = check_derivatives(solution, parameters, tolerance=1e-5, step=1e-2)
    assert min(sizes.values()) > 0.1


def test_derivative_at_a_limit():
    """A joint at its limit moves with the limit, the other joint minimizes the error."""
    model = two_links(lower=0.2, upper=1.0)

    def solution(p):
        changed = eqx.tree_at(lambda m: m.joint.upper, model, jnp.array([jnp.inf, p["limit"]]))
        return inverse_kinematics(changed, [Target("tip", position=p["target"])], np.array([0.1, 0.5])).q

    parameters = {"limit": np.asarray(1.0), "target": np.array([0.2, 0.2, 0.0])}
    sizes = check_derivatives(solution, parameters, tolerance=1e-5, step=1e-2)
    assert min(sizes.values()) > 0.1


def test_derivative_through_a_mimic_joint():
    model = two_links(mimic="upper", mimic_ratio=0.8, mimic_offset=0.1)
    tip = tool_pose(model, np.array([0.5]), "tip")

    def solution(p):
        changed = eqx.tree_at(lambda m: m.joint.mimic_ratio, model, jnp.array([1.0, p["ratio"]]))
        return inverse_kinematics(changed, [Target("tip", position=tip.p + p["target"])], np.array([0.4])).q

    sizes = check_derivatives(solution, {"ratio": np.asarray(0.8), "target": np.zeros(3)}, tolerance=1e-6, step=1e-3)
    assert min(sizes.values()) > 0.01
