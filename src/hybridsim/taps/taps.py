"""Taps: the object through which a step publishes its named quantities and lets grafts change them.

`tau = taps("joint.tau", tau)` is all that the engine contains of it. Without grafts and recording that line returns its
argument and adds nothing to the traced program. A Taps object lives for one evaluation of the dynamics.
"""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.extend.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from hybridsim.core.errors import TapError
from hybridsim.core.rows import take
from hybridsim.core.types import AnyArray
from hybridsim.spatial.inertia import SYMMETRIC_ORDER, RigidInertia, symmetric_matrix
from hybridsim.spatial.rotation import matrix_exp
from hybridsim.spatial.transform import Pose
from hybridsim.taps.address import Selection
from hybridsim.taps.blueprint import BoundBlueprint, BoundGraft
from hybridsim.taps.catalog import BY_NAME, USER_INPUT, Form
from hybridsim.taps.history import STEPS, History, advanced, recalled

Retract = Callable[[AnyArray, AnyArray], AnyArray]
_INERTIA_ROWS, _INERTIA_COLUMNS = np.array(SYMMETRIC_ORDER).T


class Taps:
    """Publishes quantities, applies grafts, and records if asked to."""

    def __init__(
        self,
        blueprint: BoundBlueprint | None = None,
        history: Mapping[str, Any] | None = None,
        *,
        record: bool = False,
    ):
        self._grafts = blueprint.grafts if blueprint else ()
        self._history = history or {}
        self._record = record
        self._values: dict[str, Any] = {}
        self._results: dict[int, list[Array]] = {}
        self._changes: list[dict[str, Array]] = [{} for _ in self._grafts]
        self._trace = jax.extend.core.get_opaque_trace_state() if self.is_active else None

    @property
    def is_active(self) -> bool:
        """Is there anything to change or to record?"""
        return bool(self._grafts) or self._record

    def __call__(
        self, name: str, value: Any, retract: Retract | None = None, *, rows: Bool[AnyArray, " rows"] | None = None
    ) -> Any:
        """Publish a quantity of the catalogue and return it, changed by the grafts on it.

        Args:
            name: name in the catalogue.
            value: the value as the engine has it.
            retract: for configurations, how to move one along the degrees of freedom.
            rows: of which grafts have an effect; of all by default.
        """
        if not self.is_active:
            return value
        self._check_scope(name)
        self._values[name] = value
        for place, graft in enumerate(self._grafts):
            for which, out in enumerate(graft.outputs):
                if out.quantity.name == name:
                    before = value
                    value = _changed(value, out, graft.mode, self._result(place, graft)[which], retract)
                    if rows is not None:
                        value = jnp.where(rows.reshape(-1, *[1] * (value.ndim - 1)), value, before)
                    self._values[name] = value
                    if self._record:
                        self._changes[place][name] = self._changes[place].get(name, 0.0) + _contribution(
                            name, value, before, out, graft.mode, rows
                        )
        return value

    def wants(self, name: str) -> bool:
        """Is a quantity read, now or later, that the engine has no need of itself?"""
        return self._record or any(read.quantity.name == name for graft in self._grafts for read in graft.inputs)

    def publish_user_inputs(self, inputs: Mapping[str, AnyArray]) -> None:
        """Publish the inputs that a user adds, addressed as `input.<name>`."""
        if self.is_active:
            self._values |= {f"{USER_INPUT}.{name}": value for name, value in inputs.items()}

    def record(self) -> dict[str, Float[Array, "..."]]:
        """Every quantity published so far, as the array that a graft would read."""
        return {name: _readable(name, value) for name, value in self._values.items()}

    def changes(self) -> list[dict[str, Float[Array, "..."]]]:
        """What every graft has added to quantities so far, or put in their place, by their names, where recorded."""
        return self._changes

    def remembered(self) -> History:
        """What grafts can look back at in the next step; nothing if none does."""
        if missing := [name for name in self._history if name != STEPS and name not in self._values]:
            raise TapError(f"the step was given nothing for {missing[0]!r}, whose past is read")
        values = {name: _readable(name, self._values[name]) for name in self._history if name != STEPS}
        return advanced(self._history, values)

    def _check_scope(self, name: str) -> None:
        if jax.extend.core.get_opaque_trace_state() != self._trace:
            raise TapError(
                f"tap {name!r} stands inside a vmap, scan, cond or grad that was opened after the taps; "
                "move it to the level at which `forward` opens them"
            )

    def _result(self, place: int, graft: BoundGraft) -> list[Array]:
        """Outputs of a graft's network, one array (rows, numbers per row) per output; computed once."""
        if place not in self._results:
            self._results[place] = _evaluated(graft, [self._read(selection, graft) for selection in graft.inputs])
        return self._results[place]

    def _read(self, selection: Selection, graft: BoundGraft) -> Array:
        name = selection.quantity.name
        if selection.past and name in self._history:
            now = _readable(name, self._values[name]) if name in self._values else None
            return _selected(recalled(self._history, selection, now), selection)
        if name not in self._values:
            outputs = ", ".join(repr(out.address) for out in graft.outputs)
            if name.startswith(f"{USER_INPUT}."):
                raise TapError(f"the step was given no user input for {selection.address!r}, which {outputs} needs")
            raise TapError(f"input {selection.address!r} is not yet computed where output {outputs} is")
        array = _readable(name, self._values[name])
        width = max(len(selection.quantity.components), 1)
        if array.size != selection.total_rows * width:
            raise TapError(f"{name!r} has {array.size} numbers, but the blueprint was made for {width}")
        # (rows, numbers per row), whatever the quantity's own shape
        return _selected(array.reshape(-1, width), selection)


