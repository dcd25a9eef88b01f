"""Sections `[data]`, `[[channel]]` and `[[command]]` of a project: recordings, sensors and inputs."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from hybridsim.data.channel import DEFAULT_FILTER_WINDOW, Channel
from hybridsim.project.schema.strict_table import Fraction, NonemptyText, Nonnegative, Positive, StrictTable, key_error

ESTIMATE = "estimate"


def _as_tuple(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


Names = Annotated[tuple[NonemptyText, ...], BeforeValidator(_as_tuple), Field(min_length=1)]
"""One name or several."""


class DataSection(StrictTable):
    """Files of recordings."""

    files: Annotated[
        tuple[NonemptyText | tuple[NonemptyText, ...], ...], BeforeValidator(_as_tuple), Field(min_length=1)
    ]
    """Files of recordings, one run each, with wildcards; a nested list is one run of several files."""
    time: NonemptyText = "time"
    """Time column."""
    sample_interval: Positive | None = None
    """Sample interval of files without a time column, in the unit `time_unit`."""
    time_unit: NonemptyText = "s"
    """Unit of time columns and of the sample interval."""
    group: str = ""
    """Group of HDF5 files or topic of MCAP files."""
    several_runs: bool = False
    """Whether every file contains several runs (NPZ, NPY, HDF5)."""
    run_starts: str = ""
    """Array with the index of the first row of each run, followed by the total number of rows, where several runs are
    concatenated."""
    held_out: Fraction | Names = 0.25
    """Held-out runs: their fraction, or their names, with wildcards. Of a single run, its last part."""
    max_sample_interval: Positive | None = None
    """Longest time between consecutive samples [s]; a longer one splits the run."""
    on_nan: Literal["error", "drop"] = "error"
    """Treatment of samples that are not finite."""
    on_out_of_order: Literal["error", "drop"] = "error"
    """Treatment of samples with non-increasing time stamps."""

    @model_validator(mode="after")
    def _check_time(self):
        if self.sample_interval is not None and "time" in self.model_fields_set:
            raise key_error(
                "sample_interval", "applies to files without a time column, and time names one", "remove one of them"
            )
        if self.run_starts and not self.several_runs:
            raise key_error("run_starts", "requires several_runs = true", "add several_runs = true")
        return self


class _ColumnEntry(StrictTable):
    """Column of a quantity and its conversion to SI units."""

    unit: str = ""
    """Unit of the column; empty if it is in SI units."""
    scale: float = 1.0
    """The value is `scale · (column in SI units) + offset`."""
    offset: float = 0.0
    """Offset in SI units, added after scaling."""
    time: str = ""
    """Time column, if it differs from that of `[data]`."""
    group: str = ""
    """Group of an HDF5 file or topic of an MCAP file, if it differs from that of `[data]`."""
    file: str = ""
    """Name of the file, for runs of several files; empty if only one of them has the column."""

    @model_validator(mode="after")
    def _check_scale(self):
        if self.scale == 0.0:
            raise key_error("scale", "must not be zero", "choose another value", "project.value")
        return self


class ChannelEntry(_ColumnEntry):
    """A measured quantity, to be reproduced by the simulation."""

    name: str = ""
    """Name of the channel; by default the address that it measures."""
    measures: NonemptyText
    """Address of the measured quantity, such as `joint.q[elbow]` or `frame.position[tip].x`; or a sum."""
    column: str = ""
    """Column of the files."""
    noise: Positive | Literal["estimate"] = ESTIMATE
    """Standard deviation of the noise in the column's unit, or `"estimate"` to estimate it from the recordings."""
    unwrap: bool = False
    """Unwrap an angle that is recorded modulo full turns."""
    velocity_of: str = ""
    """Instead of a column: the channel of which this is the numerically estimated time derivative."""
    filter_window: Annotated[int | float, Field(gt=0)] = DEFAULT_FILTER_WINDOW
    """Window of the differentiation filter: samples if an integer, else seconds."""
    gain: float = 1.0
    """Sensor gain."""
    bias: float = 0.0
    """Sensor bias: reading at zero."""
    delay: Nonnegative = 0.0
    """Sensor delay [s]."""

    @model_validator(mode="after")
    def _check_source(self):
        if bool(self.column) == bool(self.velocity_of):
            message = "has both a column and velocity_of" if self.column else "has neither a column nor velocity_of"
            raise key_error("", message, "specify either column or velocity_of")
        if self.gain == 0.0:
            raise key_error("gain", "must not be zero", "choose another value", "project.value")
        if self.velocity_of and self.noise == ESTIMATE:
            message = "cannot be estimated for a channel with velocity_of: its errors are correlated"
            raise key_error("noise", message, "specify a value, such as noise = 0.1")
        if self.velocity_of:
            wrong = {"unit", "scale", "offset", "time", "group", "file", "unwrap"} & self.model_fields_set
            for key in sorted(wrong):
                raise key_error(key, "applies to columns only", f"specify it for the channel {self.velocity_of!r}")
        elif "filter_window" in self.model_fields_set:
            raise key_error(
                "filter_window", "requires velocity_of", "remove it, or write velocity_of instead of column"
            )
        return self

    @property
    def series_name(self) -> str:
        """Name of the channel."""
        return self.name or self.measures

    @property
    def channel(self) -> Channel:
        """Channel to be read from the files."""
        if self.velocity_of:
            return Channel(self.series_name, velocity_of=self.velocity_of, filter_window=self.filter_window)
        return _channel(self.series_name, self.column, self, unwrap=self.unwrap)


class CommandEntry(_ColumnEntry):
    """A recorded input of the simulation."""

    actuator: str = ""
    """Actuator that it commands."""
    joint: str = ""
    """Joint to which it is applied as torque or force; a torque actuator is added if the joint has none."""
    input: str = ""
    """User input of grafted networks, which read it as `input.NAME`."""
    column: NonemptyText
    """Column of the files."""
    interpolation: Literal["hold", "linear"] = "hold"
    """Interpolation between samples: zero-order hold, as in digital controllers, or linear."""

    @model_validator(mode="after")
    def _check_target(self):
        if sum(map(bool, (self.actuator, self.joint, self.input))) != 1:
            raise key_error("", "must have exactly one target", "specify one of actuator, joint and input")
        if self.input and not self.input.isidentifier():
            fix = "use letters, digits and underscores"
            raise key_error("input", "is not a valid name in an address", fix, "project.value")
        return self

    @property
    def series_name(self) -> str:
        """Name of the series, distinct from those of channels."""
        kind = "actuator" if self.actuator else "joint" if self.joint else "input"
        return f"{kind}:{self.actuator or self.joint or self.input}"

    @property
    def channel(self) -> Channel:
        """Channel to be read from the files."""
        return _channel(self.series_name, self.column, self)


def _channel(name: str, column: str, entry: _ColumnEntry, *, unwrap: bool = False) -> Channel:
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
