import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybridsim.core.errors import DataError
from hybridsim.data.run import Run
from hybridsim.data.segments import segments
from hybridsim.data.series import Series


def recording(**times):
    return Run("run", {name: Series(name, np.array(t), np.arange(float(len(t)))) for name, t in times.items()})


def test_a_gap_splits_a_run():
    first, second = segments(recording(q=[0.0, 1.0, 2.0, 5.0, 6.0]), max_sample_interval=1.5)
    assert (first.name, second.name) == ("run.0", "run.1")
    assert first.series["q"].t.tolist() == [0.0, 1.0, 2.0]
    assert second.series["q"].values.tolist() == [3.0, 4.0]


def test_a_run_without_gaps_is_returned_unchanged():
    whole = recording(q=[0.0, 1.0, 2.0])
    assert segments(whole, max_sample_interval=1.0) == [whole]


def test_a_gap_of_one_series_splits_all():
    both = recording(q=[0.0, 1.0, 2.0, 6.0, 7.0, 8.0], f=[0.2, 0.7, 1.6, 2.5, 3.0, 3.9, 4.8, 5.6, 6.3, 7.2])
    first, second = segments(both, max_sample_interval=1.0)
    assert first.series["f"].t.tolist() == [0.2, 0.7, 1.6]
    assert second.series["f"].t.tolist() == [6.3, 7.2]


def test_gaps_that_overlap_are_one():
    both = recording(q=[0.0, 1.0, 2.0, 6.0, 7.0, 8.0], f=[0.0, 1.0, 2.5, 3.0, 7.0, 8.0])
    assert [(one.start, one.end) for one in segments(both, max_sample_interval=1.5)] == [(0.0, 1.0), (7.0, 8.0)]


def test_segments_that_are_too_short_are_dropped_with_a_note():
    (first, second) = segments(recording(q=[0.0, 1.0, 4.0, 8.0, 9.0]), max_sample_interval=1.5)
    assert second.series["q"].t.tolist() == [8.0, 9.0]
    assert "1 segment" in first.problems[0].message and "from 4 to 4 s" in first.problems[0].message


def test_no_segment_is_left(problems):
    (problem,) = problems(lambda: segments(recording(q=[0.0, 1.0, 2.0]), max_sample_interval=0.5))
    assert problem.code == "data.gap" and "raise max_sample_interval" in problem.fix
    with pytest.raises(ValueError, match="positive"):
        segments(recording(q=[0.0, 1.0]), max_sample_interval=0.0)


@settings(max_examples=50)
@given(st.lists(st.lists(st.floats(0.01, 3.0), min_size=2, max_size=30), min_size=1, max_size=3))
def test_no_segment_has_a_gap_and_no_sample_occurs_twice(steps):
    whole = recording(**{str(k): np.cumsum(one) for k, one in enumerate(steps)})
    try:
        parts = segments(whole, max_sample_interval=1.0)
    except DataError as error:
        assert "leave no segment" in str(error)
        return
    for name, series in whole.series.items():
        times = np.concatenate([part.series[name].t for part in parts])
        assert set(times) <= set(series.t) and (np.diff(times) > 0).all()
        assert all((np.diff(part.series[name].t) <= 1.0).all() for part in parts)


def test_slice_by_time(problems):
    whole = recording(q=[0.0, 1.0, 2.0, 3.0], f=[0.5, 1.5, 2.5])
    part = whole.slice(1.0, 2.5)
    assert part.series["q"].t.tolist() == [1.0, 2.0] and part.series["f"].t.tolist() == [1.5, 2.5]
    (problem,) = problems(lambda: whole.slice(1.0, 2.0))
    assert problem.element == "f" and "from 0.5 to 2.5 s" in problem.fix
