"""Real tosses of a cube: hybridsim's two contact models and MuJoCo, fitted to 50 tosses and tested on 100 others.

    python -m benchmarks.cube_tosses              everything, in five rounds: about ten minutes on one core
    python -m benchmarks.cube_tosses --quick      one round with a rough fit, in one minute
    python -m benchmarks.cube_tosses --resume     resume an interrupted run
    HYBRIDSIM_DATA=~/data python -m benchmarks.cube_tosses --json runs/mine.json --figure mine.png

The recordings are not in the repository: HYBRIDSIM_DATA names the folder with cube_tosses/tosses.npz. Results are
written to the JSON file after every fit. The method is described in docs/contact.md.
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
from benchmarks.running import source_hash
from benchmarks.toss_data import ROUNDS, TABLE_HEIGHT, Errors, MissingData, Round, load
from benchmarks.toss_fit import FULL, QUICK, Effort, Fit, fit, max_evaluations
from benchmarks.toss_simulators import MUJOCO, SIMULATORS, STEPS_PER_FRAME, variants


class Record:
    """Fits so far, saved to a file after each."""

    def __init__(self, path: Path, effort: Effort, resume: bool):
        self.path = path
        self.settings = {"effort": asdict(effort), "steps_per_frame": STEPS_PER_FRAME, "table_height": TABLE_HEIGHT}
        self.fits: dict[str, list[Fit]] = {name: [] for name in SIMULATORS}
        """Fits of every simulator, by round."""
        self.versions = {name: version_of(name) for name in SIMULATORS}
        if resume and path.exists():
            saved = json.loads(path.read_text())
            if saved.get("settings") != self.settings:
                raise SystemExit(f"{path} has different settings: fit again, without --resume")
            for name, fits in saved["fits"].items():
                if saved["versions"][name] == self.versions[name]:
                    self.fits[name] = [fit_from_json(content) for content in fits]

    def add(self, fit: Fit) -> None:
        self.fits[fit.simulator].append(fit)
        content = {
            "settings": self.settings,
            "versions": self.versions,
            "fits": {name: [asdict(f) for f in fits] for name, fits in self.fits.items()},
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self.path.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(content, indent=1, default=np.ndarray.tolist))
        unfinished.replace(self.path)


def version_of(simulator: str) -> str:
    """Version or source hash of a simulator."""
    return version("mujoco") if simulator == MUJOCO else source_hash()


def fit_from_json(content: dict) -> Fit:
    """Fit from its JSON representation."""
    both = {what: Errors(**{k: np.array(v) for k, v in content[what].items()}) for what in ("training", "test")}
    return Fit(**(content | both))


def fit_missing(record: Record, rounds: Sequence[Round], effort: Effort) -> None:
    """Fit all simulators that are not in the record yet."""
    tosses, all_variants = load(), variants()
    for k, split in enumerate(rounds):
        for name in (name for name in SIMULATORS if len(record.fits[name]) <= k):
            of_simulator = [variant for variant in all_variants if variant.simulator == name]
            title = f"round {k + 1} of {len(rounds)}, {name}"
            with Progress(console=console, transient=True) as progress:
                task = progress.add_task(title, total=max_evaluations(of_simulator, effort))
                record.add(
                    fit(of_simulator, tosses, split, effort, on_evaluation=lambda p=progress, t=task: p.advance(t))
                )
            result = record.fits[name][k]
            console.print(
                f"{title}: {result.seconds:.0f} s, test {report.format_errors(result.test, np.median)}", style="dim"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one round with a rough fit, in one minute")
    parser.add_argument("--resume", action="store_true", help="keep the fits in the JSON file")
    parser.add_argument("--json", type=Path, default=Path("runs/cube_tosses.json"), metavar="FILE", help="%(default)s")
    parser.add_argument("--figure", type=Path, metavar="FILE", help="draw the errors and one toss: .svg, .png, .pdf")
    arguments = parser.parse_args()
    if find_spec("mujoco") is None:
        raise SystemExit("the comparison needs MuJoCo: pip install mujoco")
    effort = QUICK if arguments.quick else FULL
    try:
        record = Record(arguments.json, effort, arguments.resume)
        rounds = ROUNDS[:1] if arguments.quick else ROUNDS
        fit_missing(record, rounds, effort)
        report.show(record.fits)
        if arguments.figure:
            toss_figure.draw(record.fits, variants(), load(), arguments.figure)
            console.print(f"figure: {arguments.figure}")
    except MissingData as error:
        raise SystemExit(str(error)) from None
    except KeyboardInterrupt:
        raise SystemExit(f"stopped; results so far are in {arguments.json}, continue with --resume") from None
    console.print(f"all results: {arguments.json}")


if __name__ == "__main__":
    main()
