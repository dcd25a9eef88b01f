"""What every model of contact offers to a step: forces on bodies, and impulses at its end."""

import abc
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Float

from hybridsim.contact.candidates import Candidates
from hybridsim.contact.contact_state import ContactState, StepKinematics
from hybridsim.core.types import AnyArray, Qdd, Scalar, Tau
from hybridsim.dynamics.aba import articulated_body_algorithm
from hybridsim.model.model import Model
from hybridsim.spatial.transform import Pose
from hybridsim.taps.taps import Taps

NO_CANDIDATES = Candidates((), ())
"""An empty list of contacts."""


class AbstractContact(eqx.Module):
    """A model of contact. `bound` readies it for a mechanism; the simulator does that."""

    candidates: eqx.AbstractVar[Candidates]
    """The contacts that are candidates."""
    integrators = ("euler", "rk4", "implicit")
    """Integrators that it works with."""
    handles_joint_constraints = False
    """Does it take care of joint limits and dry friction of joints?"""

    @abc.abstractmethod
    def bind(self, model: Model, dt: Scalar) -> "AbstractContact":
        """The contact model for a mechanism and a time step [s]: its pairs listed, with one number for each."""

    def initial_state(self) -> Any:
        """Memory at the start of a simulation; none by default."""
        return None

    def wrenches(
        self, model: Model, touch: ContactState, X_WB: Pose, dt: Scalar, taps: Taps
    ) -> Float[AnyArray, "nb 6"]:
        """Wrench of the contacts on each body, at its origin and in its frame [N·m, N]."""
        del touch, X_WB, dt, taps
        return np.zeros((model.nb, 6))

    def accelerations(
        self,
        model: Model,
        motion: StepKinematics,
        bias: Float[AnyArray, "nb 6"],
        tau: Tau,
        memory: Any,
        dt: Scalar,
        taps: Taps,
    ) -> tuple[Qdd, Any]:
        """Joint accelerations over a step [rad/s² or m/s²], impulses included, and the memory after it.

        Args:
            model: the mechanism.
            motion: at the start of the step.
            bias: forces that the bodies' motion calls for, minus those from outside [N·m, N].
            tau: joint torques or forces [N·m or N].
            memory: of the last step.
            dt: time step [s].
            taps: of the step.
        """
        del dt, taps
        return articulated_body_algorithm(model, motion.kin, motion.inertia, bias, tau), memory


class NoContact(AbstractContact):
    """Bodies pass through each other."""

    candidates: Candidates = eqx.field(static=True, default=NO_CANDIDATES)

    def bind(self, model: Model, dt: Scalar) -> "NoContact":
        del model, dt
        return self
