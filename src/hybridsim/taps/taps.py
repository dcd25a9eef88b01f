"""Taps: the object through which a step publishes its named quantities and lets grafts change them.

The engine contains only lines such as `tau = taps("joint.tau", tau)`. Without grafts and recording, such a line returns
its argument and adds nothing to the traced program. A Taps object lives for one evaluation of the dynamics.
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
from hybridsim.spatial.rotation import matrix_from_rotation_vector
from hybridsim.spatial.transform import Pose
from hybridsim.taps.address import Selection
from hybridsim.taps.blueprint import BoundBlueprint, BoundGraft
from hybridsim.taps.catalogue import BY_NAME, USER_INPUT, Form
from hybridsim.taps.history import STEPS, History, advance_history, lagged_value

Retract = Callable[[AnyArray, AnyArray], AnyArray]
_INERTIA_ROWS, _INERTIA_COLUMNS = np.array(SYMMETRIC_ORDER).T


class Taps:
    """Publishes quantities, applies grafts to them, and optionally records them."""

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
        """Whether there are grafts, or recording is on."""
        return bool(self._grafts) or self._record

    def __call__(
        self, name: str, value: Any, retract: Retract | None = None, *, rows: Bool[AnyArray, " rows"] | None = None
    ) -> Any:
        """Publish a quantity of the catalogue and return it, changed by the grafts on it.

        Args:
            name: name in the catalogue.
            value: value in the engine's representation.
            retract: for configurations, the retraction along the degrees of freedom.
            rows: mask of the rows on which grafts act; all by default.
        """
        if not self.is_active:
            return value
        self._check_scope(name)
        self._values[name] = value
        for index, graft in enumerate(self._grafts):
            for k, out in enumerate(graft.outputs):
                if out.quantity.name == name:
                    before = value
                    value = _apply_change(value, out, graft.mode, self._result(index, graft)[k], retract)
                    if rows is not None:
                        value = jnp.where(rows.reshape(-1, *[1] * (value.ndim - 1)), value, before)
                    self._values[name] = value
                    if self._record:
                        self._changes[index][name] = self._changes[index].get(name, 0.0) + _contribution(
                            name, value, before, out, graft.mode, rows
                        )
        return value

    def has_reader(self, name: str) -> bool:
        """Whether a quantity is recorded or read by a graft, for quantities that the engine itself does not need."""
        return self._record or any(
            selection.quantity.name == name for graft in self._grafts for selection in graft.inputs
        )

    def publish_user_inputs(self, inputs: Mapping[str, AnyArray]) -> None:
        """Publish the user inputs, addressed as `input.<name>`."""
        if self.is_active:
            self._values |= {f"{USER_INPUT}.{name}": value for name, value in inputs.items()}

    def published_values(self) -> dict[str, Float[Array, "..."]]:
        """All quantities published so far, as arrays that a graft would read."""
        return {name: _as_array(name, value) for name, value in self._values.items()}

    def changes(self) -> list[dict[str, Float[Array, "..."]]]:
        """Values added or substituted by every graft so far, by quantity; empty unless recording is on."""
        return self._changes

    def next_history(self) -> History:
        """History for the next step; empty if no graft reads lagged values."""
        if missing := [name for name in self._history if name != STEPS and name not in self._values]:
            raise TapError(f"the step has no value of {missing[0]!r}, but a graft reads its lagged values")
        values = {name: _as_array(name, self._values[name]) for name in self._history if name != STEPS}
        return advance_history(self._history, values)

    def _check_scope(self, name: str) -> None:
        if jax.extend.core.get_opaque_trace_state() != self._trace:
            raise TapError(
                f"tap {name!r} is used inside a vmap, scan, cond or grad that was entered after the taps were created; "
                "move it to the trace level of `forward`"
            )

    def _result(self, index: int, graft: BoundGraft) -> list[Array]:
        """Outputs of a graft's network, one array (rows, components) per output; computed once."""
        if index not in self._results:
            self._results[index] = _evaluate(graft, [self._read(selection, graft) for selection in graft.inputs])
        return self._results[index]

    def _read(self, selection: Selection, graft: BoundGraft) -> Array:
        name = selection.quantity.name
        if selection.lag and name in self._history:
            current = _as_array(name, self._values[name]) if name in self._values else None
            return _select(lagged_value(self._history, selection, current), selection)
        if name not in self._values:
            outputs = ", ".join(repr(out.address) for out in graft.outputs)
            if name.startswith(f"{USER_INPUT}."):
                raise TapError(f"the step has no user input for {selection.address!r}, which {outputs} requires")
            raise TapError(f"input {selection.address!r} is computed after output {outputs}")
        array = _as_array(name, self._values[name])
        width = max(len(selection.quantity.components), 1)
        if array.size != selection.total_rows * width:
            expected = selection.total_rows * width
            raise TapError(f"{name!r} has {array.size} elements, but the blueprint expects {expected}")
        # (rows, components), whatever the shape of the quantity
        return _select(array.reshape(-1, width), selection)


