"""Blueprint: networks grafted onto quantities of the engine, with their inputs.

    Blueprint(
        Graft("joint.tau", ["joint.q", "joint.qd"], MLP(2, 1), per="element"),  # one friction law for all joints
        Graft("body.external_wrench[fin].force", ["body.twist[fin]"], MLP(6, 3)),  # drag on one body
        Graft("joint.tau[elbow]", ["joint.q", "step.time"], net, mode="replace"),
    )

A blueprint is an ordinary pytree: the weights of its networks can be fitted, batched and saved like other parameters,
and changing them never recompiles. `bind` checks it against a model and resolves names to indices.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import equinox as eqx
import jax

from hybridsim.core.errors import TapError
from hybridsim.core.messages import name_list
from hybridsim.core.specification import OneOf
from hybridsim.taps.address import AxisNames, Selection, select
from hybridsim.taps.catalogue import ORDER, Axis, Form
from hybridsim.taps.passivity import graft_wiring

MODES = ("add", "replace", "scale")
PER_VALUES = ("graft", "element")
NORMALIZABLE = ("inputs", "outputs")


class Graft(eqx.Module):
    """Network that reads named quantities and changes others."""

    outputs: tuple[str, ...] = eqx.field(static=True)
    inputs: tuple[str, ...] = eqx.field(static=True)
    net: Callable
    """Maps the concatenated inputs, a vector, to the concatenated outputs."""
    mode: str = eqx.field(static=True)
    """`add` the network's output to the quantity, `replace` the quantity, or `scale` it by one plus the output."""
    per: str = eqx.field(static=True)
    """`graft`: one call with all inputs; `element`: one call per row (joint, body, contact), with shared weights."""
    normalize: tuple[str, ...] = eqx.field(static=True)
    """Whether a fit normalizes `inputs` (shift and scale) or `outputs` (scale) of the network to its recordings."""

    def __init__(
        self,
        outputs: str | Sequence[str],
        inputs: str | Sequence[str],
        net: Callable,
        *,
        mode: Annotated[str, OneOf(lambda: MODES)] = "add",
        per: Annotated[str, OneOf(lambda: PER_VALUES)] = "graft",
        normalize: str | Sequence[str] = (),
    ):
        """Graft a network.

        Args:
            outputs: addresses of the quantities that the network modifies, such as `joint.tau[*]`.
            inputs: addresses of the quantities that the network reads, such as `joint.q` and `joint.qd`.
            net: the network.
            mode: add the output to the quantity, replace it, or scale it by one plus the output.
            per: one network for all elements, or the same network for each joint, body or contact separately.
            normalize: quantities whose scales a fit takes from the recordings: `inputs` (their mean and standard
                deviation), `outputs` (their typical magnitude; of an MLP), or both.
        """
        if mode not in MODES:
            raise TapError(f"unknown `mode` {mode!r} of a graft; choose one of {', '.join(MODES)}")
        if per not in PER_VALUES:
            raise TapError(f"`per` of a graft must be 'graft' or 'element', not {per!r}")
        self.outputs = (outputs,) if isinstance(outputs, str) else tuple(outputs)
        self.inputs = (inputs,) if isinstance(inputs, str) else tuple(inputs)
        self.net, self.mode, self.per = net, mode, per
        self.normalize = (normalize,) if isinstance(normalize, str) else tuple(normalize)
        if invalid := [part for part in self.normalize if part not in NORMALIZABLE]:
            raise TapError(f"`normalize` of a graft can contain {' and '.join(NORMALIZABLE)}, not {invalid[0]!r}")


class Blueprint(eqx.Module):
    """All grafts of a simulator; grafts on the same quantity are applied in this order."""

    grafts: tuple[Graft, ...]
    inputs: tuple[tuple[str, int], ...] = eqx.field(static=True)
    """Names and sizes of the user inputs that grafts may read as `input.<name>`."""

    def __init__(self, *grafts: Graft, inputs: Mapping[str, int] | None = None):
        if invalid := [graft for graft in grafts if not isinstance(graft, Graft)]:
            raise TapError(
                f"Blueprint takes grafts as separate arguments, Blueprint(Graft(...), Graft(...)), not {invalid[0]!r}"
            )
        self.grafts = grafts
        self.inputs = tuple((inputs or {}).items())

    def bind(self, names: AxisNames) -> "BoundBlueprint":
        """The blueprint with its addresses resolved to indices for a model with these names."""
        inputs = dict(self.inputs)
        return BoundBlueprint(tuple(_bind_graft(graft, names, inputs) for graft in self.grafts))


