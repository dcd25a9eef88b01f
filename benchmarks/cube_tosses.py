"""Real tosses of a cube: hybridsim's two contact models and MuJoCo, fitted to 50 of them and tested on 100 others.

    python -m benchmarks.cube_tosses              everything: about ten minutes on one core
    python -m benchmarks.cube_tosses --quick      a rough fit of each, in two minutes
    python -m benchmarks.cube_tosses --resume     go on where an earlier run was stopped
    HYBRIDSIM_DATA=~/data python -m benchmarks.cube_tosses --json runs/mine.json --figure mine.png

The recordings are not in the repository: HYBRIDSIM_DATA names the folder with cube_tosses/tosses.npz. Results are in
the JSON file as soon as a simulator is fitted. What is compared, and how, is in docs/contact.md.
"""

import argparse
import json
import sys
from dataclasses import asdict
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks import toss_figure
from benchmarks.gradients import source
from benchmarks.toss_data import TEST, TRAINING, Errors, MissingData, load
from benchmarks.toss_fit import FULL, QUICK, Effort, Fit, fit, planned
from benchmarks.toss_simulators import MUJOCO, SIMULATORS, STEPS_PER_FRAME, Form, forms

console = Console(width=None if sys.stdout.isatty() else 120)


class Record:
    """Fits so far, in a file that is complete after each."""

    def __init__(self, path: Path, effort: Effort, resume: bool):
        self.path = path
        self.of = {"effort": asdict(effort), "steps_per_frame": STEPS_PER_FRAME, "training": TRAINING, "test": TEST}
        self.fits: dict[str, Fit] = {}
        self.versions: dict[str, str] = {}
        """Of the code of each simulator that was fitted."""
        if resume and path.exists():
            found = json.loads(path.read_text())
            if found["of"] != json.loads(json.dumps(self.of)):
                raise SystemExit(f"{path} is of another comparison: fit anew, without --resume")
            for name, content in found["fits"].items():
                if found["versions"][name] == code_of(name):
                    self.fits[name] = fit_of(content)
                    self.versions[name] = found["versions"][name]

    def add(self, found: Fit) -> None:
        self.fits[found.simulator] = found
        self.versions[found.simulator] = code_of(found.simulator)
        fits = {name: asdict(f) for name, f in self.fits.items()}
        content = {"of": self.of, "versions": self.versions, "fits": fits}
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


def not_worse(fits: dict[str, Fit]) -> dict[str, bool]:
    """Which simulators have medians on the test tosses, of both errors, that are not above MuJoCo's."""
    return {name: all(r <= 1.0 for r in ratios(f, fits[MUJOCO])) for name, f in fits.items() if name != MUJOCO}


def ratios(found: Fit, to: Fit) -> tuple[float, float]:
    """Medians on the test tosses by those of another simulator: position, rotation."""
    return (
        float(np.median(found.test.position) / np.median(to.test.position)),
        float(np.median(found.test.rotation) / np.median(to.test.rotation)),
    )


def show(fits: dict[str, Fit]) -> None:
    """Print what was found."""
    for f in fits.values():
        numbers = ", ".join(f"{name} {value:.4g}" for name, value in f.parameters.items())
        console.print(f"{f.simulator}, {f.form}: {numbers}; loss {f.loss:.4f} after {f.evaluations} evaluations")
    table = Table(title=f"errors averaged over a toss: {len(TRAINING)} tosses fitted, {len(TEST)} others tested")
    table.add_column("simulator")
    for what in ("fitted", "tested"):
        for column in ("median", "mean"):
            table.add_column(f"{what}, {column}", justify="right")
    table.add_column("tested, median by MuJoCo's", justify="right")
    for name, f in fits.items():
        cells = [text(e, of) for e in (f.training, f.test) for of in (np.median, np.mean)]
        ratio = "{:.3f}  {:.3f}".format(*ratios(f, fits[MUJOCO])) if MUJOCO in fits else ""
        table.add_row(name, *cells, ratio, style=None if name == MUJOCO else "bold")
    console.print(table)
    if MUJOCO in fits:
        for name, met in not_worse(fits).items():
            console.print(f"{name}: {'not worse than MuJoCo' if met else 'WORSE than MuJoCo'}")


def text(found: Errors, of) -> str:
    """Both errors in one cell."""
    return f"{of(found.position):.2f} mm  {of(found.rotation):.2f}°"


def fitted(record: Record, everybody: list[Form], effort: Effort) -> None:
    """Fit whoever is not in the record yet."""
    tosses = load()
    for name in SIMULATORS:
        mine = [form for form in everybody if form.simulator == name]
        if name in record.fits:
            continue
        with Progress(console=console, transient=True) as progress:
            task = progress.add_task(name, total=planned(mine, effort))
            record.add(fit(mine, tosses, effort, told=lambda p=progress, t=task: p.advance(t)))
        found = record.fits[name]
        console.print(f"{name}: fitted in {found.seconds:.0f} s, tested {text(found.test, np.median)}", style="dim")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a rough fit, in two minutes")
    parser.add_argument("--resume", action="store_true", help="keep the fits that the JSON file has")
    parser.add_argument("--json", type=Path, default=Path("runs/cube_tosses.json"), metavar="FILE", help="%(default)s")
    parser.add_argument("--figure", type=Path, metavar="FILE", help="draw the errors and one toss: .svg, .png, .pdf")
    arguments = parser.parse_args()
    if find_spec("mujoco") is None:
        raise SystemExit("the comparison needs MuJoCo: pip install mujoco")
    effort = QUICK if arguments.quick else FULL
    try:
        record = Record(arguments.json, effort, arguments.resume)
        fitted(record, forms(), effort)
        show(record.fits)
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