def _selected(array: Array, selection: Selection) -> Array:
    """The chosen rows and components of an array (rows, numbers per row)."""
    array = array[np.asarray(selection.rows)]
    return array[:, np.asarray(selection.components)] if selection.components else array


def _evaluated(graft: BoundGraft, inputs: list[Array]) -> list[Array]:
    rows = len(graft.outputs[0].rows)
    if graft.per == "element":
        columns = [
            x if graft.is_per_row(selection) else jnp.broadcast_to(x.reshape(-1), (rows, x.size))
            for x, selection in zip(inputs, graft.inputs, strict=True)
        ]
        out = jax.vmap(lambda x: jnp.ravel(graft.net(x)))(jnp.concatenate(columns, axis=1))
        bounds = np.cumsum([selection.per_row for selection in graft.outputs])[:-1]
        return jnp.split(out, bounds, axis=1)
    out = jnp.ravel(graft.net(jnp.concatenate([x.reshape(-1) for x in inputs])))
    parts = jnp.split(out, np.cumsum([selection.size for selection in graft.outputs])[:-1])
    return [part.reshape(len(s.rows), s.per_row) for part, s in zip(parts, graft.outputs, strict=True)]


def _readable(name: str, value: Any) -> Array:
    """The array that a graft reads."""
    form = BY_NAME[name].form if name in BY_NAME else Form.INPUT
    if form is Form.POSE:
        return jax.vmap(lambda X: X.coordinates())(value)
    if form is Form.INERTIA:
        entries = value.I[:, _INERTIA_ROWS, _INERTIA_COLUMNS]
        return jnp.concatenate([value.mass[:, None], value.h, entries], axis=1)
    return jnp.asarray(value)


def _changed(value: Any, out: Selection, mode: str, change: Array, retract: Retract | None) -> Any:
    """`value` after the selected scalars were added to, replaced or scaled."""
    form, spread = out.quantity.form, _spread(change, out)
    if form is Form.CONFIGURATION:
        assert retract is not None, f"tap {out.quantity.name} needs a retraction"
        return retract(value, spread.reshape(-1))
    if form is Form.POSE and mode == "add":
        return jax.vmap(lambda X, delta: X.retract(delta))(value, spread)
    old = _readable(out.quantity.name, value)
    selected = np.zeros(spread.shape, dtype=bool)
    selected[np.ix_(out.rows, out.components or (0,))] = True
    spread, selected = spread.reshape(old.shape), selected.reshape(old.shape)
    if mode == "add":
        new = old + spread
    elif mode == "scale":
        new = old * (1.0 + spread)
    else:
        new = jnp.where(selected, spread, old)
    if form is Form.POSE:
        turned = selected[:, 3:].any(axis=1).reshape(-1, 1, 1)
        return Pose(jnp.where(turned, jax.vmap(matrix_exp)(new[:, 3:]), value.R), new[:, :3])
    if form is Form.INERTIA:
        return RigidInertia(new[:, 0], new[:, 1:4], jax.vmap(symmetric_matrix)(new[:, 4:]))
    return new


def _contribution(
    name: str, value: Any, before: Any, out: Selection, mode: str, rows: Bool[AnyArray, " rows"] | None
) -> Array:
    """What a graft has added to a quantity, or put in its place."""
    new = _readable(name, value)
    if mode != "replace":
        return new - _readable(name, before)
    own = np.zeros((out.total_rows, max(len(out.quantity.components), 1)), dtype=bool)
    own[np.ix_(out.rows, out.components or (0,))] = True
    own = own.reshape(new.shape)
    return jnp.where(own if rows is None else own & rows.reshape(-1, *[1] * (new.ndim - 1)), new, 0.0)


def _spread(change: Array, out: Selection) -> Array:
    """The change in an array with all rows and components, zero where nothing is selected."""
    width = max(len(out.quantity.components), 1)
    source = np.full((out.total_rows, width), change.size)
    source[np.ix_(out.rows, out.components or (0,))] = np.arange(change.size).reshape(change.shape)
    padded = jnp.concatenate([change.reshape(-1), np.zeros(1)])
    return take(padded, source.reshape(-1).tolist()).reshape(source.shape)
