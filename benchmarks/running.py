"""Running the peers of a benchmark, each in a process of its own, and keeping what they measured."""

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
    """What has been measured so far, in a file that is complete after every part."""

    def __init__(self, path: Path, ours: Sequence[str], resume: bool):
        """Begin a record.

        Args:
            path: of the file.
            ours: peers that are hybridsim itself: what is known of them is forgotten when its code has changed.
            resume: keep what the file has?
        """
        self.path, self.ours = path, ours
        self.machine = {"python": platform.python_version(), "processor": processor(), "cores": os.cpu_count()}
        self.measured: dict[str, dict[str, list[dict]]] = {}
        self.sources: dict[str, list[str]] = {}
        """Versions of hybridsim's code that were measured, by the name of the peer."""
        self.failed: dict[str, str] = {}
        self.targets: list[dict] = []
        if resume and path.exists():
            found = json.loads(path.read_text())
            if found["machine"] != self.machine:
                raise SystemExit(f"{path} is of another machine or Python: measure anew, without --resume")
            self.measured, self.sources = found["measured"], found["sources"]
            for peer in ours:
                if self.sources.get(peer) != [source()]:
                    self.measured.pop(peer, None)
                    self.sources.pop(peer, None)

    def add(self, peer: str, part: str, rows: list[dict]) -> None:
        parts = self.measured.setdefault(peer, {})
        parts[part] = merged(parts[part], rows) if part in parts else rows
        if peer in self.ours:
            self.sources[peer] = sorted({*self.sources.get(peer, []), source()})
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


def merged(before: list[dict], now: list[dict]) -> list[dict]:
    """The faster of two measurements of each row, with the slowest time that was seen."""
    identity = ("peer", "workload", "what", "method", "batch", "threads")
    others = {tuple(r[k] for k in identity): r for r in before}
    rows = []
    for r in now:
        pair = [r, others.get(tuple(r[k] for k in identity), r)]
        slowest = max(x["slowest_ns"] or x["per_step_ns"] for x in pair)
        rows.append(min(pair, key=lambda x: x["per_step_ns"]) | {"slowest_ns": slowest})
    return rows


def source() -> str:
    """What identifies the code of hybridsim that is measured."""
    folder = Path(importlib.util.find_spec("hybridsim").origin).parent
    return hashlib.sha256(b"".join(f.read_bytes() for f in sorted(folder.rglob("*.py")))).hexdigest()[:12]


def processor() -> str:
    """Name of the processor, as far as the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def parts_of(module: str) -> list[str]:
    """Names of the parts that a peer measures."""
    return list(importlib.import_module(module).PARTS)


def results(module: str, parts: list[str], seconds: float) -> Iterator[tuple[str, list[dict]]]:
    """Run a peer's module and yield each part's rows as it is finished.

    Raises:
        RuntimeError: with the peer's message, if it is not installed or fails.
    """
    command = [sys.executable, "-m", module, *parts, "--json", "--seconds", str(seconds)]
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        try:
            for line in process.stdout or ():
                found = json.loads(line)
                yield found["part"], found["rows"]
        except BaseException:
            process.terminate()
            raise
        failed = process.wait()
        errors.seek(0)
        message = reason(errors.read())
    if failed:
        raise RuntimeError(f"not installed: {message}" if failed == MISSING_PACKAGE else message)


def reason(errors: str) -> str:
    """The last line of a traceback that says something."""
    lines = [line.strip() for line in errors.partition("\n----------")[0].splitlines() if line.strip()]
    return lines[-1] if lines else "ended without a message"


def measure(record: Record, peer: str, module: str, parts: list[str], seconds: float) -> None:
    """Measure a peer; where it fails, its message is what is recorded."""
    with report.progress(peer, parts) as done:
        try:
            for part, rows in results(module, parts, seconds):
                record.add(peer, part, rows)
                done(part)
        except RuntimeError as error:
            record.fail(peer, str(error))
