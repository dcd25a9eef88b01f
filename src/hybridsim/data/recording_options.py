"""Options for reading recordings."""

from typing import Literal

from pydantic import model_validator

from hybridsim.core.errors import Problem
from hybridsim.core.specification import NonemptyText, Positive, setting_error, specification
from hybridsim.data.units import find_unit

OnInvalid = Literal["error", "drop"]
"""Treatment of invalid samples: reject the recording, or drop them and add a note."""


@specification
class RecordingOptions:
    """Where the time stamps and runs are in files of recordings, and which samples are acceptable."""

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
    max_sample_interval: Positive | None = None
    """Longest time between consecutive samples [s]; a longer one splits the run."""
    on_nan: OnInvalid = "error"
    """Treatment of samples that are not finite."""
    on_out_of_order: OnInvalid = "error"
    """Treatment of samples with non-increasing time stamps."""

    @model_validator(mode="after")
    def _check_time(self):
        if self.sample_interval is not None and self.time != "time":
            message = "applies to files without a time column, and time names one"
            raise setting_error("sample_interval", message, "remove one of them")
        if self.run_starts and not self.several_runs:
            raise setting_error("run_starts", "requires several_runs = true", "add several_runs = true")
        return self

    def problems(self) -> list[Problem]:
        """Problems with the time unit."""
        unit = find_unit(self.time_unit, "time", "time")
        return [unit] if isinstance(unit, Problem) else []
