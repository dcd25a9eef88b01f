"""Search for the smallest set of network inputs that explains the data, for one seed.

Networks are fitted with all inputs; then a growing penalty on inputs removes them one by one (an adaptive group
lasso, Zou 2006: inputs with small weights in the first fit are penalized most). Every set of inputs on that path is
refitted without penalty and evaluated on held-out runs; the smallest set that is not significantly worse than the best
is reduced further by backward elimination. If no set on the path improves on the model without networks, forward
selection is tried.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Float

from hybridsim.core.errors import DivergedError
from hybridsim.identify.penalty import GroupSparsity
from hybridsim.identify.problem import FitProblem
from hybridsim.identify.score import WindowScores, score_windows
from hybridsim.identify.solve import solve
from hybridsim.identify.solvers.levenberg_marquardt import LevenbergMarquardt
from hybridsim.identify.stage import Stage
from hybridsim.networks.prune import CONSTANT, PruningUnit, ablate, input_addresses, reseed
from hybridsim.networks.weight_name import parse_weight_name
from hybridsim.params.space import ParameterSpace

Array = np.ndarray
Support = frozenset[PruningUnit]
"""Selected inputs of networks; a constant is included only if its network has no other input."""
INITIAL_PENALTY, MAX_GROWTH, MIN_GROWTH = 1e-5, 4.0, 1.5
"""Initial penalty, relative to the largest penalty, which is about twice the cost of the model without networks;
largest growth factor of the penalty, which is reduced where many inputs drop out together, and the factor at or below
which it is not reduced further."""
SIGNIFICANCE = 3.0
"""Standard deviations by which a mean squared residual must increase for the increase to be significant."""
NEGLIGIBLE_INCREASE = 0.01
"""Increase of a mean squared residual that is always insignificant, relative to max(mean squared residual, 1)."""
MIN_WINDOWS = 4
"""Minimum number of windows for a paired comparison."""
MIN_RELATIVE_NORM = 1e-6
"""Lower limit of the norm of an input's weights, relative to the largest."""


class FittedSupport(NamedTuple):
    """A set of inputs, fitted without penalty."""

    support: Support
    theta: Float[Array, " n"]
    residual_rms: float
    """Root mean square residual on held-out runs."""
    mean_squares: Float[Array, " W"] | None = None
    """Mean squared residual of each held-out window; None if loaded from a file."""
    has_converged: bool | None = None
    """Whether the fit converged, and those of the initial states of all held-out windows; None if loaded from a file.
    """


class SeedResult(NamedTuple):
    """Result of one seed."""

    seed: int
    dense: FittedSupport
    """All inputs."""
    path: tuple[FittedSupport, ...]
    """Sets of inputs of the penalty path, then those of forward selection."""
    best: FittedSupport
    """The smallest set that is not significantly worse than the one with the smallest residual."""


