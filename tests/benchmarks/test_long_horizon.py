"""Structured networks predict better than MLPs over ten times the length of the training runs."""

import pytest
from benchmarks.long_horizon import HORIZON_RATIO, SYSTEMS, measure, summary

MIN_RATIO = 1.5
"""Ratio of the errors; larger in the benchmark, which has more seeds."""


def check(name: str, seeds: int) -> None:
    errors_by_kind = {kind: summary(errors)[str(HORIZON_RATIO)] for kind, errors in measure(name, seeds).items()}
    plain, *mlps, structured = errors_by_kind.values()
    assert structured < min(mlps) / MIN_RATIO and min(mlps) < plain


def test_damping():
    check("damping that depends on angles", 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", SYSTEMS)
def test_every_system(name):
    check(name, 5)
