"""Terminal output of the cube tosses: fits, and errors compared with MuJoCo's."""

from collections.abc import Callable, Sequence

import numpy as np
from rich.table import Table

from benchmarks.report import console
from benchmarks.toss_data import Errors
from benchmarks.toss_fit import Fit
from benchmarks.toss_simulators import MUJOCO

BOOTSTRAP_SAMPLES = 2000
"""Bootstrap samples for the uncertainty of a ratio."""

Fits = dict[str, list[Fit]]
"""Fits of every simulator, by round."""


def test_errors(rounds: Sequence[Fit]) -> Errors:
    """Errors on the test tosses of all rounds."""
    return Errors.of_all([f.test for f in rounds])


def ratios(errors: Errors, reference: Errors) -> tuple[float, float]:
    """Ratios of the medians to those of another simulator: position, rotation."""
    return (
        float(np.median(errors.position) / np.median(reference.position)),
        float(np.median(errors.rotation) / np.median(reference.rotation)),
    )


def no_worse_than_mujoco(fits: Fits) -> dict[str, bool]:
    """Whether the medians of both errors on the test tosses are at most MuJoCo's, by simulator."""
    reference = test_errors(fits[MUJOCO])
    return {name: max(ratios(test_errors(rounds), reference)) <= 1.0 for name, rounds in fits.items() if name != MUJOCO}


def uncertainty(errors: Errors, reference: Errors) -> np.ndarray:
    """Bootstrap 95 % confidence intervals of the ratios (2, 2)."""
    draws = np.random.default_rng(0).integers(len(errors.position), size=(BOOTSTRAP_SAMPLES, len(errors.position)))
    samples = [
        np.median(getattr(errors, what)[draws], axis=1) / np.median(getattr(reference, what)[draws], axis=1)
        for what in ("position", "rotation")
    ]
    return np.quantile(samples, [0.025, 0.975], axis=1).T


def format_errors(errors: Errors, statistic: Callable) -> str:
    """Statistic of both errors in one cell."""
    return f"{statistic(errors.position):.2f} mm  {statistic(errors.rotation):.2f}°"


def show(fits: Fits) -> None:
    """Print all results."""
    _show_fits(fits)
    reference = test_errors(fits[MUJOCO])
    count = sum(len(f.training.position) for f in fits[MUJOCO]), len(reference.position)
    table = Table(title=f"errors averaged over a toss; {count[0]} training tosses, {count[1]} test tosses")
    for column in (
        "simulator",
        "training, median",
        "test, median",
        "test, mean",
        "ratio to MuJoCo: position, rotation",
    ):
        table.add_column(column, justify="left" if column == "simulator" else "right")
    for name, rounds in fits.items():
        training, test = Errors.of_all([f.training for f in rounds]), test_errors(rounds)
        intervals = uncertainty(test, reference)
        cells_of_ratios = [
            f"{r:.3f} ({low:.2f}–{high:.2f})" for r, (low, high) in zip(ratios(test, reference), intervals, strict=True)
        ]
        cells = format_errors(training, np.median), format_errors(test, np.median), format_errors(test, np.mean)
        table.add_row(
            name, *cells, "" if name == MUJOCO else "  ".join(cells_of_ratios), style=None if name == MUJOCO else "bold"
        )
    console.print(table)
    for name, met in no_worse_than_mujoco(fits).items():
        console.print(f"{name}: {'not worse than MuJoCo' if met else 'WORSE than MuJoCo'}")


def _show_fits(fits: Fits) -> None:
    """Print the fits of all rounds."""
    table = Table(title="rounds")
    for column in ("simulator", "variant", "parameters", "loss", "test, median"):
        table.add_column(column)
    for name, rounds in fits.items():
        for k, f in enumerate(rounds):
            values = ", ".join(f"{value:.4g}" for value in f.parameters.values())
            table.add_row("" if k else name, f.variant, values, f"{f.loss:.3f}", format_errors(f.test, np.median))
        table.add_section()
    console.print(table)
    for name, rounds in fits.items():
        console.print(f"{name}: parameters are {', '.join(rounds[0].parameters)}", style="dim", markup=False)
