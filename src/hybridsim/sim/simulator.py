"""Simulator: a model, the parts that are swapped whole, and the networks grafted onto it."""

from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax.core import Tracer

from hybridsim.contact.candidates import Candidates
from hybridsim.contact.collision.initial_overlap import warn_about_overlaps
from hybridsim.contact.compliant.compliant_contact import CompliantContact
from hybridsim.contact.contact import AbstractContact, NoContact
from hybridsim.contact.impulse.impulse_contact import ImpulseContact
from hybridsim.contact.pair_defaults import with_pair_defaults
from hybridsim.core.types import ArrayLike, Scalar, as_floats
from hybridsim.core.warnings import warn_user
from hybridsim.dynamics.actuation import Actuation
from hybridsim.model.joints import JointType
from hybridsim.model.model import Model
from hybridsim.sim.state import State
from hybridsim.taps.address import AxisNames
from hybridsim.taps.blueprint import Blueprint, BoundBlueprint
from hybridsim.taps.catalog import Axis
from hybridsim.taps.history import blank
from hybridsim.taps.taps import Taps

INTEGRATORS = ("euler", "rk4", "implicit")
"""Ways to take a step: semi-implicit Euler, Runge–Kutta, implicit in velocity."""


CONTACTS = {"none": NoContact, "impulse": ImpulseContact, "compliant": CompliantContact}
"""Contact models by name."""

BACKENDS = ("auto", "native", "xla")
"""What runs a rollout: native code where it can and XLA elsewhere, native code or nothing, XLA."""


class Simulator(eqx.Module):
    """Everything that a step needs besides the state; a pytree of parameters like the model itself."""

    model: Model
    blueprint: Blueprint
    actuation: Actuation
    contact: AbstractContact
    """How bodies touch; not at all by default."""
    dt: Scalar
    """Time step [s]."""
    integrator: str = eqx.field(static=True)
    """`euler` (semi-implicit), `rk4`, or `implicit` (implicit in velocity, for stiff damping)."""
    backend: str = eqx.field(static=True)
    """`auto` (native code on a CPU, XLA elsewhere), `native` or `xla`."""
    axis_names: tuple[tuple[Axis, tuple[str, ...]], ...] = eqx.field(static=True)

    def __init__(
        self,
        model: Model,
        *,
        blueprint: Blueprint | None = None,
        actuation: Actuation | None = None,
        contact: AbstractContact | str | None = None,
        dt: ArrayLike | None = None,
        integrator: str = "euler",
        backend: str = "auto",
    ):
        """Build a simulator.

        Args:
            model: the mechanism.
            blueprint: networks to graft; none by default.
            actuation: how commands become torques; the model's own actuators by default.
            contact: how bodies touch: `impulse`, `compliant`, or one of these with settings of its own; by default they
                pass through each other.
            dt: time step [s]; the model's own by default.
            integrator: how a step is taken.
            backend: what runs rollouts.
        """
        if backend not in BACKENDS:
            raise ValueError(f"unknown backend {backend!r}; choose one of {', '.join(BACKENDS)}")
        if integrator not in INTEGRATORS:
            raise ValueError(f"unknown integrator {integrator!r}; choose one of {', '.join(INTEGRATORS)}")
        for given, kind in ((model, Model), (blueprint, Blueprint), (actuation, Actuation)):
            if given is not None and not isinstance(given, kind):
                raise TypeError(f"Simulator needs a {kind.__name__}, not {type(given).__name__}")
        self.model = model
        self.blueprint = blueprint or Blueprint()
        self.actuation = actuation or Actuation()
        self.dt = as_floats(model.timestep if dt is None else dt)
        if not isinstance(self.dt, Tracer) and not (np.isfinite(self.dt).all() and (self.dt > 0.0).all()):
            raise ValueError(f"the time step must be positive and finite, not {dt} s")
        self.actuation.check(self.dt)
        self.contact = _bound_contact(contact, model, self.dt, integrator)
        self.integrator = integrator
        self.backend = backend
        self.axis_names = tuple(axis_names(model, self.contact.candidates).items())
        self.blueprint.bind(dict(self.axis_names))  # a blueprint that does not fit fails here, not in the first step

    def bound_blueprint(self) -> BoundBlueprint:
        """The blueprint with its addresses resolved for the model."""
        return self.blueprint.bind(dict(self.axis_names))

    def open_taps(self, state: State, *, record: bool = False) -> Taps:
        """Taps for one evaluation of the dynamics of a state."""
        self.check_aux(state)
        return Taps(self.bound_blueprint(), state.aux.get("history"), record=record)

    def initial_state(self, q: ArrayLike | None = None, qd: ArrayLike | None = None, t: float | Scalar = 0.0) -> State:
        """A state at time `t` [s]; by default the model's home configuration at rest.

        Quaternions are brought to unit length.
        """
        model = self.model
        if q is None and self.contact.candidates.nc:
            warn_about_overlaps(model, self.contact.candidates, within_trees=False)
        start = as_floats(model.home if q is None else q)
        speed = as_floats(np.zeros(model.nv) if qd is None else qd)
        if start.shape != (model.nq,) or speed.shape != (model.nv,):
            raise ValueError(
                f"model {model.name!r} has {model.nq} coordinates and {model.nv} velocities, "
                f"not {start.shape} and {speed.shape}: {', '.join(model.topology.coordinate_names)}"
            )
        if not isinstance(start, Tracer):
            start = _with_unit_quaternions(model, start)
        aux: dict[str, Any] = {"actuation": self.actuation.initial_state(model, start, speed)}
        if (memory := self.contact.initial_state()) is not None:
            aux["contact"] = memory
        if self._reads_history:
            aux["history"] = blank(self.bound_blueprint())
        return State(start, speed, as_floats(t), aux)

    def check_aux(self, state: State) -> None:
        """Raise if a state remembers other things than this simulator: another one made it."""
        wanted = {"actuation"}
        wanted |= set() if self.contact.initial_state() is None else {"contact"}
        wanted |= {"history"} if self._reads_history else set()
        if state.aux.keys() != wanted:
            raise ValueError(
                f"the state remembers {', '.join(sorted(state.aux)) or 'nothing'}, but the simulator wants "
                f"{', '.join(sorted(wanted))}; make a state by sim.initial_state(q, qd) of the simulator that takes it"
            )

    @property
    def _reads_history(self) -> bool:
        """Does a network read the past?"""
        return any("@" in address for graft in self.blueprint.grafts for address in graft.inputs)


