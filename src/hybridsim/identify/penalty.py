"""Penalties: L2, and sparsity penalties, which make parameters, inputs of networks or whole networks exactly zero.

An input becomes zero if all its weights do, and likewise a network.

    κ |θ|            Free(..., l1=κ); with `group`, κ √(Σ θ²) over all parameters of that group
    κ Σ |θ|          Sparsity(first_layer=κ), over the weights of first layers, without biases
    ½ λ Σ θ²         Sparsity(l2=λ), over the weights of all other layers and the biases of all layers
    κ Σ ‖column‖     Sparsity(inputs=κ), over the weights of each network input
    κ Σ ‖network‖    Sparsity(grafts=κ), over whole networks

They are added to ½ Σ residual²; those on layers are from NeuralSim (Heiden et al. 2021). Norms and absolute values are
not differentiable at zero, so that a solver must treat them separately: `solve_penalized_qp` minimizes a quadratic
function plus such a penalty.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from hybridsim.core.errors import HybridsimError
from hybridsim.core.specification import Nonnegative, specification
from hybridsim.identify.solvers.box_qp import QPSolution, solve_box_qp
from hybridsim.identify.theta_layout import ThetaLayout
from hybridsim.networks.weight_name import WeightName, parse_weight_name

Array = np.ndarray
MAX_ITERATIONS, TOLERANCE = 2000, 1e-10
"""Iteration limit of ADMM, and its relative tolerance on primal and dual residuals."""


@specification
class Sparsity:
    """Penalties on the networks of a fit; a factor of zero means no penalty."""

    inputs: Nonnegative = 0.0
    """Factor κ of the norm of each column of a first layer, which holds the weights of one input."""
    grafts: Nonnegative = 0.0
    """Factor κ of the norm of all weights of each network."""
    first_layer: Nonnegative = 0.0
    """Factor κ of Σ |θ| over the weights of first layers, without biases."""
    l2: Nonnegative = 0.0
    """Factor λ of ½ Σ θ² over the weights of all other layers and the biases of all layers."""


@specification
class GroupSparsity(Sparsity):
    """Penalties on networks and on groups of entries of θ; for discovery."""

    groups: tuple[tuple[tuple[int, ...], Nonnegative], ...] = ()
    """Groups of entries of θ that become zero jointly (group lasso), with the factors of their norms."""


NO_SPARSITY = Sparsity()
"""No penalty on networks."""


@dataclass(frozen=True)
class Penalty:
    """Penalties that are not differentiable at zero: κ |θ| per entry, and κ ‖·‖ per group; inner groups come first."""

    l1: Float[Array, " N"]
    groups: tuple[tuple[Int[Array, " k"], float], ...]

    @property
    def is_active(self) -> bool:
        """Whether any factor is nonzero."""
        return bool(self.groups) or bool(np.any(self.l1))

    def check_differentiable(self) -> None:
        """Raise if the penalty is not differentiable at zero."""
        if self.is_active:
            raise HybridsimError(
                "penalties that make parameters exactly zero (l1, or sparsity of inputs, grafts and first layers) are "
                "not differentiable; use the solver lm, which supports them"
            )

    def __call__(self, theta: Float[Array, "*P N"]) -> Float[Array, "*P"]:
        """Value of the penalty."""
        total = np.abs(theta) @ self.l1
        for index, weight in self.groups:
            total = total + weight * np.sqrt(np.square(theta[..., index]).sum(axis=-1))
        return total

    def proximal_map(self, x: Float[Array, " N"], step: Float[Array, " N"]) -> Float[Array, " N"]:
        """Proximal map: the minimizer y of ½ Σ (y − x)²/step plus the penalty; steps are equal within a group."""
        y = np.sign(x) * np.maximum(np.abs(x) - step * self.l1, 0.0)
        for index, weight in self.groups:
            size = np.sqrt(np.square(y[index]).sum())
            threshold = weight * step[index[0]]
            y[index] *= 0.0 if size <= threshold else 1.0 - threshold / size
        return y


def sparsity_penalty(layout: ThetaLayout, sparsity: Sparsity) -> Penalty:
    """Penalty on the entries of stacked θ, from the options of `Free` and the sparsity of a stage."""
    space = layout.space
    l1 = layout.stack(space.l1)
    labels = [space.groups[entry] for entry in layout.single_run_index]
    entry_weights = np.where([bool(label) for label in labels], 0.0, l1)
    groups = []
    for label in dict.fromkeys(label for label in labels if label):
        index = np.array([k for k, other in enumerate(labels) if other == label])
        if weight := float(l1[index].max()):
            groups.append((index, weight))
    columns: dict[tuple, list[int]] = {}
    networks: dict[tuple, list[int]] = {}
    names = _weight_names(layout)
    for k, name in enumerate(names):
        if name is None:
            continue
        run = layout.names[k].removeprefix(layout.space.names[layout.single_run_index[k]])
        networks.setdefault((name.graft, run), []).append(k)
        if name.is_first_layer_weight:
            columns.setdefault((name.graft, name.part, name.column, run), []).append(k)
            entry_weights[k] += sparsity.first_layer
    _check_applicable(sparsity, names)
    if sparsity.inputs:
        groups += [(np.array(index), sparsity.inputs) for index in columns.values()]
    for entries, weight in sparsity.groups if isinstance(sparsity, GroupSparsity) else ():
        groups.append((np.flatnonzero(np.isin(layout.single_run_index, entries)), weight))
    if sparsity.grafts:
        groups += [(np.array(index), sparsity.grafts) for index in networks.values()]
    return Penalty(entry_weights, _sort_nested(groups))


def _check_applicable(sparsity: Sparsity, names: Sequence[WeightName | None]) -> None:
    """Raise if a penalty applies to no free parameter: it would be ignored silently."""
    weights = [name for name in names if name is not None]
    first, any_layer = any(w.is_first_layer_weight for w in weights), any(w.layer is not None for w in weights)
    applicable = {"inputs": first, "first_layer": first, "l2": any_layer, "grafts": bool(weights)}
    if options := [name for name, has_match in applicable.items() if getattr(sparsity, name) and not has_match]:
        reason = (
            "no MLP (of hybridsim or Equinox) has free weights that it applies to; grafts= applies to all networks"
            if weights
            else "no parameter of a network is free"
        )
        raise HybridsimError(f"Sparsity({', '.join(f'{name}=…' for name in options)}) has no effect: {reason}")


def _sort_nested(groups: list[tuple[Int[Array, " k"], float]]) -> tuple[tuple[Int[Array, " k"], float], ...]:
    """Sort groups such that inner ones come before those that contain them.

    Raises:
        HybridsimError: two groups overlap without being nested.
    """
    ordered = sorted(groups, key=lambda group: len(group[0]))
    for k, (inner, _) in enumerate(ordered):
        for outer, _ in ordered[k + 1 :]:
            common = np.isin(inner, outer)
            if common.any() and not common.all():
                raise HybridsimError("two penalized groups of parameters overlap without being nested")
    return tuple(ordered)


def _weight_names(layout: ThetaLayout) -> list[WeightName | None]:
    """Parsed weight name of every entry of stacked θ; None for parameters outside of networks."""
    return [parse_weight_name(layout.space.names[entry]) for entry in layout.single_run_index]


def l2_weights(layout: ThetaLayout, sparsity: Sparsity) -> Float[Array, " N"]:
    """L2 weights of the entries of stacked θ: those of `Free`, plus `l2` of a stage's sparsity where it applies."""
    is_upper = [
        name is not None and name.layer is not None and not name.is_first_layer_weight for name in _weight_names(layout)
    ]
    return layout.l2 + np.where(is_upper, sparsity.l2, 0.0)


