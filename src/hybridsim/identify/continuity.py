"""Ties between windows: the end of one is where the next begins (multiple shooting).

A defect is the change from the start of a window to the end of the one before, in the tangent space, by a tolerance.
Tight tolerances make one long motion of the windows of a run; loose ones let a fit find its way in from far off, where
a long motion would end anywhere.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from hybridsim.identify.initial_states import InitialStates
from hybridsim.identify.windows import Windows

Array = np.ndarray


class EndStates(NamedTuple):
    """Where windows end, coordinates and velocities, and how that changes; filled in group by group."""

    state: Float[Array, "P W x"]
    by: Float[Array, "P W d s"]
    """Changes of the ends along each direction: θ, then the window's own start."""


class Continuity:
    """Ties between the windows of each run."""

    def __init__(self, windows: Windows, starts: InitialStates, tolerance: Float[Array, " s"]):
        self.starts, self.weight = starts, 1.0 / np.asarray(tolerance, dtype=float)
        self.second = np.flatnonzero(windows.follows)
        """Windows that begin where the one before them ends."""
        self.at = windows.steps

    def room(self, problems: int, windows: int, directions: int) -> EndStates:
        """Room for the ends of all windows."""
        s = self.starts
        return EndStates(np.zeros((problems, windows, s.nq + s.nv)), np.zeros((problems, windows, directions, s.size)))

    def keep(self, ends: EndStates, problem: Array, window: Array, y: Array, t_y: Array | None, m: int) -> None:
        """Take note of where windows of some problems ended; states stand behind the `m` readings."""
        state = y[:, self.at, m:]
        ends.state[problem, window] = state
        if t_y is not None:
            ends.by[problem, window] = self.starts.changes_of(state[:, : self.starts.nq], t_y[:, :, self.at, m:])

    def defects(self, ends: EndStates, q: Array, qd: Array) -> Float[Array, "P T s"]:
        """Weighted changes from the starts of windows to the ends of those before."""
        second, nq = self.second, self.starts.nq
        before = ends.state[:, second - 1]
        return self.weight * self.starts.change(q[:, second], qd[:, second], before[..., :nq], before[..., nq:])

    def add(
        self, ends: EndStates, q: Array, qd: Array, A: Array, a: Array, B: Array, D: Array, d: Array
    ) -> tuple[Float[Array, " P"], Float[Array, "P W s s"]]:
        """Add the squares of the defects to normal equations in place.

        Returns:
            The cost, and the blocks between the starts of windows and those before.
        """
        defect, second, n = self.defects(ends, q, qd), self.second, A.shape[-1]
        of_start, of_end = self.starts.change_slopes(q[:, second], ends.state[:, second - 1, : self.starts.nq])
        E = (ends.by[:, second - 1] @ of_end.transpose(0, 1, 3, 2)) * self.weight  # (P, T, n + s, s)
        own = of_start.transpose(0, 1, 3, 2) * self.weight  # defects by the window's own start, likewise
        by_theta, by_start = E[:, :, :n], E[:, :, n:]  # by θ, and by the start of the window before
        A += np.einsum("ptis,ptjs->pij", by_theta, by_theta, optimize=True)
        a += np.einsum("ptis,pts->pi", by_theta, defect)
        B[:, second - 1] += by_start @ by_theta.transpose(0, 1, 3, 2)
        B[:, second] += own @ by_theta.transpose(0, 1, 3, 2)
        D[:, second - 1] += by_start @ by_start.transpose(0, 1, 3, 2)
        D[:, second] += own @ own.transpose(0, 1, 3, 2)
        d[:, second - 1] += np.einsum("ptis,pts->pti", by_start, defect)
        d[:, second] += np.einsum("ptis,pts->pti", own, defect)
        C = np.zeros_like(D)
        C[:, second] = own @ by_start.transpose(0, 1, 3, 2)
        return 0.5 * np.square(defect).sum(axis=(1, 2)), C
