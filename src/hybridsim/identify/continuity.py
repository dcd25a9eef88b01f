"""Continuity constraints between consecutive windows (multiple shooting).

A defect is the final state of a window minus the initial state of the next one, in the tangent space and divided by a
tolerance. With tight tolerances the windows of a run form one long trajectory; with loose ones a fit converges from
poor initial values, from which a long trajectory would diverge from the data.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from hybridsim.identify.initial_states import InitialStates
from hybridsim.identify.windows import Windows

Array = np.ndarray


class EndStates(NamedTuple):
    """Final coordinates and velocities of windows with their tangents; filled batch by batch."""

    state: Float[Array, "P W x"]
    tangents: Float[Array, "P W d s"]
    """Deltas of the final states along θ, then along the window's own initial state."""


class Continuity:
    """Continuity constraints between the windows of each run."""

    def __init__(self, windows: Windows, initial_states: InitialStates, tolerance: Float[Array, " s"]):
        self.initial_states, self.weight = initial_states, 1.0 / np.asarray(tolerance, dtype=float)
        self.following = np.flatnonzero(windows.follows)
        """Windows that begin where the preceding window ends."""
        self.end_step = windows.steps

    def allocate(self, problems: int, windows: int, directions: int) -> EndStates:
        """Allocate the final states of all windows."""
        s = self.initial_states
        return EndStates(np.zeros((problems, windows, s.nq + s.nv)), np.zeros((problems, windows, directions, s.size)))

    def record(self, ends: EndStates, problem: Array, window: Array, y: Array, t_y: Array | None, m: int) -> None:
        """Record the final states of a batch of windows, which follow the `m` sensor readings in each row of `y`."""
        state = y[:, self.end_step, m:]
        ends.state[problem, window] = state
        if t_y is not None:
            ends.tangents[problem, window] = self.initial_states.delta_tangents(
                state[:, : self.initial_states.nq], t_y[:, :, self.end_step, m:]
            )

    def defects(self, ends: EndStates, q: Array, qd: Array) -> Float[Array, "P T s"]:
        """Weighted differences: final states of the preceding windows minus initial states."""
        following, nq = self.following, self.initial_states.nq
        end = ends.state[:, following - 1]
        return self.weight * self.initial_states.difference(
            q[:, following], qd[:, following], end[..., :nq], end[..., nq:]
        )

    def add_to_normal_equations(
        self, ends: EndStates, q: Array, qd: Array, A: Array, a: Array, B: Array, D: Array, d: Array
    ) -> tuple[Float[Array, " P"], Float[Array, "P W s s"]]:
        """Add the squared defects to normal equations in place.

        Returns:
            The cost, and the blocks that couple the initial state of each window with that of the preceding one.
        """
        defect, following, n = self.defects(ends, q, qd), self.following, A.shape[-1]
        J_initial, J_end = self.initial_states.difference_jacobians(
            q[:, following], ends.state[:, following - 1, : self.initial_states.nq]
        )
        E = (ends.tangents[:, following - 1] @ J_end.transpose(0, 1, 3, 2)) * self.weight  # (P, T, n + s, s)
        J_own = J_initial.transpose(0, 1, 3, 2) * self.weight  # transposed likewise
        J_theta, J_previous = E[:, :, :n], E[:, :, n:]
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
