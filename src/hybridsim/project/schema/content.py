"""Schema of a project file: the specifications of an experiment and a fit, as sections.

| section                | specification                                                        |
|------------------------|----------------------------------------------------------------------|
| `[model]`              | `LoadOptions`, `SimulationSettings`                                  |
| `[data]`               | `RecordingOptions`                                                   |
| `[[channel]]`          | `Channel`                                                            |
| `[[command]]`          | `Command`                                                            |
| `[[free]]`             | `Free`                                                               |
| `[[graft]]`            | `Graft`, and one of the `NETWORKS`                                   |
| `[[stage]]`            | `Stage`, with `Sparsity` and one of the `SOLVERS`                    |
"""

from typing import TYPE_CHECKING, Annotated, Any

from hybridsim.core.specification import StrictTable, TableOf
from hybridsim.data.channel import Channel, Command
from hybridsim.params.free import Free
from hybridsim.project.schema.data import DataSection
from hybridsim.project.schema.grafts import BlueprintSection, graft_entry
from hybridsim.project.schema.model import ModelSection, RunSection

if TYPE_CHECKING:
    from hybridsim.identify.stage import Stage


def _stage() -> "type[Stage]":
    from hybridsim.identify.stage import Stage

    return Stage


class Content(StrictTable):
    """All sections; those with several entries have singular names, as in `[[channel]]`."""

    model: ModelSection
    """The mechanism and its simulation."""
    data: DataSection
    """Files of recordings."""
    channel: tuple[Channel, ...]
    """Measured quantities, to be reproduced by the simulation."""
    command: tuple[Command, ...] = ()
    """Recorded inputs of the simulation."""
    free: tuple[Free, ...] = ()
    """Free parameters."""
    graft: tuple[Annotated[Any, TableOf(graft_entry)], ...] = ()
    """Networks that read quantities of the simulation and modify others."""
    blueprint: BlueprintSection | None = None
    """Additional networks, in a separate file."""
    stage: tuple[Annotated[Any, TableOf(_stage)], ...] = ()
    """Stages of the fit, in order."""
    run: RunSection = RunSection()
    """Output of the fit and its random seed."""
