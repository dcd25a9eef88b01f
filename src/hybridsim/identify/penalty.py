"""Penalties that make numbers exactly zero: of single ones, of a network's inputs, and of whole networks.

    κ |θ|            Free(..., l1=κ); with `group`, κ √(Σ θ²) of all numbers of that group
    κ Σ |θ[1]|       Sparsity(first_layer=κ), of the first layers of all networks: the NeuralSim paper's
    ½ λ Σ θ[1:]²     Sparsity(upper_layers=λ), of all that come after these: the paper's, too
    κ Σ ‖column‖     Sparsity(inputs=κ): of everything that a network does with one of its inputs
    κ Σ ‖network‖    Sparsity(grafts=κ): of a network as a whole

They are added to ½ Σ (residual / noise)². Those of groups and absolute values have no slope at zero, so that a solver
must know of them; what it needs is here: the smallest value of a quadratic function with such a penalty.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from hybridsim.core.errors import HybridsimError
from hybridsim.identify.solvers.box_qp import box_minimum
from hybridsim.identify.theta_layout import ThetaLayout
from hybridsim.networks.weight_name import WeightName, weight_name

Array = np.ndarray
ROUNDS, TOLERANCE = 2000, 1e-10
"""Of the search for the smallest value: turns at most, and how close to each other both of its answers must come."""


@dataclass(frozen=True)
class Sparsity:
    """How much the networks of a fit cost; all that is zero is left out."""

    inputs: float = 0.0
    """Weight of the norm of each column of a first layer: of all that a network does with one of its inputs."""
    grafts: float = 0.0
    """Weight of the norm of each network."""
    first_layer: float = 0.0
    """Weight of the absolute values of first layers."""
    upper_layers: float = 0.0
    """Weight of half the squares of everything after the first layers."""
    groups: tuple[tuple[tuple[int, ...], float], ...] = ()
    """Other entries of θ that are zero together or not at all, and the weight of their norm."""


NO_SPARSITY = Sparsity()
"""Networks cost nothing."""


@dataclass(frozen=True)
class Penalty:
    """What has no slope at zero: κ |θ| for each number, and κ ‖·‖ for groups; those inside of others come first."""

    l1: Float[Array, " N"]
    groups: tuple[tuple[Int[Array, " k"], float], ...]

    @property
    def is_there(self) -> bool:
        """Does anything cost anything?"""
        return bool(self.groups) or bool(np.any(self.l1))

    def check_slopes(self) -> None:
        """Raise if there is no slope where numbers are zero."""
        if self.is_there:
            raise HybridsimError(
                "penalties that make numbers exactly zero (l1, or sparsity of inputs, grafts and first layers) have no "
                "slope there; use the solver lm, which knows of them"
            )

    def __call__(self, theta: Float[Array, "*P N"]) -> Float[Array, "*P"]:
        """What a point costs."""
        total = np.abs(theta) @ self.l1
        for which, weight in self.groups:
            total = total + weight * np.sqrt(np.square(theta[..., which]).sum(axis=-1))
        return total

    def shrunk(self, x: Float[Array, " N"], step: Float[Array, " N"]) -> Float[Array, " N"]:
        """The y at which ½ Σ (y − x)²/step plus the penalty is smallest; steps of a group's numbers are the same."""
        y = np.sign(x) * np.maximum(np.abs(x) - step * self.l1, 0.0)
        for which, weight in self.groups:
            size = np.sqrt(np.square(y[which]).sum())
            short = weight * step[which[0]]
            y[which] *= 0.0 if size <= short else 1.0 - short / size
        return y


def sparsity_penalty(layout: ThetaLayout, sparsity: Sparsity) -> Penalty:
    """The penalty of a layout's numbers by their own options and a stage's."""
    space = layout.space
    own = layout.lengthened(space.l1)
    labels = [space.groups[entry] for entry in layout.short]
    single = np.where([bool(label) for label in labels], 0.0, own)
    groups = []
    for label in dict.fromkeys(label for label in labels if label):
        which = np.array([k for k, one in enumerate(labels) if one == label])
        if weight := float(own[which].max()):
            groups.append((which, weight))
    columns: dict[tuple, list[int]] = {}
    networks: dict[tuple, list[int]] = {}
    weights = _weights(layout)
    for k, found in enumerate(weights):
        if found is None:
            continue
        run = layout.names[k].removeprefix(layout.space.names[layout.short[k]])
        networks.setdefault((found.graft, run), []).append(k)
        if found.is_of_first_layer:
            columns.setdefault((found.graft, found.part, found.column, run), []).append(k)
            single[k] += sparsity.first_layer
    _check_there_is_something(sparsity, weights)
    if sparsity.inputs:
        groups += [(np.array(which), sparsity.inputs) for which in columns.values()]
    for entries, weight in sparsity.groups:
        groups.append((np.flatnonzero(np.isin(layout.short, entries)), weight))
    if sparsity.grafts:
        groups += [(np.array(which), sparsity.grafts) for which in networks.values()]
    return Penalty(single, _nested(groups))


