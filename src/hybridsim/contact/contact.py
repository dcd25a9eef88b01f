"""Interface of contact models: wrenches on bodies at an evaluation of the dynamics, and impulses over a step."""

import abc
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Float

from hybridsim.contact.candidates import Candidates
from hybridsim.contact.contact_state import ContactState, MechanismState
from hybridsim.core.types import AnyArray, Qdd, Scalar, Tau
from hybridsim.dynamics.aba import articulated_body_algorithm
from hybridsim.model.model import Model
from hybridsim.spatial.transform import Pose
from hybridsim.taps.taps import Taps

NO_CANDIDATES = Candidates((), ())
"""An empty list of candidate pairs."""


class AbstractContact(eqx.Module):
    """Contact model; the simulator calls `bind` to prepare it for a mechanism."""

    candidates: eqx.AbstractVar[Candidates]
    """Candidate pairs."""
    integrators = ("euler", "rk4", "implicit")
    """Supported integrators."""
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

    def accelerations(
        self,
        model: Model,
        mechanism_state: MechanismState,
        bias: Float[AnyArray, "nb 6"],
        tau: Tau,
        aux: Any,
        dt: Scalar,
        taps: Taps,
    ) -> tuple[Qdd, Any]:
        """Mean joint accelerations over a step [rad/s² or m/s²], including impulses, and the next internal state.

        Args:
            model: the mechanism.
            mechanism_state: state of the mechanism at the beginning of the step.
            bias: bias wrenches of the bodies minus external wrenches [N·m, N].
            tau: joint torques or forces [N·m or N].
            aux: internal state after the previous step.
            dt: time step [s].
            taps: taps of the step.
        """
        del dt, taps
        return articulated_body_algorithm(model, mechanism_state.kin, mechanism_state.inertia, bias, tau), aux


class NoContact(AbstractContact):
    """No contact: bodies pass through each other."""

    candidates: Candidates = eqx.field(static=True, default=NO_CANDIDATES)

    def bind(self, model: Model, dt: Scalar) -> "NoContact":
        del model, dt
        return self
