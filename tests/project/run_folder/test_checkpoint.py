"""Serialization of checkpoints is exact, and any damage is detected."""

from typing import NamedTuple

import numpy as np
import pytest
import safetensors.numpy

from hybridsim.core.errors import HybridsimError
from hybridsim.identify.objective import Point
from hybridsim.identify.solve import Checkpoint
from hybridsim.identify.solvers.solver import SolverState, Termination
from hybridsim.project.run_folder import checkpoint as checkpoints
from hybridsim.project.run_folder.checkpoint import (
    DamagedCheckpointError,
    SavedCheckpoint,
    StageResult,
    from_bytes,
    to_bytes,
)

FIT = "a fit"


class SolverInternals(NamedTuple):
    rate: np.ndarray
    moments: dict


INTERNAL = (
    SolverInternals(
        np.array([0.1, -0.0, np.nan, np.inf, 5e-324]), {"mu": np.arange(6.0).reshape(2, 3), "count": np.int32(7)}
    ),
    np.array([True, False]),
    None,
    {},
)


def saved_checkpoint(internal=INTERNAL, stage: int = 2) -> SavedCheckpoint:
    rng = np.random.default_rng(0)
    point = Point(rng.normal(size=(1, 3)), rng.normal(size=(1, 4, 2)), rng.normal(size=(1, 4, 0)))
    state = SolverState(point, np.array([1.0 / 3.0]), np.array([0]), np.asarray(17), internal)
    stage_results = {
        0: StageResult(0.1 + 0.2, Termination.SMALL_DECREASE, 12),
        1: StageResult(2.0, Termination.OUT_OF_STEPS, 100),
    }
    return SavedCheckpoint(Checkpoint(stage, state), stage_results)


def assert_same_bits(a, b):
    a, b = np.asarray(a), np.asarray(b)
    assert a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def test_a_state_is_restored_exactly():
    expected = saved_checkpoint()
    found = from_bytes(to_bytes(expected, FIT), FIT)
    assert found.checkpoint.stage == 2 and found.stage_results == expected.stage_results
    state = found.checkpoint.state
    assert isinstance(state, SolverState) and isinstance(state.point, Point)
    for a, b in zip(expected.checkpoint.state.point, state.point, strict=True):
        assert_same_bits(a, b)
    assert_same_bits(expected.checkpoint.state.cost, state.cost)
    assert_same_bits(17, state.steps)
    internals, mask, nothing, empty = state.internal
    assert_same_bits(internals.rate, INTERNAL[0].rate)
    assert list(internals.moments) == ["mu", "count"]
    assert_same_bits(internals.moments["mu"], INTERNAL[0].moments["mu"])
    assert_same_bits(internals.moments["count"], np.int32(7))
    assert_same_bits(mask, INTERNAL[1])
    assert nothing is None and empty == {}
    # named tuples can be converted back to the solver's class
    assert_same_bits(SolverInternals(*internals).rate, INTERNAL[0].rate)


def test_noncontiguous_arrays_are_restored():
    internal = (np.arange(12.0).reshape(3, 4).T, np.arange(10)[::2])
    found = from_bytes(to_bytes(saved_checkpoint(internal), FIT), FIT).checkpoint.state.internal
    assert_same_bits(found[0], np.ascontiguousarray(internal[0]))
    assert_same_bits(found[1], internal[1].copy())


def test_every_flipped_bit_is_detected():
    data = to_bytes(saved_checkpoint(), FIT)
    for position in range(len(data)):
        broken = bytearray(data)
        broken[position] ^= 1 << (position % 8)
        with pytest.raises(DamagedCheckpointError):
            from_bytes(bytes(broken), FIT)


def test_every_truncation_is_detected():
    data = to_bytes(saved_checkpoint(), FIT)
    for size in range(0, len(data), 7):
        with pytest.raises(DamagedCheckpointError):
            from_bytes(data[:size], FIT)
    with pytest.raises(DamagedCheckpointError):
        from_bytes(data + b"\0", FIT)


def test_a_foreign_safetensors_file_is_not_a_checkpoint():
    with pytest.raises(DamagedCheckpointError, match="hash"):
        from_bytes(safetensors.numpy.save({"x": np.zeros(3)}), FIT)


def test_a_later_format_is_not_reported_as_damage(monkeypatch):
    monkeypatch.setattr(checkpoints, "FORMAT", 4)
    data = to_bytes(saved_checkpoint(), FIT)
    monkeypatch.undo()
    with pytest.raises(HybridsimError, match=r"format 4.*reads 3") as caught:
        from_bytes(data, FIT)
    assert not isinstance(caught.value, DamagedCheckpointError)


def test_states_that_are_not_numeric_are_refused():
    with pytest.raises(TypeError, match=r"state\.internal\.name"):
        to_bytes(saved_checkpoint({"name": "adam"}), FIT)
    with pytest.raises(ValueError, match=r"two arrays of a solver state have the path state\.internal\.a\.b"):
        to_bytes(saved_checkpoint({"a.b": np.zeros(1), "a": {"b": np.ones(1)}}), FIT)
