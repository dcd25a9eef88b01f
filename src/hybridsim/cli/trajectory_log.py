"""Incremental CSV log of a trajectory: rows already written survive a crash or interrupt."""

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybridsim.core.errors import HybridsimError

if TYPE_CHECKING:
    from hybridsim.model.topology import Topology


class TrajectoryLog:
    """A CSV file with the columns `time`, `q:NAME` and `qd:NAME`, created when the first rows are written."""

    def __init__(self, path: Path, topology: "Topology", *, every: int = 1):
        """Prepare a log.

        Args:
            path: file to write; its folder must exist.
            topology: coordinates and degrees of freedom that name the columns.
            every: write only every n-th row.
        """
        if path.is_dir() or not path.absolute().parent.is_dir():
            reason = "it is a folder" if path.is_dir() else f"there is no folder {path.absolute().parent}"
            raise HybridsimError(f"cannot write {path}: {reason}")
        self._path, self._every = path, every
        self._names = [
            "time",
            *(f"q:{name}" for name in topology.coordinate_names),
            *(f"qd:{name}" for name in topology.dof_names),
        ]
        self._file: Any = None
        self._rows = 0

    def __enter__(self) -> "TrajectoryLog":
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def write(self, time, q, qd) -> None:
        """Append rows [s; rad or m; rad/s or m/s] and flush them to the operating system."""
        try:
            if self._file is None:
                self._file = self._path.open("w", newline="", encoding="utf-8")
                csv.writer(self._file).writerow(self._names)
            skip = -self._rows % self._every
            rows = zip(time[skip :: self._every], q[skip :: self._every], qd[skip :: self._every], strict=True)
            csv.writer(self._file).writerows([float(t), *x.tolist(), *v.tolist()] for t, x, v in rows)
            self._file.flush()
        except OSError as error:
            raise HybridsimError(f"cannot write {self._path}: {error.strerror}") from error
        self._rows += len(time)
