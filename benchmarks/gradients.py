"""Gradient benchmark: hybridsim and its peers on the same workloads, in the same run.

    python -m benchmarks.gradients              everything: about half an hour
    python -m benchmarks.gradients --quick      the double pendulum alone, without peers that compile for minutes
    python -m benchmarks.gradients --resume     go on where an earlier run was stopped

Every peer is a program of its own (`python -m benchmarks.peers.mjx_peer --help`) and is skipped where its package is
not installed: pip install 'hybridsim[peers]'. Results are in the JSON file as soon as they are measured. Times are CPU
times on one thread, best of several calls; see docs/benchmarks.md.
"""

import argparse
import hashlib
import importlib
import importlib.util
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks import figure as drawing
from benchmarks import report, targets
from benchmarks.measure import MISSING_PACKAGE, Row

PEERS = {
    "native": "benchmarks.ours",
    "first-call": "benchmarks.ours_first_call",
    "scaling": "benchmarks.ours_scaling",
    "layers": "benchmarks.ours_layers",
    "casadi": "benchmarks.peers.casadi_plain",
    "casadi-by-hand": "benchmarks.peers.casadi_tuned",
    "mujoco": "benchmarks.peers.mujoco_differences",
    "pinocchio": "benchmarks.peers.pinocchio_aba",
    "xla": "benchmarks.ours_xla",
    "mjx": "benchmarks.peers.mjx_peer",
    "brax": "benchmarks.peers.brax_peer",
}
"""Who takes part, in the order of measuring."""
OURS = ("native", "first-call", "scaling", "layers", "xla")
ROUNDS = ("native", "casadi", "casadi-by-hand", "scaling")
"""Who is measured in several processes, by turns, because what else the machine does shows in close comparisons."""
ROUND_PARTS = ("W1", "W2", "W3", "W4-32", "threads")
QUICK = ("native", "first-call", "casadi", "casadi-by-hand", "mujoco")


class Record:
    """What has been measured so far, in a file that is complete after every part."""

    def __init__(self, path: Path, resume: bool):
        self.path = path
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
            for peer in OURS:
                if self.sources.get(peer) != [source()]:
                    self.measured.pop(peer, None)
                    self.sources.pop(peer, None)

    def add(self, peer: str, part: str, rows: list[dict]) -> None:
        parts = self.measured.setdefault(peer, {})
        parts[part] = merged(parts[part], rows) if part in parts else rows
        if peer in OURS:
            self.sources[peer] = sorted({*self.sources.get(peer, []), source()})
        self.write()

    def fail(self, peer: str, message: str) -> None:
        self.failed[peer] = message
        self.write()

    def rows(self) -> list[Row]:
        return [Row(**r) for parts in self.measured.values() for rows in parts.values() for r in rows]

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


def parts_of(peer: str) -> list[str]:
    """Names of the parts that a peer measures."""
    return list(importlib.import_module(PEERS[peer]).PARTS)


def results(peer: str, parts: list[str], seconds: float) -> Iterator[tuple[str, list[dict]]]:
    """Run a peer and yield each part's rows as it is finished.

    Raises:
        RuntimeError: with the peer's message, if it is not installed or fails.
    """
    command = [sys.executable, "-m", PEERS[peer], *parts, "--json", "--seconds", str(seconds)]
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="only the double pendulum, in two minutes")
    parser.add_argument("--only", nargs="+", choices=list(PEERS), metavar="PEER", help=f"of: {', '.join(PEERS)}")
    parser.add_argument("--parts", nargs="+", metavar="PART", help="of each peer, such as W1 or 5a; all by default")
    parser.add_argument("--rounds", type=int, default=3, help="processes for the closest comparisons (%(default)s)")
    parser.add_argument("--resume", action="store_true", help="keep what the JSON file has, if hybridsim is unchanged")
    parser.add_argument("--json", type=Path, default=Path("runs/gradients.json"), metavar="FILE", help="%(default)s")
    parser.add_argument("--figure", type=Path, metavar="FILE", help="docs/images/gradients.svg, none with --quick")
    arguments = parser.parse_args()
    figure = arguments.figure or (None if arguments.quick else Path("docs/images/gradients.svg"))

    seconds = 0.3 if arguments.quick else 1.0
    parts = ["W1"] if arguments.quick else arguments.parts
    record = Record(arguments.json, arguments.resume)
    try:
        for peer in arguments.only or (QUICK if arguments.quick else PEERS):
            known = record.measured.get(peer, {})
            wanted = [p for p in parts_of(peer) if p not in known and (not parts or p in parts)]
            if wanted:
                measure(record, peer, wanted, seconds)
        for _ in range(1, 1 if arguments.quick else arguments.rounds):
            for peer in ROUNDS:
                wanted = [p for p in record.measured.get(peer, {}) if p in ROUND_PARTS and (not parts or p in parts)]
                if wanted and peer in (arguments.only or PEERS):
                    measure(record, peer, wanted, seconds)
    except KeyboardInterrupt:
        raise SystemExit(f"stopped; what was measured is in {record.path}, go on with --resume") from None
    rows = record.rows()
    record.targets = targets.evaluated(rows)
    record.write()
    report.show(rows, record.failed, record.targets)
    if len({version for versions in record.sources.values() for version in versions}) > 1:
        print(f"hybridsim was changed between measurements, do not compare them: {record.sources}")
    if figure:
        drawing.draw(rows, figure)
        print(f"figure: {figure}")
    print(f"all numbers: {record.path}")


def measure(record: Record, peer: str, parts: list[str], seconds: float) -> None:
    """Measure a peer; where it fails, its message is what is recorded."""
    with report.progress(peer, parts) as done:
        try:
            for part, rows in results(peer, parts, seconds):
                record.add(peer, part, rows)
                done(part)
        except RuntimeError as error:
            record.fail(peer, str(error))


if __name__ == "__main__":
    main()
