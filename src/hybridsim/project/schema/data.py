"""The sections `[data]`, `[[channel]]` and `[[command]]` of a project: what was recorded, and what it means."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from hybridsim.data.channel import DEFAULT_WINDOW, Channel
from hybridsim.project.schema.section import NotNegative, Positive, Section, Share, Text, conflict

ESTIMATE = "estimate"


def _in_a_tuple(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


Names = Annotated[tuple[Text, ...], BeforeValidator(_in_a_tuple), Field(min_length=1)]
"""One name or several."""


class DataSection(Section):
    """Recorded files."""

    files: Annotated[tuple[Text | tuple[Text, ...], ...], BeforeValidator(_in_a_tuple), Field(min_length=1)]
    """Recorded files, one run each, with wildcards; a list in the list is one run of several files."""
    time: Text = "time"
    """Time column."""
    step: Positive | None = None
    """Constant time between samples, where files have no time column; in the unit `time_unit`."""
    time_unit: Text = "s"
    """Unit of time columns, or of the step."""
    group: str = ""
    """Group of HDF5 files or topic of MCAP files."""
    several: bool = False
    """Does every file hold several runs (NPZ, NPY, HDF5)?"""
    run_starts: str = ""
    """Array that says in which row each of several runs starts, where they follow one another."""
    validation: Share | Names = 0.25
    """Part of the runs that the fit never sees, or their names, with wildcards. Of a single run, its last part."""
    longest_gap: Positive | None = None
    """Runs are cut where samples are missing for longer than this [s]."""
    on_nan: Literal["error", "drop"] = "error"
    """What to do with samples without a finite number."""
    on_disorder: Literal["error", "drop"] = "error"
    """What to do with samples that are not later than all before them."""

    @model_validator(mode="after")
    def _has_one_kind_of_time(self):
        if self.step is not None and "time" in self.model_fields_set:
            raise conflict("step", "is for files without a time column, and time names one", "leave one of them out")
        if self.run_starts and not self.several:
            raise conflict("run_starts", "is for files with several runs", "add several = true")
        return self


class _Column(Section):
    """Where a quantity is in the files, and how its numbers become SI units."""

    unit: str = ""
    """Unit of the column; empty if it is in SI units."""
    scale: float = 1.0
    """The value is `scale · (number in SI units) + offset`."""
    offset: float = 0.0
    """In SI units, added last."""
    time: str = ""
    """Time column of its own."""
    group: str = ""
    """Group of an HDF5 file or topic of an MCAP file, of its own."""
    file: str = ""
    """Name of the file, for runs of several files; empty if only one of them has the column."""

    @model_validator(mode="after")
    def _has_a_scale(self):
        if self.scale == 0.0:
            raise conflict("scale", "is zero, which leaves nothing of the column", "choose another number")
        return self


class ChannelEntry(_Column):
    """A measured quantity that the simulation is compared with."""

    name: str = ""
    """Name of the channel; what it measures by default."""
    measures: Text
    """Address of what it measures, such as `joint.q[elbow]`, `joint.qd[elbow]` or `frame.position[tip].x`; or a sum."""
    column: str = ""
    """Column of the files."""
    noise: Positive | Literal["estimate"] = ESTIMATE
    """Standard deviation of the noise in the column's unit, or `"estimate"` to take it from the recordings."""
    unwrap: bool = False
    """Remove the jumps of an angle that is only told up to full turns."""
    velocity_of: str = ""
    """Instead of a column: the channel whose rate of change this is, estimated from it."""
    window: Annotated[int | float, Field(gt=0)] = DEFAULT_WINDOW
    """Of the estimate: samples if a whole number, else seconds."""
    gain: float = 1.0
    """Reading of the sensor per unit of the quantity."""
    bias: float = 0.0
    """Reading of the sensor where the quantity is zero."""
    delay: NotNegative = 0.0
    """How much later than the motion a reading is [s]."""

    @model_validator(mode="after")
    def _is_measured_or_estimated(self):
        if bool(self.column) == bool(self.velocity_of):
            both = "has both a column and velocity_of" if self.column else "has neither a column nor velocity_of"
            raise conflict("", both, "name the column that it is in")
        if self.gain == 0.0:
            raise conflict("gain", "is zero, so that the sensor sees nothing", "choose another number")
        if self.velocity_of and self.noise == ESTIMATE:
            message = "of an estimated velocity cannot be estimated: its samples depend on each other"
            raise conflict("noise", message, "give a number, such as noise = 0.1")
        if self.velocity_of:
            wrong = {"unit", "scale", "offset", "time", "group", "file", "unwrap"} & self.model_fields_set
            for key in sorted(wrong):
                raise conflict(key, "is for columns", f"tell it of the channel {self.velocity_of!r}")
        elif "window" in self.model_fields_set:
            raise conflict("window", "is for estimates", "leave it out, or write velocity_of instead of column")
        return self

    @property
    def called(self) -> str:
        """Name of the channel."""
        return self.name or self.measures

    @property
    def recorded(self) -> Channel:
        """What of the files it is."""
        if self.velocity_of:
            return Channel(self.called, velocity_of=self.velocity_of, window=self.window)
        return _channel(self.called, self.column, self, unwrap=self.unwrap)


class CommandEntry(_Column):
    """A recorded quantity that drives the simulation."""

    actuator: str = ""
    """Actuator of the model that it commands."""
    joint: str = ""
    """Joint that it is the torque or force on, through a direct actuator, which is added if there is none."""
    input: str = ""
    """Input of grafted networks, which read it as `input.NAME`."""
    column: Text
    """Column of the files."""
    between: Literal["hold", "linear"] = "hold"
    """What happens between samples: hold the last one, as a controller does, or go on linearly."""

    @model_validator(mode="after")
    def _drives_one_thing(self):
        if sum(map(bool, (self.actuator, self.joint, self.input))) != 1:
            raise conflict("", "must name one thing that it drives", "give either actuator, joint or input")
        if self.input and not self.input.isidentifier():
            raise conflict("input", "is no name that an address can have", "use letters, digits and underscores")
        return self

    @property
    def called(self) -> str:
        """Name of the series, other than that of any channel."""
        kind = "actuator" if self.actuator else "joint" if self.joint else "input"
        return f"{kind}:{self.actuator or self.joint or self.input}"

    @property
    def recorded(self) -> Channel:
        """What of the files it is."""
        return _channel(self.called, self.column, self)


def _channel(name: str, column: str, entry: _Column, *, unwrap: bool = False) -> Channel:
    return Channel(
        name,
        column,
        unit=entry.unit,
        time=entry.time,
        unwrap=unwrap,
        scale=entry.scale,
        offset=entry.offset,
        group=entry.group,
        file=entry.file,
    )