@dataclass(frozen=True)
class SupportSearch:
    """Search of one seed."""

    problem: FitProblem
    stage: Stage
    warm_up: Sequence[Stage]
    candidates: tuple[PruningUnit, ...]
    initial: Float[Array, " n"]
    """θ with freshly initialized networks."""
    log: Callable[[str], None]

    def run(self, seed: int) -> SeedResult:
        """Run the search."""
        all_inputs = frozenset(c for c in self.candidates if c.column != CONSTANT)
        fitted = solve(
            self.problem.with_space(self.problem.space.with_initial(self.initial)), [*self.warm_up, self.stage]
        )
        dense = self.evaluate(all_inputs, fitted.theta, fitted.has_converged)
        self.log(f"all {len(all_inputs)} inputs, RMS residual {dense.residual_rms:.3g}")
        empty = self.evaluate(frozenset(), theta_with_ablated_networks(self.problem, self.candidates))
        path = [
            self.evaluate(support, *self.refit([self.stage], support, theta))
            for support, theta in self.penalty_path(dense, empty).items()
        ]
        if not any(self.is_worse(empty, fitted) for fitted in (dense, *path)):
            path += self.forward_selection(empty)
        all_fitted = (empty, dense, *path)
        reference = min(all_fitted, key=lambda f: f.residual_rms)
        best = min(
            (f for f in all_fitted if not self.is_worse(f, reference)),
            key=lambda f: (_complexity(f.support), f.residual_rms),
        )
        best = self.backward_elimination(best, reference)
        best = min(best, self.fit_from_scratch(best.support), key=lambda f: f.residual_rms)
        return SeedResult(seed, dense, tuple(path), best)

    def penalty_path(self, dense: FittedSupport, empty: FittedSupport) -> dict[Support, Array]:
        """Sets of inputs along a growing penalty, each with the last θ that has these inputs.

        Penalties are normalized such that all inputs are penalized equally at the weights of the dense fit.
        """
        norms = np.array([np.linalg.norm(dense.theta[list(c.entries)]) for c in self.candidates])
        norms = np.maximum(norms, MIN_RELATIVE_NORM * (norms.max() or 1.0))
        runs, channels = self.problem.train, self.problem.channel_roles.noise
        max_penalty = empty.residual_rms**2 * sum(len(run.series[name].t) for run in runs for name in channels)
        penalty, growth = INITIAL_PENALTY * max_penalty, MAX_GROWTH
        # rough fits by design: they only order the inputs, and every set of inputs is refitted
        solver = LevenbergMarquardt(max_steps=15, cost_tolerance=1e-4)
        theta, support = dense.theta, dense.support
        path: dict[Support, Array] = {}
        while penalty <= max_penalty:
            groups = tuple((c.entries, penalty / norm) for c, norm in zip(self.candidates, norms, strict=True))
            sparsity = GroupSparsity(groups=groups, l2=penalty / norms.max())
            stage = replace(self.stage, sparsity=sparsity, solver=solver)
            trial, _ = self.fit(self.problem.space.with_initial(theta), [stage])
            remaining = self.remaining_inputs(trial)
            if len(support) - len(remaining) > max(1, len(support) // 2) and growth > MIN_GROWTH:
                growth = np.sqrt(growth)
                penalty /= growth
                continue
            if self.evaluate(remaining, trial).residual_rms > 2.0 * empty.residual_rms:
                break  # the dynamics became too stiff for the time step: the rest of the path is meaningless
            theta, support, path[remaining] = trial, remaining, trial
            self.log(f"penalty {penalty:.3g} per input, {len(remaining)} inputs remain")
            if not remaining:
                break
            growth = min(growth * growth, MAX_GROWTH)
            penalty *= growth
        return path

    def remaining_inputs(self, theta: Array) -> Support:
        """Inputs with nonzero weights, and constants of networks without such inputs."""
        nonzero = [c for c in self.candidates if np.any(theta[list(c.entries)])]
        with_inputs = {c.graft for c in nonzero if c.column != CONSTANT}
        return frozenset(c for c in nonzero if c.column != CONSTANT or c.graft not in with_inputs)

    def forward_selection(self, empty: FittedSupport) -> list[FittedSupport]:
        """Add inputs one by one, the best first, while the residual decreases significantly."""
        path, current = [], empty
        while unused := [
            c for c in self.candidates if c not in current.support and not _is_redundant(c, current.support)
        ]:
            larger = [self.fit_from_scratch(_with_unit(current.support, unit)) for unit in unused]
            best = min(larger, key=lambda f: f.residual_rms)
            if not self.is_worse(current, best):
                return path
            path.append(best)
            current = best
        return path

    def backward_elimination(self, best: FittedSupport, reference: FittedSupport) -> FittedSupport:
        """Remove inputs one by one, the least important first, while the residual does not increase significantly."""
        while best.support:
            smaller = list(_reduced_supports(best.support, self.candidates))
            thetas = np.stack([self.restrict(support, best.theta).initial for support in smaller])
            order = np.argsort(np.sqrt(_mean_squares(self.score(thetas)).mean(axis=1)), kind="stable")
            for support in (smaller[k] for k in order):
                fitted = self.evaluate(support, *self.refit([self.stage], support, best.theta))
                fitted = self.fit_from_scratch(support) if self.is_worse(fitted, reference) else fitted
                if not self.is_worse(fitted, reference):
                    break
            else:
                return best
            best = fitted
        return best

    def fit_from_scratch(self, support: Support) -> FittedSupport:
        """Fit a set of inputs from untrained networks: the weights of a larger set may be poor initial values."""
        return self.evaluate(support, *self.refit([*self.warm_up, self.stage], support, self.initial))

    def refit(self, stages: Sequence[Stage], support: Support, theta: Array) -> tuple[Array, bool]:
        """θ of a fit without penalty, with all other inputs removed, and whether the fit converged."""
        space = self.restrict(support, theta)
        return self.fit(space, stages) if support else (space.initial, True)

    def fit(self, space: ParameterSpace, stages: Sequence[Stage]) -> tuple[Array, bool]:
        """θ of a fit, and whether it converged.

        If the simulation diverges at the initial θ, this is the result, and evaluated like any other.
        """
        try:
            fitted = solve(self.problem.with_space(space), stages)
        except DivergedError:
            return space.initial, False
        return fitted.theta, fitted.has_converged

    def restrict(self, support: Support, theta: Array) -> ParameterSpace:
        """Parameter space in which the weights of all other inputs are fixed such that they have no effect."""
        unused_grafts = {c.graft for c in self.candidates} - {c.graft for c in support}
        unused_entries = [k for c in self.candidates if c.column >= 0 and c not in support for k in c.entries]
        space = self.problem.space.with_initial(theta).with_fixed(unused_entries, 0.0)
        names = map(parse_weight_name, space.names)
        entries = [k for k, name in enumerate(names) if name and name.graft in unused_grafts]
        return space.with_fixed(entries, theta_with_ablated_networks(self.problem, self.candidates)[entries])

    def evaluate(self, support: Support, theta: Array, has_converged: bool = True) -> FittedSupport:
        """A set of inputs with its residuals on held-out runs.

        Args:
            support: the inputs.
            theta: θ with these inputs.
            has_converged: whether the fit of θ converged.
        """
        scores = self.score(theta[None])
        mean_squares = _mean_squares(scores)[0]
        has_converged &= not scores.scores[0].unconverged_count
        return FittedSupport(support, theta, float(np.sqrt(mean_squares.mean())), mean_squares, has_converged)

    def score(self, thetas: Float[Array, "P n"]) -> WindowScores:
        """Scores of the held-out windows."""
        problem, stage = self.problem, self.stage
        return score_windows(problem, thetas, problem.held_out, stage.window, burn_in=stage.burn_in)

    def is_worse(self, fitted: FittedSupport, reference: FittedSupport) -> bool:
        """Whether a set of inputs is significantly worse than another.

        The increase of its mean squared residual must exceed the sampling error due to noise, or be significant in a
        paired comparison of windows: both are evaluated on the same samples, so that most of the noise cancels in the
        differences.
        """
        assert fitted.mean_squares is not None and reference.mean_squares is not None
        if not np.isfinite(fitted.mean_squares).all():
            return True
        increase = fitted.mean_squares - reference.mean_squares
        mean_square = float(reference.mean_squares.mean())
        runs, channels = self.problem.held_out, self.problem.channel_roles.noise
        samples = sum(len(run.series[name].t) for run in runs for name in channels)
        thresholds = [SIGNIFICANCE * mean_square * np.sqrt(2.0 / samples)]
        if len(increase) >= MIN_WINDOWS:
            thresholds.append(SIGNIFICANCE * float(np.std(increase, ddof=1)) / np.sqrt(len(increase)))
        return bool(increase.mean() > max(min(thresholds), NEGLIGIBLE_INCREASE * max(mean_square, 1.0)))


def _mean_squares(scores: WindowScores) -> Float[Array, "P W"]:
    """Mean squared residual of each window; infinite where the simulation diverges."""
    residual_rms = scores.residual_rms
    return np.square(np.where(np.isfinite(residual_rms), residual_rms, np.inf))


def theta_with_fresh_networks(problem: FitProblem, seed: int) -> Array:
    """θ with untrained networks, whose initial weights depend on the seed."""
    grafts = problem.setup.sim.blueprint.grafts
    return _with_networks(problem, [reseed(graft.net, seed + 1000 * k) for k, graft in enumerate(grafts)])


def theta_with_ablated_networks(problem: FitProblem, candidates: Sequence[PruningUnit]) -> Array:
    """θ with all removable networks ablated, so that they have no effect."""
    sim, free = problem.setup.sim, {c.graft for c in candidates}
    pairs = zip(sim.blueprint.grafts, sim.bound_blueprint().grafts, strict=True)
    nets = [
        ablate(graft, len(input_addresses(bound))) if index in free else graft.net
        for index, (graft, bound) in enumerate(pairs)
    ]
    return _with_networks(problem, nets)


def _with_networks(problem: FitProblem, nets: list) -> Array:
    """Initial θ with the weights of other networks."""
    setup = eqx.tree_at(lambda s: [graft.net for graft in s.sim.blueprint.grafts], problem.setup, nets)
    return np.where(problem.space.is_weight, problem.space.theta_of(setup), problem.space.initial)


def _complexity(support: Support) -> float:
    """Complexity of a set of inputs; a constant is simpler than an input."""
    return sum(0.5 if c.column == CONSTANT else 1.0 for c in support)


def _reduced_supports(support: Support, candidates: Sequence[PruningUnit]) -> Iterator[Support]:
    """Sets with one input fewer; if it is the only one of its network, also with a constant in its place."""
    constants = {c.graft: c for c in candidates if c.column == CONSTANT}
    for unit in sorted(support):
        remaining = support - {unit}
        yield remaining
        if unit.column >= 0 and unit.graft in constants and all(c.graft != unit.graft for c in remaining):
            yield remaining | {constants[unit.graft]}


def _with_unit(support: Support, unit: PruningUnit) -> Support:
    """The set with one unit added; an input replaces the constant of its network."""
    return frozenset(c for c in support if (c.graft, c.column) != (unit.graft, CONSTANT)) | {unit}


def _is_redundant(unit: PruningUnit, support: Support) -> bool:
    """Whether a unit is the constant of a network that reads an input."""
    return unit.column == CONSTANT and any(c.graft == unit.graft for c in support)
