"""Continuity constraints between consecutive windows (multiple shooting).

A defect is the final state of a window minus the initial state of the next one, in the tangent space; its residual is
weighted by the reciprocal of a standard deviation. If the standard deviation is small, the windows of a run form one
long trajectory; if it is large, a fit converges from poor initial values, from which a long trajectory would diverge
from the data.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from hybridsim.identify.initial_state_layout import InitialStateLayout
from hybridsim.identify.windows import Windows

Array = np.ndarray


class EndStates(NamedTuple):
    """Final coordinates and velocities of windows with their tangents; filled batch by batch."""

    state: Float[Array, "P W x"]
    tangents: Float[Array, "P W d s"]
    """Deltas of the final states along θ, then along the window's own initial state."""


class Continuity:
    """Continuity constraints between the windows of each run."""

    def __init__(self, windows: Windows, state_layout: InitialStateLayout, std: Float[Array, " s"]):
        self.state_layout, self.weight = state_layout, 1.0 / np.asarray(std, dtype=float)
        self.following = np.flatnonzero(windows.follows)
        """Windows that begin where the preceding window ends."""
        self.end_step = windows.steps

    def allocate(self, instances: int, windows: int, directions: int) -> EndStates:
        """Allocate the final states of all windows."""
        s, shape = self.state_layout, (instances, windows)
        return EndStates(np.zeros((*shape, s.nq + s.nv)), np.zeros((*shape, directions, s.size)))

    def record(self, ends: EndStates, instance: Array, window: Array, y: Array, t_y: Array | None, m: int) -> None:
        """Record the final states of a batch of windows, which follow the `m` sensor readings in each row of `y`."""
        state = y[:, self.end_step, m:]
        ends.state[instance, window] = state
        if t_y is not None:
            ends.tangents[instance, window] = self.state_layout.delta_tangents(
                state[:, : self.state_layout.nq], t_y[:, :, self.end_step, m:]
            )

    def weighted_defects(self, ends: EndStates, q: Array, qd: Array) -> Float[Array, "P T s"]:
        """Final states of the preceding windows minus initial states, divided by their standard deviations."""
        following, nq = self.following, self.state_layout.nq
        end = ends.state[:, following - 1]
        return self.weight * self.state_layout.difference(
            q[:, following], qd[:, following], end[..., :nq], end[..., nq:]
        )

    def add_to_normal_equations(
        self, ends: EndStates, q: Array, qd: Array, A: Array, a: Array, B: Array, D: Array, d: Array
    ) -> tuple[Float[Array, " P"], Float[Array, "P W s s"]]:
        """Add the squares of the weighted defects to normal equations in place.

        Returns:
            The cost, and the blocks that couple the initial state of each window with that of the preceding one.
        """
        defect, following, N = self.weighted_defects(ends, q, qd), self.following, A.shape[-1]
        J_initial, J_end = self.state_layout.difference_jacobians(
            q[:, following], ends.state[:, following - 1, : self.state_layout.nq]
        )
        # transposed Jacobians: one row per unknown
        E = (ends.tangents[:, following - 1] @ J_end.transpose(0, 1, 3, 2)) * self.weight  # (P, T, N + s, s)
        J_own = J_initial.transpose(0, 1, 3, 2) * self.weight
        J_theta, J_previous = E[:, :, :N], E[:, :, N:]
        A += np.einsum("ptis,ptjs->pij", J_theta, J_theta, optimize=True)
        a += np.einsum("ptis,pts->pi", J_theta, defect)
        B[:, following - 1] += J_previous @ J_theta.transpose(0, 1, 3, 2)
        B[:, following] += J_own @ J_theta.transpose(0, 1, 3, 2)
        D[:, following - 1] += J_previous @ J_previous.transpose(0, 1, 3, 2)
        D[:, following] += J_own @ J_own.transpose(0, 1, 3, 2)
        d[:, following - 1] += np.einsum("ptis,pts->pti", J_previous, defect)
        d[:, following] += np.einsum("ptis,pts->pti", J_own, defect)
        C = np.zeros_like(D)
        C[:, following] = J_own @ J_previous.transpose(0, 1, 3, 2)
        return 0.5 * np.square(defect).sum(axis=(1, 2)), C