class BoundGraft(eqx.Module):
    """A graft with its addresses resolved to indices."""

    net: Callable
    outputs: tuple[Selection, ...] = eqx.field(static=True)
    inputs: tuple[Selection, ...] = eqx.field(static=True)
    mode: str = eqx.field(static=True)
    per: str = eqx.field(static=True)

    def is_per_row(self, selection: Selection) -> bool:
        """Whether each call of a per-element network reads only the row of its element from this input."""
        return self.per == "element" and selection.row_names == self.outputs[0].row_names


class BoundBlueprint(eqx.Module):
    """A blueprint with its addresses resolved to indices."""

    grafts: tuple[BoundGraft, ...]


def _bind_graft(graft: Graft, names: AxisNames, user_inputs: Mapping[str, int]) -> BoundGraft:
    outputs = tuple(select(address, names, user_inputs, write=True) for address in graft.outputs)
    inputs = tuple(select(address, names, user_inputs, write=False) for address in graft.inputs)
    if not outputs or not inputs:
        raise TapError("a graft needs at least one output and at least one input")
    _check_order(outputs, inputs)
    _check_mode(graft.mode, outputs)
    bound = BoundGraft(graft.net, outputs, inputs, graft.mode, graft.per)
    if graft.per == "element":
        _check_rows(bound)
    _check_sizes(bound)
    net: Any = graft.net
    if hasattr(net, "check_wiring"):
        per_row = [bound.is_per_row(selection) for selection in inputs]
        net.check_wiring(graft_wiring(net, outputs, inputs, graft.mode, per_row))
    return bound


def _check_order(outputs: tuple[Selection, ...], inputs: tuple[Selection, ...]) -> None:
    for out in outputs:
        for selection in inputs:
            if not selection.lag and ORDER.get(selection.quantity.name, -1) > ORDER[out.quantity.name]:
                raise TapError(
                    f"input {selection.address!r} is computed after output {out.address!r}: within a step, "
                    f"{selection.quantity.name} follows {out.quantity.name}",
                    address=selection.address,
                )


def _check_mode(mode: str, outputs: tuple[Selection, ...]) -> None:
    for out in outputs:
        if mode != "add" and out.quantity.form is Form.CONFIGURATION:
            raise TapError(
                f"output {out.address!r} supports only mode 'add', not {mode!r}: addition retracts along the degrees "
                "of freedom; anything else could leave the configuration manifold",
                address=out.address,
            )


def _check_rows(graft: BoundGraft) -> None:
    row_names = graft.outputs[0].row_names
    if any(out.row_names != row_names for out in graft.outputs):
        listed = ", ".join(repr(out.address) for out in graft.outputs)
        raise TapError(f"outputs {listed} of one per-element network must have the same rows")
    axis = _joint_axis(graft.outputs[0].quantity.write_axis)
    for selection in graft.inputs:
        overlaps = _joint_axis(selection.quantity.axis) is axis and set(selection.row_names) & set(row_names)
        if len(selection.rows) > 1 and selection.row_names != row_names and overlaps:
            raise TapError(
                f"the rows of input {selection.address!r} of a per-element network differ from those of its outputs, "
                f"{name_list(row_names)}; select these, in this order, so that every call reads its own row, or "
                "list single rows as separate inputs that all calls read",
                address=selection.address,
            )


def _joint_axis(axis: Axis) -> Axis:
    """Common axis of coordinates and degrees of freedom, which belong to the same joints."""
    return Axis.DOF if axis is Axis.COORDINATE else axis


def _check_sizes(graft: BoundGraft) -> None:
    n_in = sum(i.scalars_per_row if graft.is_per_row(i) else i.size for i in graft.inputs)
    per_call = [out.scalars_per_row if graft.per == "element" else out.size for out in graft.outputs]
    label = f"the network on {', '.join(out.address for out in graft.outputs)}"
    try:
        shape = jax.eval_shape(graft.net, jax.ShapeDtypeStruct((n_in,), float)).shape
    except Exception as error:
        raise TapError(f"{label} cannot be evaluated on its {n_in} inputs: {error}") from error
    # a network with one output may return a scalar
    if (shape or (1,)) != (sum(per_call),):
        raise TapError(f"{label} must return {sum(per_call)} outputs for {n_in} inputs, but returns shape {shape}")
