"""Derivatives of unevenly sampled series, and the local polynomial fits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybridsim.data.derivative import derivative
from hybridsim.data.local_polynomial import local_fit
from hybridsim.data.series import Series

RNG = np.random.default_rng(11)
UNEVEN = np.cumsum(RNG.uniform(0.2, 1.8, size=400)) * 0.01


@pytest.mark.parametrize("filter_window", [4, 5, 9, 51, 400, 0.2, 100.0])
@pytest.mark.parametrize("start", [0.0, 1.7e9])
def test_derivatives_of_cubics_are_exact_even_at_uneven_times(filter_window, start):
    # times since 1970 are resolved to 0.2 µs only, so compare with the cubic at the rounded times
    t = UNEVEN + start
    x = t - start
    series = Series("q", t, 2 * x**3 - 3 * x**2 + x - 7)
    scale = 1.0 if start == 0.0 or filter_window != 4 else 100.0
    first, second = (
        derivative(series, filter_window=filter_window),
        derivative(series, filter_window=filter_window, order=2),
    )
    assert first.values == pytest.approx(6 * x**2 - 6 * x + 1, abs=1e-7 * scale)
    assert second.values == pytest.approx(12 * x - 6, abs=1e-4 * scale)
    assert first.name == "q'" and second.name == "q''" and (first.t == t).all()


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.integers(4, 12), st.integers(0, 3))
def test_fits_agree_with_least_squares(seed, samples, degree):
    rng = np.random.default_rng(seed)
    t, values = np.cumsum(rng.uniform(0.1, 2.0, size=samples)), rng.normal(size=samples)
    fit = local_fit(t, values, np.zeros(samples, dtype=int), np.full(samples, samples), degree)
    expected = np.polynomial.Polynomial.fit(t, values, degree)
    assert fit.value == pytest.approx(expected(t), abs=1e-9)
    assert fit.first_derivative == pytest.approx(expected.deriv(1)(t), abs=1e-8)
    assert fit.second_derivative == pytest.approx(expected.deriv(2)(t), abs=1e-7)
    # the leverages sum to the number of parameters
    assert fit.leverage.sum() == pytest.approx(degree + 1)


def test_long_series_are_processed_in_blocks(monkeypatch):
    series = Series("q", UNEVEN, np.sin(UNEVEN))
    whole = derivative(series, filter_window=0.1).values
    monkeypatch.setattr("hybridsim.data.local_polynomial.BLOCK_ELEMENTS", 100)
    assert derivative(series, filter_window=0.1).values == pytest.approx(whole, abs=1e-12)


def test_longer_windows_average_noise():
    t = np.arange(2000) * 0.001
    noisy = Series("q", t, np.sin(t) + 1e-4 * np.random.default_rng(3).normal(size=len(t)))
    errors = [np.std(derivative(noisy, filter_window=filter_window).values - np.cos(t)) for filter_window in (9, 41)]
    assert errors[1] < errors[0] / 5
    in_seconds = derivative(noisy, filter_window=0.04).values
    assert in_seconds == pytest.approx(derivative(noisy, filter_window=41).values, abs=1e-9)


@pytest.mark.parametrize(
    ("filter_window", "word"),
    [(3, "for seconds write 3.0"), (401, "shorter"), (0.001, "needs 4 samples"), (0.0, "longer"), (-1.0, "longer")],
)
def test_windows_with_too_few_samples(problems, filter_window, word):
    (problem,) = problems(lambda: derivative(Series("q", UNEVEN, UNEVEN), filter_window=filter_window))
    assert problem.code == "data.window" and problem.element == "q" and word in problem.fix


def test_numpy_integers_are_sample_counts():
    series = Series("q", UNEVEN, np.sin(UNEVEN))
    assert (derivative(series, filter_window=np.int64(9)).values == derivative(series, filter_window=9).values).all()


def test_other_orders_are_refused():
    with pytest.raises(ValueError, match="order must be 1 or 2"):
        derivative(Series("q", UNEVEN, UNEVEN), filter_window=9, order=3)  # type: ignore[arg-type]
