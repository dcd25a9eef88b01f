"""θ of several runs at once: the numbers that are common to all of them, then each run's own.

A simulation of one run takes a short θ, one number per entry of the parameter space. A solver sees the long one, in
which a number that is free per run stands once for every run. Without such numbers both are the same.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float, Int

from hybridsim.params.space import ParameterSpace

Array = np.ndarray


class ThetaLayout:
    """Where the entries of a short θ are in the long one; all arrays but `index` have one number per entry of that.

    Attributes:
        space: of the short θ.
        runs: name of the run that each recording is, or is a piece of.
        index: place in the long θ of every entry of a recording's short one, (recordings, n).
        short: entry of the short θ that each is.
        names: of the entries.
        units: of their values.
        is_common: which are the same for all runs.
        start: θ to start from.
        lower: least θ.
        upper: largest θ.
        prior_mean: expected θ.
        prior_weight: one by the standard deviation of that, zero where there is no prior.
        l2: weights of squares.
    """

    def __init__(self, space: ParameterSpace, runs: Sequence[str]):
        self.space, self.runs = space, tuple(runs)
        n, own = space.size, np.flatnonzero(space.is_per_run)
        common = np.flatnonzero(~space.is_per_run)
        apart = list(dict.fromkeys(self.runs))
        number = np.array([apart.index(run) for run in self.runs])
        self.index: Int[Array, "R n"] = np.zeros((len(self.runs), n), dtype=int)
        self.index[:, common] = np.arange(len(common))
        self.index[:, own] = len(common) + number[:, None] * len(own) + np.arange(len(own))
        self.short = np.concatenate([common, np.tile(own, len(apart))])
        self.is_common: Bool[Array, " N"] = np.arange(len(self.short)) < len(common)
        of_runs = [f"{space.names[entry]} of {run}" for run in apart for entry in own]
        self.names = (*(space.names[entry] for entry in common), *of_runs)
        self.units = tuple(space.units[entry] for entry in self.short)
        self.start = self.lengthened(space.initial)
        self.lower, self.upper = self.lengthened(space.lower), self.lengthened(space.upper)
        self.prior_weight = self.lengthened(1.0 / np.asarray(space.prior_std, dtype=float))
        self.prior_mean = np.where(self.prior_weight > 0.0, self.lengthened(space.prior_mean), 0.0)
        self.l2 = self.lengthened(space.l2)

    @property
    def size(self) -> int:
        """Length of the long θ."""
        return len(self.short)

    @property
    def has_own(self) -> bool:
        """Do runs have numbers of their own?"""
        return not bool(self.is_common.all())

    def lengthened(self, theta: Float[Array, "*P n"]) -> Float[Array, "*P N"]:
        """The long θ in which every run has the numbers of a short one."""
        return np.asarray(theta, dtype=float)[..., self.short]

    def of_run(self, theta: Float[Array, "*P N"], run: int) -> Float[Array, "*P n"]:
        """The short θ of a run."""
        return np.asarray(theta)[..., self.index[run]]

    def common(self, theta: Float[Array, "*P N"]) -> Float[Array, "*P n"]:
        """A short θ with the common numbers, and what numbers of runs start from."""
        found = np.array(np.broadcast_to(self.space.initial, (*np.shape(theta)[:-1], self.space.size)), dtype=float)
        which = np.flatnonzero(~self.space.is_per_run)
        found[..., which] = np.asarray(theta)[..., : len(which)]
        return found

    def own_values(self, theta: Float[Array, " N"]) -> dict[str, dict[str, float]]:
        """The numbers of each run by the names of runs and numbers; nothing if they have none."""
        if not self.has_own:
            return {}
        return {run: self.space.run_values(self.of_run(theta, k)) for k, run in enumerate(self.runs)}
