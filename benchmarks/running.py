"""Runs the peers of a benchmark in separate processes and records their measurements."""

import hashlib
import importlib
import importlib.util
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks import report
from benchmarks.measure import MISSING_PACKAGE, Row


class Record:
    """Measurements so far, saved to a file after every part."""

    def __init__(self, path: Path, ours: Sequence[str], resume: bool):
        """Create or resume a record.

        Args:
            path: path of the file.
            ours: peers that are hybridsim itself: their measurements are discarded when its code has changed.
            resume: whether to keep the measurements in the file.
        """
        self.path, self.ours = path, ours
        self.machine = {"python": platform.python_version(), "processor": processor(), "cores": os.cpu_count()}
        self.measured: dict[str, dict[str, list[dict]]] = {}
        self.sources: dict[str, list[str]] = {}
        """Source hashes of hybridsim that were measured, by peer."""
        self.failed: dict[str, str] = {}
        self.targets: list[dict] = []
        if resume and path.exists():
            saved = json.loads(path.read_text())
            if saved["machine"] != self.machine:
                raise SystemExit(f"{path} is from another machine or Python: measure again, without --resume")
            self.measured, self.sources = saved["measured"], saved["sources"]
            for peer in ours:
                if self.sources.get(peer) != [source_hash()]:
                    self.measured.pop(peer, None)
                    self.sources.pop(peer, None)

    def add(self, peer: str, part: str, rows: list[dict]) -> None:
        parts = self.measured.setdefault(peer, {})
        parts[part] = merge(parts[part], rows) if part in parts else rows
        if peer in self.ours:
            self.sources[peer] = sorted({*self.sources.get(peer, []), source_hash()})
        self.write()

    def fail(self, peer: str, message: str) -> None:
        self.failed[peer] = message
        self.write()

    def rows(self) -> list[Row]:
        return [Row(**r) for parts in self.measured.values() for rows in parts.values() for r in rows]

    def is_mixed(self) -> bool:
        """Whether hybridsim was changed between measurements."""
        return len({version for versions in self.sources.values() for version in versions}) > 1

    def write(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        content = {
            "machine": self.machine,
            "sources": self.sources,
            "targets": self.targets,
            "failed": self.failed,
            "measured": self.measured,
        }
        unfinished = self.path.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(content, indent=1))
        unfinished.replace(self.path)


def merge(before: list[dict], now: list[dict]) -> list[dict]:
    """Merge two measurements of each row: the faster one, with the largest time of both."""
    identity = ("peer", "workload", "what", "method", "batch", "threads")
    previous = {tuple(r[k] for k in identity): r for r in before}
    rows = []
    for r in now:
        pair = [r, previous.get(tuple(r[k] for k in identity), r)]
        slowest = max(x["slowest_ns"] or x["per_step_ns"] for x in pair)
        rows.append(min(pair, key=lambda x: x["per_step_ns"]) | {"slowest_ns": slowest})
    return rows


def source_hash() -> str:
    """Hash of hybridsim's source code."""
    folder = Path(importlib.util.find_spec("hybridsim").origin).parent
    return hashlib.sha256(b"".join(f.read_bytes() for f in sorted(folder.rglob("*.py")))).hexdigest()[:12]


def processor() -> str:
    """Name of the processor, if known."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def parts_of(module: str) -> list[str]:
    """Names of a peer's parts."""
    return list(importlib.import_module(module).PARTS)


def results(module: str, parts: list[str], seconds: float) -> Iterator[tuple[str, list[dict]]]:
    """Run a peer's module and yield the rows of each part as it finishes.

    Raises:
        RuntimeError: the peer is not installed or fails; has its message.
    """
    command = [sys.executable, "-m", module, *parts, "--json", "--seconds", str(seconds)]
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        try:
            for line in process.stdout or ():
                result = json.loads(line)
                yield result["part"], result["rows"]
        except BaseException:
            process.terminate()
            raise
        failed = process.wait()
        errors.seek(0)
        message = reason(errors.read())
    if failed:
        raise RuntimeError(f"not installed: {message}" if failed == MISSING_PACKAGE else message)


def reason(errors: str) -> str:
    """Last non-empty line of a traceback."""
    lines = [line.strip() for line in errors.partition("\n----------")[0].splitlines() if line.strip()]
    return lines[-1] if lines else "no error message"


def measure(record: Record, peer: str, module: str, parts: list[str], seconds: float) -> None:
    """Measure a peer, or record its error message if it fails."""
    with report.progress(peer, parts) as done:
        try:
            for part, rows in results(module, parts, seconds):
                record.add(peer, part, rows)
                done(part)
        except RuntimeError as error:
            record.fail(peer, str(error))
