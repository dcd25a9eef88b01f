"""Blueprint: which networks are grafted onto which quantities of the engine, and what they read.

    Blueprint(
        Graft("joint.tau", ["joint.q", "joint.qd"], MLP(2, 1), per="element"),          one friction law for all joints
        Graft("body.external_force[fin].force", ["body.twist[fin]"], MLP(6, 3)),        drag on one body
        Graft("joint.tau[elbow]", ["joint.q", "step.time"], net, mode="replace"),
    )

A blueprint is an ordinary pytree: its networks' weights can be fitted, batched and saved like any other parameter, and
changing them never recompiles. `bind` checks it against a model and turns names into indices.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax

from hybridsim.core.errors import TapError
from hybridsim.core.messages import name_list as listed_names
from hybridsim.taps.address import AxisNames, Selection, select
from hybridsim.taps.catalog import ORDER, Axis, Form
from hybridsim.taps.passivity import wired

MODES = ("add", "replace", "scale")
SCOPES = ("whole", "element")


class Graft(eqx.Module):
    """One network between named quantities."""

    outputs: tuple[str, ...] = eqx.field(static=True)
    inputs: tuple[str, ...] = eqx.field(static=True)
    net: Callable
    """Maps the concatenated inputs, a vector, to the concatenated outputs."""
    mode: str = eqx.field(static=True)
    """`add` the network's output to the quantity, `replace` it, or `scale` it by one plus the output."""
    per: str = eqx.field(static=True)
    """`whole`: one call with all inputs; `element`: one call per row (joint, body, contact), with shared weights."""

    def __init__(
        self,
        outputs: str | Sequence[str],
        inputs: str | Sequence[str],
        net: Callable,
        *,
        mode: str = "add",
        per: str = "whole",
    ):
        if mode not in MODES:
            raise TapError(f"unknown mode {mode!r} of a graft; choose {', '.join(MODES)}")
        if per not in SCOPES:
            raise TapError(f"a graft is per 'whole' or per 'element', not {per!r}")
        self.outputs = (outputs,) if isinstance(outputs, str) else tuple(outputs)
        self.inputs = (inputs,) if isinstance(inputs, str) else tuple(inputs)
        self.net, self.mode, self.per = net, mode, per


class Blueprint(eqx.Module):
    """All grafts of a simulator, in the order in which those on the same quantity apply."""

    grafts: tuple[Graft, ...]
    inputs: tuple[tuple[str, int], ...] = eqx.field(static=True)
    """Names and sizes of the user inputs that the grafts may read as `input.<name>`."""

    def __init__(self, *grafts: Graft, inputs: Mapping[str, int] | None = None):
        if wrong := [graft for graft in grafts if not isinstance(graft, Graft)]:
            raise TapError(f"Blueprint takes grafts one by one, Blueprint(Graft(...), Graft(...)), not {wrong[0]!r}")
        self.grafts = grafts
        self.inputs = tuple((inputs or {}).items())

    def bind(self, names: AxisNames) -> "BoundBlueprint":
        """The blueprint with its addresses resolved to indices for a model with these names."""
        inputs = dict(self.inputs)
        return BoundBlueprint(tuple(_bound(graft, names, inputs) for graft in self.grafts))


class BoundGraft(eqx.Module):
    """A graft whose addresses are resolved."""

    net: Callable
    outputs: tuple[Selection, ...] = eqx.field(static=True)
    inputs: tuple[Selection, ...] = eqx.field(static=True)
    mode: str = eqx.field(static=True)
    per: str = eqx.field(static=True)

    def is_per_row(self, selection: Selection) -> bool:
        """Whether each call of a per-element network gets only its own row of this input."""
        return self.per == "element" and selection.row_names == self.outputs[0].row_names


class BoundBlueprint(eqx.Module):
    """Grafts ready for the engine."""

    grafts: tuple[BoundGraft, ...]


def _bound(graft: Graft, names: AxisNames, user_inputs: Mapping[str, int]) -> BoundGraft:
    outputs = tuple(select(address, names, user_inputs, write=True) for address in graft.outputs)
    inputs = tuple(select(address, names, user_inputs, write=False) for address in graft.inputs)
    if not outputs or not inputs:
        raise TapError("a graft needs at least one output and one input")
    _check_order(outputs, inputs)
    _check_mode(graft.mode, outputs)
    bound = BoundGraft(graft.net, outputs, inputs, graft.mode, graft.per)
    if graft.per == "element":
        _check_rows(bound)
    _check_sizes(bound)
    net: Any = graft.net
    if hasattr(net, "check_wiring"):
        net.check_wiring(wired(net, outputs, inputs, graft.mode, [bound.is_per_row(read) for read in inputs]))
    return bound


def _check_order(outputs: tuple[Selection, ...], inputs: tuple[Selection, ...]) -> None:
    for out in outputs:
        for given in inputs:
            if not given.past and ORDER.get(given.quantity.name, -1) > ORDER[out.quantity.name]:
                raise TapError(
                    f"input {given.address!r} is not yet computed where output {out.address!r} is; within a step "
                    f"{given.quantity.name} comes after {out.quantity.name}"
                )


def _check_mode(mode: str, outputs: tuple[Selection, ...]) -> None:
    for out in outputs:
        if mode != "add" and out.quantity.form is Form.CONFIGURATION:
            raise TapError(
                f"output {out.address!r} can only be added to, not {mode}d: a sum moves along the degrees of freedom, "
                "anything else could leave the space of rotations"
            )


def _check_rows(graft: BoundGraft) -> None:
    own = graft.outputs[0].row_names
    if any(out.row_names != own for out in graft.outputs):
        listed = ", ".join(repr(out.address) for out in graft.outputs)
        raise TapError(f"outputs {listed} of one per-element network must have the same rows")
    axis = _of_joints(graft.outputs[0].quantity.write_axis)
    for read in graft.inputs:
        is_alike = _of_joints(read.quantity.axis) is axis and set(read.row_names) & set(own)
        if len(read.rows) > 1 and read.row_names != own and is_alike:
            raise TapError(
                f"input {read.address!r} of a per-element network has other rows than its outputs, which are "
                f"{listed_names(own)}; name these, in this order, to give every call its own, or rows one by one in "
                "inputs of their own to give them to all"
            )


def _of_joints(axis: Axis) -> Axis:
    """Coordinates and degrees of freedom are of the same joints."""
    return Axis.DOF if axis is Axis.COORDINATE else axis


def _check_sizes(graft: BoundGraft) -> None:
    n_in = sum(i.per_row if graft.is_per_row(i) else i.size for i in graft.inputs)
    per_call = [out.per_row if graft.per == "element" else out.size for out in graft.outputs]
    where = f"the network on {', '.join(out.address for out in graft.outputs)}"
    try:
        shape = jax.eval_shape(graft.net, jax.ShapeDtypeStruct((n_in,), float)).shape
    except Exception as error:
        raise TapError(f"{where} cannot take its {n_in} inputs: {error}") from error
    # a network with one output may return a plain number
    if (shape or (1,)) != (sum(per_call),):
        raise TapError(f"{where} must return {sum(per_call)} numbers for {n_in} inputs, but returns shape {shape}")