def _check_there_is_something(sparsity: Sparsity, weights: Sequence[WeightName | None]) -> None:
    """Raise if a cost applies to nothing, which would otherwise show in nothing but a result."""
    there = [weight for weight in weights if weight is not None]
    first, any_layer = any(w.is_of_first_layer for w in there), any(w.layer is not None for w in there)
    known = {"inputs": first, "first_layer": first, "upper_layers": any_layer, "grafts": bool(there)}
    if asked := [way for way, is_known in known.items() if getattr(sparsity, way) and not is_known]:
        what = "such layer of a perceptron (an MLP, also of equinox)" if there else "number of a network"
        raise HybridsimError(
            f"sparsity of {', '.join(asked)} makes nothing cost anything: no {what} is free"
            + ("; grafts= is the cost of a network of any kind" if there else "")
        )


def _nested(groups: list[tuple[Int[Array, " k"], float]]) -> tuple[tuple[Int[Array, " k"], float], ...]:
    """Groups in an order in which those inside of others come first.

    Raises:
        HybridsimError: two have some numbers in common, but not all of the smaller one.
    """
    ordered = sorted(groups, key=lambda group: len(group[0]))
    for k, (inner, _) in enumerate(ordered):
        for outer, _ in ordered[k + 1 :]:
            common = np.isin(inner, outer)
            if common.any() and not common.all():
                raise HybridsimError(
                    "two groups of numbers that cost together overlap without one being inside of the other"
                )
    return tuple(ordered)


def _weights(layout: ThetaLayout) -> list[WeightName | None]:
    """Where the numbers of a layout are in networks; those of each run are in the same place."""
    return [weight_name(layout.space.names[entry]) for entry in layout.short]


def l2_weights(layout: ThetaLayout, sparsity: Sparsity) -> Float[Array, " N"]:
    """Weights of squares: those of the numbers themselves, and a stage's of what comes after first layers."""
    upper = [one is not None and one.layer is not None and not one.is_of_first_layer for one in _weights(layout)]
    return layout.l2 + np.where(upper, sparsity.upper_layers, 0.0)


def penalised_minimum(
    A: Float[Array, "P N N"],
    a: Float[Array, "P N"],
    least: Float[Array, "P N"],
    most: Float[Array, "P N"],
    theta: Float[Array, "P N"],
    penalty: Penalty,
) -> Float[Array, "P N"]:
    """The step x between bounds at which a·x + ½ x·A x plus the penalty of θ + x is smallest."""
    plain = box_minimum(A, a, least, most)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.stack([_alone(A[p], a[p], least[p], most[p], theta[p], penalty, plain[p]) for p in range(len(a))])


def _alone(A, a, least, most, theta, penalty: Penalty, plain) -> Float[Array, " N"]:
    """One problem, by the alternating directions of Boyd et al. 2011: quadratic function, penalty and bounds by turns.

    The penalty's answer counts, in which zeros are exact.
    """
    fixed = least >= most
    bounded = bool(np.any(np.isfinite(least[~fixed]) | np.isfinite(most[~fixed])))
    # steps of the other turns: by how strongly a number is seen, the same for all of a group
    seen = np.maximum(np.diag(A), 1e-12 * max(np.diag(A).max(initial=0.0), np.finfo(float).tiny))
    for which, _ in penalty.groups:
        seen[which] = np.exp(np.log(seen[which]).mean())
    rho, target, scale = 0.1, A @ theta - a, np.sqrt(seen)
    low, high = theta + least, theta + most

    def inverted(rho):
        M = A + np.diag((2.0 if bounded else 1.0) * rho * seen)
        M[fixed], M[:, fixed] = 0.0, 0.0
        M[fixed, fixed] = 1.0
        return np.linalg.inv(M)

    inverse = inverted(rho)
    z, u = theta + plain, np.zeros_like(theta)
    within, v = z.copy(), np.zeros_like(theta)
    inside = A[:, fixed] @ theta[fixed]
    for turn in range(ROUNDS):
        pull = z - u + (within - v if bounded else 0.0)
        right = target + rho * seen * pull - inside
        right[fixed] = theta[fixed]
        x = inverse @ right
        before = np.concatenate([z, within])
        z = penalty.shrunk(x + u, 1.0 / (rho * seen))
        z[fixed] = theta[fixed]
        u = u + x - z
        gaps = [x - z]
        if bounded:
            within = np.clip(x + v, low, high)
            v = v + x - within
            gaps.append(x - within)
        apart = max(np.linalg.norm(scale * gap) for gap in gaps)
        moved = rho * np.linalg.norm(np.tile(scale, 2) * (np.concatenate([z, within]) - before))
        size = max(np.linalg.norm(scale * z), np.linalg.norm(scale * x), np.finfo(float).tiny)
        if not np.isfinite(size):
            return plain  # slopes so steep that no step is any good; the solver will refuse this one, too
        if max(apart, moved) <= TOLERANCE * size:
            break
        if turn % 50 == 49 and not 0.1 < apart / max(moved, np.finfo(float).tiny) < 10.0:
            change = 5.0 if apart > moved else 0.2
            rho, u, v = rho * change, u / change, v / change
            inverse = inverted(rho)
    return np.clip(z, low, high) - theta
