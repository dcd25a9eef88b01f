"""Real tosses of a cube: hybridsim's two contact models and MuJoCo, fitted to 50 of them and tested on 100 others.

    python -m benchmarks.cube_tosses              everything, in five rounds: about ten minutes on one core
    python -m benchmarks.cube_tosses --quick      one round with a rough fit, in one minute
    python -m benchmarks.cube_tosses --resume     go on where an earlier run was stopped
    HYBRIDSIM_DATA=~/data python -m benchmarks.cube_tosses --json runs/mine.json --figure mine.png

The recordings are not in the repository: HYBRIDSIM_DATA names the folder with cube_tosses/tosses.npz. Results are in
the JSON file as soon as a simulator is fitted in a round. What is compared, and how, is in docs/contact.md.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from rich.progress import Progress

from benchmarks import toss_figure
from benchmarks import toss_report as report
from benchmarks.report import console
from benchmarks.running import source
from benchmarks.toss_data import ROUNDS, TABLE_HEIGHT, Errors, MissingData, Round, load
from benchmarks.toss_fit import FULL, QUICK, Effort, Fit, fit, planned
from benchmarks.toss_simulators import MUJOCO, SIMULATORS, STEPS_PER_FRAME, forms


class Record:
    """Fits so far, in a file that is complete after each."""

    def __init__(self, path: Path, effort: Effort, resume: bool):
        self.path = path
        self.of = {"effort": asdict(effort), "steps_per_frame": STEPS_PER_FRAME, "table_height": TABLE_HEIGHT}
        self.fits: dict[str, list[Fit]] = {name: [] for name in SIMULATORS}
        """Of every simulator, round by round."""
        self.versions = {name: code_of(name) for name in SIMULATORS}
        if resume and path.exists():
            found = json.loads(path.read_text())
            if found["of"] != self.of:
                raise SystemExit(f"{path} is of another comparison: fit anew, without --resume")
            for name, fits in found["fits"].items():
                if found["versions"][name] == self.versions[name]:
                    self.fits[name] = [fit_of(content) for content in fits]

    def add(self, found: Fit) -> None:
        self.fits[found.simulator].append(found)
        content = {
            "of": self.of,
            "versions": self.versions,
            "fits": {name: [asdict(f) for f in fits] for name, fits in self.fits.items()},
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self.path.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(content, indent=1, default=np.ndarray.tolist))
        unfinished.replace(self.path)


def code_of(simulator: str) -> str:
    """What identifies the code of a simulator."""
    return version("mujoco") if simulator == MUJOCO else source()


def fit_of(content: dict) -> Fit:
    """A fit as the file has it."""
    both = {what: Errors(**{k: np.array(v) for k, v in content[what].items()}) for what in ("training", "test")}
    return Fit(**(content | both))


def fitted(record: Record, rounds: Sequence[Round], effort: Effort) -> None:
    """Fit whoever is not in the record yet."""
    tosses, everybody = load(), forms()
    for k, chosen in enumerate(rounds):
        for name in (name for name in SIMULATORS if len(record.fits[name]) <= k):
            mine = [form for form in everybody if form.simulator == name]
            title = f"round {k + 1} of {len(rounds)}, {name}"
            with Progress(console=console, transient=True) as progress:
                task = progress.add_task(title, total=planned(mine, effort))
                record.add(fit(mine, tosses, chosen, effort, told=lambda p=progress, t=task: p.advance(t)))
            found = record.fits[name][k]
            console.print(f"{title}: {found.seconds:.0f} s, tested {report.both(found.test, np.median)}", style="dim")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one round with a rough fit, in one minute")
    parser.add_argument("--resume", action="store_true", help="keep the fits that the JSON file has")
    parser.add_argument("--json", type=Path, default=Path("runs/cube_tosses.json"), metavar="FILE", help="%(default)s")
    parser.add_argument("--figure", type=Path, metavar="FILE", help="draw the errors and one toss: .svg, .png, .pdf")
    arguments = parser.parse_args()
    if find_spec("mujoco") is None:
        raise SystemExit("the comparison needs MuJoCo: pip install mujoco")
    effort = QUICK if arguments.quick else FULL
    try:
        record = Record(arguments.json, effort, arguments.resume)
        rounds = ROUNDS[:1] if arguments.quick else ROUNDS
        fitted(record, rounds, effort)
        report.show(record.fits)
        if arguments.figure:
            toss_figure.draw(record.fits, forms(), load(), arguments.figure)
            console.print(f"figure: {arguments.figure}")
    except MissingData as error:
        raise SystemExit(str(error)) from None
    except KeyboardInterrupt:
        raise SystemExit(f"stopped; what was fitted is in {arguments.json}, go on with --resume") from None
    console.print(f"all numbers: {arguments.json}")


if __name__ == "__main__":
    main()
