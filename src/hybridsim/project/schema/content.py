"""The content of a project file as a whole."""

from hybridsim.project.schema.data import ChannelEntry, CommandEntry, DataSection
from hybridsim.project.schema.fit import BlueprintSection, FreeEntry, GraftEntry, StageEntry
from hybridsim.project.schema.model import ModelSection, RunSection
from hybridsim.project.schema.section import Section


class Content(Section):
    """All sections; those with several entries are named in the singular, as `[[channel]]` reads."""

    model: ModelSection
    """The mechanism, and how it is simulated."""
    data: DataSection
    """Recorded files."""
    channel: tuple[ChannelEntry, ...]
    """Measured quantities that the simulation is compared with."""
    command: tuple[CommandEntry, ...] = ()
    """Recorded quantities that drive the simulation."""
    free: tuple[FreeEntry, ...] = ()
    """Numbers that the fit may change."""
    graft: tuple[GraftEntry, ...] = ()
    """Networks between quantities of the simulation."""
    blueprint: BlueprintSection | None = None
    """Further networks, in a file of their own."""
    stage: tuple[StageEntry, ...] = ()
    """Parts of the fit, one after the other."""
    run: RunSection = RunSection()
    """What the fit writes, and its random numbers."""
