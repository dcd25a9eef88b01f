"""CSV file of a trajectory, written block by block, which gets its name when the simulation ends."""

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING

from hybridsim.core.errors import HybridsimError
from hybridsim.core.files import PendingFile

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
        self._file: PendingFile | None = None
        self._rows = 0

    def __enter__(self) -> "TrajectoryLog":
        return self

    def __exit__(self, exception: type[BaseException] | None, *_: object) -> None:
        if self._file is None:
            return
        if exception is not None:
            self._file.discard()
            return
        try:
            self._file.commit()
        except OSError as error:
            self._file.discard()
            raise self._error(error) from error

    def write(self, time, q, qd) -> None:
        """Append rows [s; rad or m; rad/s or m/s]."""
        text = io.StringIO()
        rows = csv.writer(text, lineterminator="\n")
        if self._file is None:
            rows.writerow(self._names)
        skip = -self._rows % self._every
        kept = zip(time[skip :: self._every], q[skip :: self._every], qd[skip :: self._every], strict=True)
        rows.writerows([float(t), *x.tolist(), *v.tolist()] for t, x, v in kept)
        try:
            self._file = self._file or PendingFile(self._path)
            self._file.stream.write(text.getvalue().encode())
            self._file.stream.flush()
        except OSError as error:
            raise self._error(error) from error
        self._rows += len(time)

    def _error(self, error: OSError) -> HybridsimError:
        return HybridsimError(f"cannot write {self._path}: {error.strerror}")
