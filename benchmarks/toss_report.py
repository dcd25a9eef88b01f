"""The cube tosses on the terminal: what was fitted, and the errors beside MuJoCo's."""

from collections.abc import Callable, Sequence

import numpy as np
from rich.table import Table

from benchmarks.report import console
from benchmarks.toss_data import Errors
from benchmarks.toss_fit import Fit
from benchmarks.toss_simulators import MUJOCO

DRAWS = 2000
"""Draws of tosses for the uncertainty of a ratio."""

Fits = dict[str, list[Fit]]
"""Of every simulator, round by round."""


def tested(rounds: Sequence[Fit]) -> Errors:
    """Errors on the test tosses of all rounds."""
    return Errors.of_all([f.test for f in rounds])


def ratios(found: Errors, to: Errors) -> tuple[float, float]:
    """Medians by those of another simulator: position, rotation."""
    return (
        float(np.median(found.position) / np.median(to.position)),
        float(np.median(found.rotation) / np.median(to.rotation)),
    )


def not_worse(fits: Fits) -> dict[str, bool]:
    """Which simulators have medians on the test tosses, of both errors, that are not above MuJoCo's."""
    to = tested(fits[MUJOCO])
    return {name: max(ratios(tested(rounds), to)) <= 1.0 for name, rounds in fits.items() if name != MUJOCO}


def uncertainty(found: Errors, to: Errors) -> np.ndarray:
    """Between what the ratios lie in 95 % of draws of as many tosses, with some drawn twice and some not: (2, 2)."""
    draws = np.random.default_rng(0).integers(len(found.position), size=(DRAWS, len(found.position)))
    each = [
        np.median(getattr(found, what)[draws], axis=1) / np.median(getattr(to, what)[draws], axis=1)
        for what in ("position", "rotation")
    ]
    return np.quantile(each, [0.025, 0.975], axis=1).T


def both(found: Errors, of: Callable) -> str:
    """Both errors in one cell."""
    return f"{of(found.position):.2f} mm  {of(found.rotation):.2f}°"


def show(fits: Fits) -> None:
    """Print what was found."""
    _show_fits(fits)
    to = tested(fits[MUJOCO])
    number = sum(len(f.training.position) for f in fits[MUJOCO]), len(to.position)
    table = Table(title=f"errors averaged over a toss; {number[0]} tosses fitted, {number[1]} others tested")
    for column in ("simulator", "fitted, median", "tested, median", "tested, mean", "position by MuJoCo's, rotation"):
        table.add_column(column, justify="left" if column == "simulator" else "right")
    for name, rounds in fits.items():
        training, test = Errors.of_all([f.training for f in rounds]), tested(rounds)
        between = uncertainty(test, to)
        by = [f"{r:.3f} ({low:.2f}–{high:.2f})" for r, (low, high) in zip(ratios(test, to), between, strict=True)]
        cells = both(training, np.median), both(test, np.median), both(test, np.mean)
        table.add_row(name, *cells, "" if name == MUJOCO else "  ".join(by), style=None if name == MUJOCO else "bold")
    console.print(table)
    for name, met in not_worse(fits).items():
        console.print(f"{name}: {'not worse than MuJoCo' if met else 'WORSE than MuJoCo'}")


def _show_fits(fits: Fits) -> None:
    """The rounds one by one."""
    table = Table(title="rounds")
    for column in ("simulator", "form", "parameters", "loss", "tested, median"):
        table.add_column(column)
    for name, rounds in fits.items():
        for k, f in enumerate(rounds):
            numbers = ", ".join(f"{value:.4g}" for value in f.parameters.values())
            table.add_row("" if k else name, f.form, numbers, f"{f.loss:.3f}", both(f.test, np.median))
        table.add_section()
    console.print(table)
    for name, rounds in fits.items():
        console.print(f"{name}: parameters are {', '.join(rounds[0].parameters)}", style="dim", markup=False)
