import numpy as np
import pytest

from hybridsim.data.resample import resample
from hybridsim.data.series import Series

T = np.array([0.0, 0.5, 0.7, 1.5, 2.0])


def test_interpolation_kinds():
    series = Series("q", T, np.array([0.0, 1.0, 3.0, 3.0, 5.0]))
    times = [0.25, 0.5, 0.6, 1.9999]
    assert resample(series, times) == pytest.approx([0.5, 1.0, 2.0, 4.9996])
    assert resample(series, times, "hold").tolist() == [0.0, 1.0, 1.0, 3.0]
    cubic = Series("q", T, 2 * T**3 - T)
    x = np.linspace(0.0, 2.0, 50)
    assert resample(cubic, x, "cubic") == pytest.approx(2 * x**3 - x, abs=1e-13)


@pytest.mark.parametrize("kind", ["linear", "hold", "cubic"])
def test_samples_are_reproduced(kind):
    series = Series("q", T, np.random.default_rng(8).normal(size=5))
    assert resample(series, T, kind) == pytest.approx(series.values, abs=1e-14)


@pytest.mark.parametrize("time", [-0.01, 2.01, np.nan, np.inf])
def test_extrapolation_is_refused(problems, time):
    (problem,) = problems(lambda: resample(Series("elbow", T, T**2), [1.0, time]))
    assert problem.code == "data.range" and problem.element == "elbow" and "from 0 to 2 s" in problem.message


def test_accumulated_steps_may_pass_the_last_sample_by_rounding():
    series = Series("q", np.array([0.0, 0.1, 0.3]), np.array([0.0, 1.0, 3.0]))
    assert resample(series, [0.1 + 0.2, 3 * 0.1], "hold").tolist() == [3.0, 3.0]


def test_unknown_kinds_are_refused():
    with pytest.raises(ValueError, match="linear, hold, cubic"):
        resample(Series("q", T, T), [1.0], "spline")  # type: ignore[arg-type]
