"""Networks with a structure predict better than perceptrons over ten times the time that they were trained on."""

import pytest
from benchmarks.long_horizon import SYSTEMS, TIMES, measured, summary

BETTER = 1.5
"""Times; the benchmark shows more, over more seeds."""


def check(name: str, seeds: int) -> None:
    found = {kind: summary(errors)[str(TIMES)] for kind, errors in measured(name, seeds).items()}
    plain, *perceptrons, structured = found.values()
    assert structured < min(perceptrons) / BETTER and min(perceptrons) < plain


def test_damping():
    check("damping that depends on angles", 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", SYSTEMS)
def test_every_system(name):
    check(name, 5)