def _select(array: Array, selection: Selection) -> Array:
    """Selected rows and components of an array (rows, components)."""
    array = array[np.asarray(selection.rows)]
    return array[:, np.asarray(selection.components)] if selection.components else array


def _evaluate(graft: BoundGraft, inputs: list[Array]) -> list[Array]:
    rows = len(graft.outputs[0].rows)
    if graft.per == "element":
        columns = [
            x if graft.is_per_row(selection) else jnp.broadcast_to(x.reshape(-1), (rows, x.size))
            for x, selection in zip(inputs, graft.inputs, strict=True)
        ]
        out = jax.vmap(lambda x: jnp.ravel(graft.net(x)))(jnp.concatenate(columns, axis=1))
        bounds = np.cumsum([selection.scalars_per_row for selection in graft.outputs])[:-1]
        return jnp.split(out, bounds, axis=1)
    out = jnp.ravel(graft.net(jnp.concatenate([x.reshape(-1) for x in inputs])))
    parts = jnp.split(out, np.cumsum([selection.size for selection in graft.outputs])[:-1])
    return [part.reshape(len(s.rows), s.scalars_per_row) for part, s in zip(parts, graft.outputs, strict=True)]


def _as_array(name: str, value: Any) -> Array:
    """Array representation of a quantity for grafts."""
    form = BY_NAME[name].form if name in BY_NAME else Form.READ_ONLY
    if form is Form.POSE:
        return jax.vmap(lambda X: X.coordinates())(value)
    if form is Form.INERTIA:
        entries = value.I[:, _INERTIA_ROWS, _INERTIA_COLUMNS]
        return jnp.concatenate([value.mass[:, None], value.h, entries], axis=1)
    return jnp.asarray(value)


def _apply_change(value: Any, out: Selection, mode: str, change: Array, retract: Retract | None) -> Any:
    """Add to, replace or scale the selected scalars of a quantity."""
    form, change = out.quantity.form, _scatter(change, out)
    if form is Form.CONFIGURATION:
        assert retract is not None, f"tap {out.quantity.name} needs a retraction"
        return retract(value, change.reshape(-1))
    if form is Form.POSE and mode == "add":
        return jax.vmap(lambda X, offset: X.displace(offset))(value, change)
    old = _as_array(out.quantity.name, value)
    selected = np.zeros(change.shape, dtype=bool)
    selected[np.ix_(out.rows, out.components or (0,))] = True
    change, selected = change.reshape(old.shape), selected.reshape(old.shape)
    if mode == "add":
        new = old + change
    elif mode == "scale":
        new = old * (1.0 + change)
    else:
        new = jnp.where(selected, change, old)
    if form is Form.POSE:
        is_rotated = selected[:, 3:].any(axis=1).reshape(-1, 1, 1)
        return Pose(jnp.where(is_rotated, jax.vmap(matrix_from_rotation_vector)(new[:, 3:]), value.R), new[:, :3])
    if form is Form.INERTIA:
        return RigidInertia(new[:, 0], new[:, 1:4], jax.vmap(symmetric_matrix)(new[:, 4:]))
    return new


def _contribution(
    name: str, value: Any, before: Any, out: Selection, mode: str, rows: Bool[AnyArray, " rows"] | None
) -> Array:
    """Value that a graft has added to a quantity or substituted for it."""
    new = _as_array(name, value)
    if mode != "replace":
        return new - _as_array(name, before)
    selected = np.zeros((out.total_rows, max(len(out.quantity.components), 1)), dtype=bool)
    selected[np.ix_(out.rows, out.components or (0,))] = True
    selected = selected.reshape(new.shape)
    return jnp.where(selected if rows is None else selected & rows.reshape(-1, *[1] * (new.ndim - 1)), new, 0.0)


def _scatter(change: Array, out: Selection) -> Array:
    """Scatter a change into an array with all rows and components, zero where not selected."""
    width = max(len(out.quantity.components), 1)
    source = np.full((out.total_rows, width), change.size)
    source[np.ix_(out.rows, out.components or (0,))] = np.arange(change.size).reshape(change.shape)
    padded = jnp.concatenate([change.reshape(-1), np.zeros(1)])
    return take(padded, source.reshape(-1).tolist()).reshape(source.shape)
