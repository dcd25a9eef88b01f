import numpy as np
import pytest

from hybridsim.data.noise import noise_level
from hybridsim.data.series import Series


def swing(t):
    return 1.5 * np.sin(4 * t) + 0.4 * np.cos(11 * t)


@pytest.mark.parametrize("level", [1e-5, 1e-3, 0.1])
@pytest.mark.parametrize("even", [True, False])
def test_noise_level_is_within_ten_percent(level, even):
    rng = np.random.default_rng(1)
    steps = np.full(4000, 0.002) if even else rng.uniform(0.0005, 0.0035, size=4000)
    t = np.cumsum(steps)
    series = Series("q", t, swing(t) + level * rng.normal(size=len(t)))
    assert noise_level(series) == pytest.approx(level, rel=0.1)


def test_noise_level_is_robust_to_outliers():
    rng = np.random.default_rng(2)
    t = np.arange(4000) * 0.002
    values = swing(t) + 1e-3 * rng.normal(size=len(t))
    values[::200] += 5.0
    assert noise_level(Series("q", t, values)) == pytest.approx(1e-3, rel=0.15)


def test_smooth_motions_have_no_noise():
    t = np.arange(2000) * 0.001
    for values in (swing(t), 0.3 * t, np.where(t < 1.0, -3.0, 3.0)):
        assert noise_level(Series("q", t, values)) < 1e-7


def test_noise_of_an_encoder_is_at_least_its_quantization():
    t = np.arange(4000) * 0.001
    step = 2 * np.pi / 4096
    slow = np.round(np.where(t < 3.5, 0.3, 0.3 + (t - 3.5)) / step) * step
    assert noise_level(Series("q", t, slow)) == pytest.approx(step / np.sqrt(12), rel=1e-6)
    fast = np.round(swing(t) / step) * step
    assert step / np.sqrt(12) < noise_level(Series("q", t, fast)) < 1.5 * step / np.sqrt(12)


def test_short_and_constant_series(problems):
    t = np.arange(6.0)
    assert noise_level(Series("q", t, np.full(6, 2.0))) == 0.0
    assert noise_level(Series("q", t, np.array([0.0, 1.0, -1.0, 0.5, 0.2, 0.9]))) > 0.1
    (problem,) = problems(lambda: noise_level(Series("q", t[:5], t[:5])))
    assert problem.code == "data.noise"
