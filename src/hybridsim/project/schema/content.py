"""Schema of a project file."""

from hybridsim.project.schema.data import ChannelEntry, CommandEntry, DataSection
from hybridsim.project.schema.fit import BlueprintSection, FreeEntry, GraftEntry, StageEntry
from hybridsim.project.schema.model import ModelSection, RunSection
from hybridsim.project.schema.strict_table import StrictTable


class Content(StrictTable):
    """All sections; those with several entries have singular names, as in `[[channel]]`."""

    model: ModelSection
    """The mechanism and its simulation."""
    data: DataSection
    """Files of recordings."""
    channel: tuple[ChannelEntry, ...]
    """Measured quantities, to be reproduced by the simulation."""
    command: tuple[CommandEntry, ...] = ()
    """Recorded inputs of the simulation."""
    free: tuple[FreeEntry, ...] = ()
    """Free parameters."""
    graft: tuple[GraftEntry, ...] = ()
    """Networks that read quantities of the simulation and modify others."""
    blueprint: BlueprintSection | None = None
    """Additional networks, in a separate file."""
    stage: tuple[StageEntry, ...] = ()
    """Stages of the fit, in order."""
    run: RunSection = RunSection()
    """Output of the fit and its random seed."""
