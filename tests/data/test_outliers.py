"""Samples that no motion explains are reported with file, row and column; ordinary signals are not."""

import numpy as np
import pytest

import hybridsim as hs
from hybridsim.core.errors import DataError, Severity
from support.small_projects import write_columns

T = 0.01 * np.arange(400)
RNG = np.random.default_rng(0)
ORDINARY = {
    "swing": np.cos(3.0 * T),
    "noise": RNG.standard_normal(400),
    "noisy swing": np.cos(3.0 * T) + 0.05 * RNG.standard_normal(400),
    "square wave": np.sign(np.sin(9.0 * T)),
    "staircase": np.floor(5.0 * T),
    "alternating": (-1.0) ** np.arange(400),
    "encoder": np.round(np.cos(3.0 * T), 2),
    "impulse response": np.exp(-T / 0.05),
    "fast chirp": np.sin(40.0 * T**2),
    "sparse pulses of three samples": (np.arange(400) % 100 < 3).astype(float),
    "impact": np.where(T < 2.0, 0.0, np.exp(-(T - 2.0) / 0.02)),
    "heavy tails": RNG.standard_t(3, 400),
}


def problems_of(values, tmp_path, **settings):
    write_columns(tmp_path / "run.csv", {"time": T, "q": values})
    (recording,) = hs.load_recordings(str(tmp_path / "run.csv"))
    channel = hs.Channel("q", "joint.q[joint0]", noise=1.0, **settings)
    return [p for p in recording.runs([channel])[0].problems if p.code == "data.outlier"]


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_signals_have_no_outliers(name, tmp_path):
    assert problems_of(ORDINARY[name], tmp_path) == []


@pytest.mark.parametrize("name", ["swing", "noisy swing", "square wave", "encoder", "staircase"])
@pytest.mark.parametrize("row", [1, 57, 398])
def test_a_spike_is_reported_at_its_row(name, row, tmp_path):
    values = ORDINARY[name].copy()
    values[row] = 50.0
    (problem,) = problems_of(values, tmp_path)
    assert problem.severity is Severity.WARNING and problem.element == "q"
    assert problem.file.endswith("run.csv") and problem.line == row + 2  # after the header
    assert "jumps to 50 and back" in problem.message


@pytest.mark.parametrize("value", [1e20, -1e13])
def test_a_huge_value_is_an_error(value, tmp_path):
    values = ORDINARY["swing"].copy()
    values[[30, 31]] = value
    with pytest.raises(DataError, match=r"run\.csv:32: error: column 'q' has the value .* \(and 1 more such row\)"):
        problems_of(values, tmp_path)


def test_values_are_judged_in_si_units(tmp_path):
    assert problems_of(1e10 * ORDINARY["swing"], tmp_path, unit="um") == []
