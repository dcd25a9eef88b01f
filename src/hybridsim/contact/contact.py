"""Interface of contact models: wrenches on bodies at an evaluation of the dynamics, and impulses over a step."""

import abc
from typing import Any, ClassVar

import equinox as eqx
import numpy as np
from jaxtyping import Float

from hybridsim.contact.candidates import Candidates
from hybridsim.contact.contact_state import ContactState
from hybridsim.core.derived_table import HIDDEN
from hybridsim.core.types import AnyArray, Q, Qd, Qdd, Scalar
from hybridsim.dynamics.equations_of_motion import EquationsOfMotion
from hybridsim.model.model import Model
from hybridsim.spatial.transform import Pose
from hybridsim.taps.taps import Taps

NO_CANDIDATES = Candidates((), ())
"""An empty list of candidate pairs."""


class AbstractContact(eqx.Module):
    """Contact model; the simulator calls `bind` to prepare it for a mechanism."""

    candidates: eqx.AbstractVar[Candidates]
    """Candidate pairs."""
    integrators: ClassVar[tuple[str, ...] | None] = None
    """Names of the supported integrators; None for all."""
    handles_joint_constraints = False
    """Whether the model also handles joint limits and dry joint friction."""

    @abc.abstractmethod
    def bind(self, model: Model, dt: Scalar) -> "AbstractContact":
        """Return a copy for a mechanism and a time step [s], with candidate pairs and their parameters."""

    def initial_state(self) -> Any:
        """Internal state at the beginning of a simulation; none by default."""
        return None

    def wrenches(
        self, model: Model, contacts: ContactState, X_WB: Pose, dt: Scalar, taps: Taps
    ) -> Float[AnyArray, "nb 6"]:
        """Wrench of the contacts on each body, at its origin and in its frame [N·m, N]."""
        del contacts, X_WB, dt, taps
        return np.zeros((model.nb, 6))

    @property
    def has_constraints(self) -> bool:
        """Whether impulses act within a step; if not, accelerations are those of the articulated-body algorithm."""
        return False

    def solve_constraints(
        self,
        equations: EquationsOfMotion,
        q: Q,
        qd: Qd,
        contacts: ContactState,
        aux: Any,
        dt: Scalar,
        taps: Taps,
    ) -> tuple[Qdd, Any]:
        """Mean joint accelerations over a step [rad/s² or m/s²], including impulses, and the next internal state.

        Args:
            equations: equations of motion without impulses.
            q: coordinates at the beginning of the step.
            qd: velocities at the beginning of the step.
            contacts: contacts at the beginning of the step.
            aux: internal state after the previous step.
            dt: time step [s].
            taps: taps of the step.
        """
        raise NotImplementedError(f"{type(self).__name__} has constraints, but no method solve_constraints")


class NoContact(AbstractContact):
    """No contact: bodies pass through each other."""

    candidates: Candidates = eqx.field(static=True, default=NO_CANDIDATES, metadata=HIDDEN)

    def bind(self, model: Model, dt: Scalar) -> "NoContact":
        del model, dt
        return self
