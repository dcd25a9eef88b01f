"""Layout of θ over several runs: common parameters first, then the per-run parameters of each run.

The simulation of one run takes a single-run θ, with one entry per entry of the parameter space. Solvers see the stacked
θ, which has one copy of every per-run parameter for each run. Without per-run parameters the two are identical.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float, Int

from hybridsim.params.space import ParameterSpace

Array = np.ndarray


class ThetaLayout:
    """Mapping between single-run θ and stacked θ; all arrays except `index` have one element per entry of stacked θ.

    Attributes:
        space: parameter space of single-run θ.
        run_names: name of the run of each recording, which may be a segment of that run.
        index: index in stacked θ of every entry of a recording's single-run θ, (recordings, n).
        single_run_index: index of every entry in single-run θ.
        names: names of the entries.
        units: units of the parameter values.
        is_common: whether an entry is shared by all runs.
        initial: initial θ.
        lower: lower bounds.
        upper: upper bounds.
        prior_mean: prior mean.
        prior_weight: reciprocal of the prior's standard deviation; zero without a prior.
        l2: L2 weights.
    """

    def __init__(self, space: ParameterSpace, run_names: Sequence[str]):
        self.space, self.run_names = space, tuple(run_names)
        n, per_run = space.size, np.flatnonzero(space.is_per_run)
        common = np.flatnonzero(~space.is_per_run)
        distinct = list(dict.fromkeys(self.run_names))
        run_index = np.array([distinct.index(name) for name in self.run_names])
        self.index: Int[Array, "R n"] = np.zeros((len(self.run_names), n), dtype=int)
        self.index[:, common] = np.arange(len(common))
        self.index[:, per_run] = len(common) + run_index[:, None] * len(per_run) + np.arange(len(per_run))
        self.single_run_index = np.concatenate([common, np.tile(per_run, len(distinct))])
        self.is_common: Bool[Array, " N"] = np.arange(len(self.single_run_index)) < len(common)
        per_run_names = [f"{space.names[entry]} of {name}" for name in distinct for entry in per_run]
        self.names = (*(space.names[entry] for entry in common), *per_run_names)
        self.units = tuple(space.units[entry] for entry in self.single_run_index)
        self.initial = self.stack(space.initial)
        self.lower, self.upper = self.stack(space.lower), self.stack(space.upper)
        self.prior_weight = self.stack(1.0 / np.asarray(space.prior_std, dtype=float))
        self.prior_mean = np.where(self.prior_weight > 0.0, self.stack(space.prior_mean), 0.0)
        self.l2 = self.stack(space.l2)

    @property
    def size(self) -> int:
        """Length of stacked θ."""
        return len(self.single_run_index)

    @property
    def has_per_run_parameters(self) -> bool:
        """Whether any parameter is estimated separately for each run."""
        return not bool(self.is_common.all())

    def stack(self, theta: Float[Array, "*P n"]) -> Float[Array, "*P N"]:
        """Stack a single-run θ, using its values for every run."""
        return np.asarray(theta, dtype=float)[..., self.single_run_index]

    def recording_theta(self, theta: Float[Array, "*P N"], recording: int) -> Float[Array, "*P n"]:
        """Single-run θ of the recording with this index."""
        return np.asarray(theta)[..., self.index[recording]]

    def common_theta(self, theta: Float[Array, "*P N"]) -> Float[Array, "*P n"]:
        """Single-run θ with the common parameters, and initial values for the per-run ones."""
        result = np.array(np.broadcast_to(self.space.initial, (*np.shape(theta)[:-1], self.space.size)), dtype=float)
        common = np.flatnonzero(~self.space.is_per_run)
        result[..., common] = np.asarray(theta)[..., : len(common)]
        return result

    def run_values(self, theta: Float[Array, " N"]) -> dict[str, dict[str, float]]:
        """Per-run parameter values by run and parameter name; empty if there are none."""
        if not self.has_per_run_parameters:
            return {}
        return {name: self.space.run_values(self.recording_theta(theta, k)) for k, name in enumerate(self.run_names)}
