"""Simulator: a model with its actuation, contact model, integrator and grafted networks."""

from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax.core import Tracer

from hybridsim.contact.candidates import Candidates
from hybridsim.contact.choices import CONTACTS
from hybridsim.contact.collision.initial_overlap import warn_about_overlaps
from hybridsim.contact.contact import AbstractContact, NoContact
from hybridsim.contact.pair_defaults import with_pair_defaults
from hybridsim.core.choices import check_choice
from hybridsim.core.types import ArrayLike, Q, Qd, Scalar, as_floats
from hybridsim.core.warnings import warn_user
from hybridsim.dynamics.actuation import Actuation
from hybridsim.model.model import Model
from hybridsim.sim.choices import BACKENDS, INTEGRATORS
from hybridsim.sim.state import State
from hybridsim.taps.address import AxisNames
from hybridsim.taps.blueprint import Blueprint, BoundBlueprint
from hybridsim.taps.catalogue import Axis
from hybridsim.taps.history import initial_history
from hybridsim.taps.taps import Taps


class Simulator(eqx.Module):
    """All parameters and settings of a time step; a pytree like the model itself."""

    model: Model
    blueprint: Blueprint
    actuation: Actuation
    contact: AbstractContact
    """Contact model; none by default."""
    dt: Scalar
    """Time step [s]."""
    integrator: str = eqx.field(static=True)
    """Name of one of the `INTEGRATORS`."""
    backend: str = eqx.field(static=True)
    """`auto` (native code on a CPU, XLA otherwise), `native` or `xla`."""
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
            actuation: actuation model from commands to torques; the actuators of the model by default.
            contact: contact model: `impulse`, `compliant`, or an instance with custom settings; no contact by default.
            dt: time step [s]; that of the model by default.
            integrator: one of `sim.choices.INTEGRATORS`.
            backend: one of `sim.choices.BACKENDS`.
        """
        check_choice("backend", backend, BACKENDS)
        check_choice("integrator", integrator, INTEGRATORS)
        for argument, kind in ((model, Model), (blueprint, Blueprint), (actuation, Actuation)):
            if argument is not None and not isinstance(argument, kind):
                raise TypeError(f"Simulator needs an instance of {kind.__name__}, not {type(argument).__name__}")
        self.model = model
        self.blueprint = blueprint or Blueprint()
        self.actuation = actuation or Actuation()
        self.dt = as_floats(model.timestep if dt is None else dt)
        if not isinstance(self.dt, Tracer) and not (np.isfinite(self.dt).all() and (self.dt > 0.0).all()):
            raise ValueError(f"the time step must be positive and finite, not {dt} s")
        self.actuation.check(self.dt)
        self.contact = _bind_contact(contact, model, self.dt, integrator)
        self.integrator = integrator
        self.backend = backend
        self.axis_names = tuple(axis_names(model, self.contact.candidates).items())
        self.blueprint.bind(dict(self.axis_names))  # an incompatible blueprint fails here, not in the first step

    def bound_blueprint(self) -> BoundBlueprint:
        """The blueprint with its addresses resolved for the model."""
        return self.blueprint.bind(dict(self.axis_names))

    def open_taps(self, state: State, *, record: bool = False) -> Taps:
        """Taps for one evaluation of the dynamics at a state."""
        self.check_aux(state)
        return Taps(self.bound_blueprint(), state.aux.get("history"), record=record)

    def initial_state(self, q: ArrayLike | None = None, qd: ArrayLike | None = None, t: float | Scalar = 0.0) -> State:
        """State at time `t` [s]; by default the home configuration at rest. Quaternions are normalized."""
        model = self.model
        if q is None and self.contact.candidates.nc:
            warn_about_overlaps(model, self.contact.candidates, within_trees=False)
        q_initial = as_floats(model.home if q is None else q)
        qd_initial = as_floats(np.zeros(model.nv) if qd is None else qd)
        if q_initial.shape != (model.nq,) or qd_initial.shape != (model.nv,):
            raise ValueError(
                f"model {model.name!r} has {model.nq} coordinates and {model.nv} velocities, "
                f"but q has shape {q_initial.shape} and qd has shape {qd_initial.shape}; the coordinates are "
                f"{', '.join(model.topology.coordinate_names)}"
            )
        if not isinstance(q_initial, Tracer):
            q_initial = _normalize_quaternions(model, q_initial)
        return self._state(q_initial, qd_initial, as_floats(t))

    def home_state(self) -> State:
        """The home configuration at rest, without the checks and warnings of `initial_state`, for use in every step."""
        model = self.model
        return self._state(as_floats(model.home), as_floats(np.zeros(model.nv)), as_floats(0.0))

    def _state(self, q: Q, qd: Qd, t: Scalar) -> State:
        """State with the initial internal states."""
        aux: dict[str, Any] = {"actuation": self.actuation.initial_state(self.model, q, qd)}
        if (contact_aux := self.contact.initial_state()) is not None:
            aux["contact"] = contact_aux
        if self._reads_history:
            aux["history"] = initial_history(self.bound_blueprint())
        return State(q, qd, t, aux)

    def check_aux(self, state: State) -> None:
        """Raise if the keys of `state.aux` do not match this simulator, as for a state of another simulator."""
        expected = {"actuation"}
        expected |= set() if self.contact.initial_state() is None else {"contact"}
        expected |= {"history"} if self._reads_history else set()
        if state.aux.keys() != expected:
            raise ValueError(
                f"state.aux has keys {', '.join(sorted(state.aux)) or '(none)'}; this simulator expects "
                f"{', '.join(sorted(expected))}: create the state with initial_state(q, qd) of this simulator"
            )

    @property
    def _reads_history(self) -> bool:
        """Whether a network reads lagged values."""
        return any("@" in address for graft in self.blueprint.grafts for address in graft.inputs)


def _bind_contact(choice: Any, model: Model, dt: Scalar, integrator: str) -> AbstractContact:
    if isinstance(choice, str):
        check_choice("contact model", choice, CONTACTS)
        choice = CONTACTS[choice]()
    if isinstance(choice, type) and issubclass(choice, AbstractContact):
        raise TypeError(f"contact must be an instance of a contact model, not its class: write {choice.__name__}()")
    contact = NoContact() if choice is None else choice
    if not isinstance(contact, AbstractContact):
        raise TypeError(f"contact must be a contact model or the name of one, not {type(contact).__name__}")
    if contact.integrators is not None and integrator not in contact.integrators:
        raise ValueError(
            f"{type(contact).__name__} corrects the velocities once per step, which integrator {integrator!r} "
            f"does not support: use {' or '.join(map(repr, contact.integrators))}, or compliant contact"
        )
    with jax.enable_x64(True):
        contact = with_pair_defaults(contact, model).bind(model, dt)
    if contact.candidates.nc:
        warn_about_overlaps(model, contact.candidates, within_trees=True)
    elif model.geometry.infos and not isinstance(contact, NoContact):
        warn_user(f"no two shapes of model {model.name!r} can collide{_no_candidates_advice(model)}")
    return contact


def _no_candidates_advice(model: Model) -> str:
    if any(info.group or info.mask for info in model.geometry.infos):
        return "; `hybridsim.with_floor(model)` adds a floor"
    return (
        ': group and mask of all shapes are 0, as in an MJCF file with contype="0" conaffinity="0" or '
        '<flag contact="disable"/>; remove that from the file'
    )


def _normalize_quaternions(model: Model, q: np.ndarray) -> np.ndarray:
    """Normalize quaternions, in NumPy regardless of JAX's settings; raise if their length is not near 1."""
    topology = model.topology
    for joint, kind, (start, stop) in zip(topology.joint_names, topology.joint_types, topology.q_slices, strict=True):
        if not np.isfinite(q[start:stop]).all():
            raise ValueError(f"the coordinates of joint {joint!r} are not finite: {q[start:stop].tolist()}")
        if not kind.joint.is_euclidean:
            length = float(np.linalg.norm(q[stop - 4 : stop]))
            if not 0.5 < length < 2.0:
                raise ValueError(f"the quaternion (w, x, y, z) of joint {joint!r} has length {length:g}, not 1")
            q[stop - 4 : stop] /= length
    return q


def axis_names(model: Model, candidates: Candidates) -> AxisNames:
    """Names of the elements along every axis of the tap catalogue."""
    topology = model.topology
    return {
        Axis.COORDINATE: topology.coordinate_names,
        Axis.DOF: topology.dof_names,
        Axis.BODY: topology.body_names,
        Axis.ACTUATOR: model.actuator.names,
        Axis.CONTACT: candidates.names,
    }
