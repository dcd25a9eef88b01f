"""Settings of a simulation, apart from its model and networks."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY
from typing import TYPE_CHECKING, Annotated, Any, cast

from pydantic import BeforeValidator, model_validator

from hybridsim.contact.choices import CONTACTS
from hybridsim.core.advice import Advice, Setting
from hybridsim.core.specification import Choice, OneOf, Positive, setting_error, specification
from hybridsim.dynamics.choices import ACTUATION_STAGES
from hybridsim.sim.choices import BACKENDS, INTEGRATORS

if TYPE_CHECKING:
    from hybridsim.contact.contact import AbstractContact
    from hybridsim.dynamics.actuation import AbstractStage, Actuation


def _contact_base() -> "type[AbstractContact]":
    from hybridsim.contact.contact import AbstractContact

    return AbstractContact


def _stage_base() -> "type[AbstractStage]":
    from hybridsim.dynamics.actuation import AbstractStage

    return AbstractStage


def _stages_of(value: Any) -> Any:
    """Stages of an `Actuation`."""
    return getattr(value, "stages", value)


if TYPE_CHECKING:
    # what users may write; instances are stored
    ContactChoice = AbstractContact | str | Mapping[str, Any] | None
    ActuationChoice = Actuation | Sequence[AbstractStage | str | Mapping[str, Any]]
else:
    ContactChoice = Annotated[Any, Choice("kind", lambda: CONTACTS, base=_contact_base)] | None
    ActuationChoice = Annotated[
        tuple[Annotated[Any, Choice("kind", lambda: ACTUATION_STAGES, base=_stage_base)], ...],
        BeforeValidator(_stages_of),
    ]


@specification
class SimulationSettings:
    """Time step, integrator, contact and actuation of a simulation."""

    _: KW_ONLY
    dt: Positive | None = None
    """Time step [s]; by default that of the model."""
    integrator: Annotated[str, OneOf(lambda: INTEGRATORS)] = "euler"
    """Semi-implicit Euler, Runge–Kutta 4, or implicit in velocity for stiff damping."""
    backend: Annotated[str, OneOf(lambda: BACKENDS)] = "auto"
    """Backend of the simulation: native code with XLA as fallback (`auto`), or one of them."""
    floor: float | None = None
    """Height of a floor to add [m]."""
    contact: ContactChoice = None
    """Contact model: none (the default), impulse, compliant, or a table with settings."""
    actuation: ActuationChoice = ()
    """Stages from commands to actuator forces, in order; by default those of the model's actuators."""

    @model_validator(mode="after")
    def _check_integrator(self):
        supported = getattr(self.contact, "integrators", None)
        if supported is not None and self.integrator not in supported:
            fix = Advice("write {}, or {}", Setting("integrator", supported[0]), Setting("contact", "compliant"))
            raise setting_error("integrator", f"must be {' or '.join(supported)} with this contact model", fix)
        return self

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments of `Simulator`."""
        from hybridsim.dynamics.actuation import Actuation

        return {
            "dt": self.dt,
            "integrator": self.integrator,
            "backend": self.backend,
            "contact": self.contact,
            "actuation": Actuation(*cast("Sequence[AbstractStage]", self.actuation)) if self.actuation else None,
        }