def _bound_contact(given: Any, model: Model, dt: Scalar, integrator: str) -> AbstractContact:
    if isinstance(given, str):
        if given not in CONTACTS:
            raise ValueError(f"unknown contact model {given!r}; choose one of {', '.join(CONTACTS)}")
        given = CONTACTS[given]()
    if isinstance(given, type) and issubclass(given, AbstractContact):
        raise TypeError(f"contact is a model of contact, not its class: write {given.__name__}()")
    contact = NoContact() if given is None else given
    if not isinstance(contact, AbstractContact):
        raise TypeError(f"contact is a model of contact or the name of one, not {type(contact).__name__}")
    if integrator not in contact.integrators:
        raise ValueError(
            f"{type(contact).__name__} corrects the velocities of a step once, which the integrator {integrator!r} "
            "does not allow: use 'euler', or compliant contact"
        )
    with jax.enable_x64(True):
        contact = with_pair_defaults(contact, model).bind(model, dt)
    if contact.candidates.nc:
        warn_about_overlaps(model, contact.candidates, within_trees=True)
    elif model.geometry.infos and not isinstance(contact, NoContact):
        warn_user(f"no two shapes of model {model.name!r} can touch{_advice(model)}")
    return contact


def _advice(model: Model) -> str:
    if any(info.group or info.mask for info in model.geometry.infos):
        return "; `hybridsim.with_floor(model)` adds a floor"
    return (
        ': group and mask of all of them are 0, as in an MJCF file with contype="0" conaffinity="0" or '
        '<flag contact="disable"/>; take that out of the file'
    )


def _with_unit_quaternions(model: Model, q: np.ndarray) -> np.ndarray:
    """Coordinates with quaternions of unit length, in NumPy whatever JAX is set to; raises for what cannot be one."""
    topology = model.topology
    for joint, kind, (start, stop) in zip(topology.joint_names, topology.joint_types, topology.q_slices, strict=True):
        if not np.isfinite(q[start:stop]).all():
            raise ValueError(f"the coordinates of joint {joint!r} are {q[start:stop].tolist()}: not finite")
        if kind in (JointType.SPHERICAL, JointType.FREE):
            length = float(np.linalg.norm(q[stop - 4 : stop]))
            if not 0.5 < length < 2.0:
                raise ValueError(f"the quaternion (w, x, y, z) of joint {joint!r} has length {length:g}, not 1")
            q[stop - 4 : stop] /= length
    return q


def axis_names(model: Model, contacts: Candidates) -> AxisNames:
    """The model's names along every axis that a tap can have."""
    topology = model.topology
    return {
        Axis.COORDINATE: topology.coordinate_names,
        Axis.DOF: topology.dof_names,
        Axis.BODY: topology.body_names,
        Axis.ACTUATOR: model.actuator.names,
        Axis.CONTACT: contacts.names,
    }