def solve_penalized_qp(
    A: Float[Array, "P N N"],
    a: Float[Array, "P N"],
    lower: Float[Array, "P N"],
    upper: Float[Array, "P N"],
    theta: Float[Array, "P N"],
    penalty: Penalty,
) -> QPSolution:
    """Step x between bounds that minimizes a·x + ½ x·A x plus the penalty of θ + x."""
    unpenalized = solve_box_qp(A, a, lower, upper).x
    with np.errstate(over="ignore", invalid="ignore"):
        solutions = [_admm(A[p], a[p], lower[p], upper[p], theta[p], penalty, unpenalized[p]) for p in range(len(a))]
    return QPSolution(np.stack([x for x, _ in solutions]), np.array([converged for _, converged in solutions]))


def _admm(A, a, lower, upper, theta, penalty: Penalty, unpenalized) -> tuple[Float[Array, " N"], bool]:
    """Penalized minimum of one instance, by alternating directions (ADMM, Boyd et al. 2011) with adaptive ρ.

    The quadratic function, the penalty and the bounds each have a copy of the unknowns; the penalty's copy, whose zeros
    are exact, is the result. The second result is whether the tolerance was met within `MAX_ITERATIONS`.
    """
    fixed = lower >= upper
    bounded = bool(np.any(np.isfinite(lower[~fixed]) | np.isfinite(upper[~fixed])))
    # proximal steps are scaled by curvature, equal within a group
    curvature = np.maximum(np.diag(A), 1e-12 * max(np.diag(A).max(initial=0.0), np.finfo(float).tiny))
    for index, _ in penalty.groups:
        curvature[index] = np.exp(np.log(curvature[index]).mean())
    rho, target, scale = 0.1, A @ theta - a, np.sqrt(curvature)
    low, high = theta + lower, theta + upper

    def inverse_matrix(rho):
        M = A + np.diag((2.0 if bounded else 1.0) * rho * curvature)
        M[fixed], M[:, fixed] = 0.0, 0.0
        M[fixed, fixed] = 1.0
        return np.linalg.inv(M)

    inverse = inverse_matrix(rho)
    z, u = theta + unpenalized, np.zeros_like(theta)
    clipped, v = z.copy(), np.zeros_like(theta)
    fixed_terms = A[:, fixed] @ theta[fixed]
    for iteration in range(MAX_ITERATIONS):
        consensus = z - u + (clipped - v if bounded else 0.0)
        rhs = target + rho * curvature * consensus - fixed_terms
        rhs[fixed] = theta[fixed]
        x = inverse @ rhs
        before = np.concatenate([z, clipped])
        z = penalty.proximal_map(x + u, 1.0 / (rho * curvature))
        z[fixed] = theta[fixed]
        u = u + x - z
        primal_residuals = [x - z]
        if bounded:
            clipped = np.clip(x + v, low, high)
            v = v + x - clipped
            primal_residuals.append(x - clipped)
        primal = max(np.linalg.norm(scale * r) for r in primal_residuals)
        dual = rho * np.linalg.norm(np.tile(scale, 2) * (np.concatenate([z, clipped]) - before))
        size = max(np.linalg.norm(scale * z), np.linalg.norm(scale * x), np.finfo(float).tiny)
        if not np.isfinite(size):
            return unpenalized, False  # overflow: the solver will reject this step as well
        if max(primal, dual) <= TOLERANCE * size:
            return np.clip(z, low, high) - theta, True
        if iteration % 50 == 49 and not 0.1 < primal / max(dual, np.finfo(float).tiny) < 10.0:
            factor = 5.0 if primal > dual else 0.2
            rho, u, v = rho * factor, u / factor, v / factor
            inverse = inverse_matrix(rho)
    return np.clip(z, low, high) - theta, False
