"""Sections `[[graft]]` and `[blueprint]` of a project: networks, with the kinds and settings of their classes."""

from dataclasses import KW_ONLY
from functools import cache
from typing import Annotated, Any

from pydantic import Field, create_model

from hybridsim.core.derived_table import ComponentTable, table_of
from hybridsim.core.specification import Choice, NonemptyText, specification
from hybridsim.networks.choices import NETWORKS, SIZES

NetworkChoice = Annotated[
    Any,
    Choice(
        "kind", lambda: NETWORKS, base=lambda: ComponentTable, default="mlp", omit=lambda kind: SIZES, as_table=True
    ),
]
"""The name of a kind of networks, or a table with its settings."""
NETWORK_DOCUMENTATION = (
    "The network. Initially, an MLP that adds or scales has no effect, `cone_friction` exerts half of its maximum "
    "friction, `rod_drag` has the specified coefficients, and the effect of other networks is negligible."
)


class GraftEntry(ComponentTable):
    """A network that reads quantities of the simulation and modifies others."""

    outputs: str | tuple[str, ...]
    inputs: str | tuple[str, ...]
    network: Any


@cache
def graft_entry() -> type[GraftEntry]:
    """Table of a graft, with the settings of `Graft` and, in place of a network, its kind and settings."""
    from hybridsim.taps.blueprint import Graft

    settings = table_of(Graft, ("net",))
    fields: dict[str, Any] = {
        name: (field.annotation, Field(... if field.is_required() else field.default, description=field.description))
        for name, field in settings.model_fields.items()
    }
    network = Field({"kind": "mlp"}, description=NETWORK_DOCUMENTATION, validate_default=True)
    made = create_model("GraftTable", __base__=GraftEntry, **fields, network=(NetworkChoice, network))
    made.component = Graft
    return made


@specification
class BlueprintSection:
    """A blueprint in a separate file, whose networks follow those of the project."""

    _: KW_ONLY
    file: NonemptyText
    """TOML file; its weights, if any, are the initial values of the fit."""
