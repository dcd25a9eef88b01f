"""Checkpoints as bytes: every number of a fit's state exactly as it is, and a hash that shows any damage.

The arrays of the state are the tensors of a safetensors file, each named by its place (`state.point.theta`,
`state.own.factor`). What holds them together, and which stages are over, is in its metadata. So is the SHA-256 of the
file, taken with zeros in its own place.
"""

import hashlib
import json
from collections import namedtuple
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from hybridsim.core.errors import HybridsimError
from hybridsim.identify.fit import Checkpoint
from hybridsim.identify.objective import Point
from hybridsim.identify.solvers.solver import SolverState, Termination

FORMAT = 1
"""Version of the format."""

_NO_HASH = "0" * 64
_HEADER_SIZE = 8
"""Bytes that a safetensors file begins with: how long its header is."""


class DamagedCheckpoint(HybridsimError):
    """Bytes that are not the checkpoint that was once written."""


class StageEnd(NamedTuple):
    """How a stage ended."""

    cost: float
    verdict: Termination
    steps: int


class Saved(NamedTuple):
    """What one file holds."""

    checkpoint: Checkpoint
    ends: Mapping[int, StageEnd]
    """Of the stages that are over, by their number."""


def to_bytes(saved: Saved) -> bytes:
    """A checkpoint as the content of a file."""
    arrays: dict[str, np.ndarray] = {}
    about = {
        "stage": saved.checkpoint.stage,
        "form": _taken_apart(saved.checkpoint.state, "state", arrays),
        "ends": {str(stage): [end.cost, int(end.verdict), end.steps] for stage, end in saved.ends.items()},
    }
    metadata = {"format": str(FORMAT), "about": json.dumps(about), "sha256": _NO_HASH}
    data = safetensors.numpy.save(arrays, metadata)
    return data.replace(_NO_HASH.encode(), _hash(data).encode(), 1)


def from_bytes(data: bytes) -> Saved:
    """The checkpoint that a file holds.

    Raises:
        DamagedCheckpoint: it is not what was written.
        HybridsimError: a later version of the program wrote it.
    """
    metadata = _metadata(data)
    told = metadata.get("sha256", "")
    if len(told) != len(_NO_HASH) or _hash(data.replace(told.encode(), _NO_HASH.encode(), 1)) != told:
        raise DamagedCheckpoint("its content does not match its hash")
    if metadata.get("format") != str(FORMAT):
        raise HybridsimError(
            f"a checkpoint has the format {metadata.get('format')}, and this version of hybridsim reads {FORMAT}; "
            "go on with the version that wrote it"
        )
    arrays = safetensors.numpy.load(data)
    about = json.loads(metadata["about"])
    state = SolverState(*_put_together(about["form"], "state", arrays))
    state = state._replace(point=Point(*state.point))
    ends = {
        int(stage): StageEnd(cost, Termination(verdict), steps)
        for stage, (cost, verdict, steps) in about["ends"].items()
    }
    return Saved(Checkpoint(about["stage"], state), ends)


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _metadata(data: bytes) -> dict[str, str]:
    """Of a safetensors file; checked as far as that is possible before the hash is known."""
    try:
        safetensors.numpy.load(data)
        size = int.from_bytes(data[:_HEADER_SIZE], "little")
        return dict(json.loads(data[_HEADER_SIZE : _HEADER_SIZE + size]).get("__metadata__", {}))
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedCheckpoint(f"it is not a whole safetensors file ({error})") from None


def _taken_apart(tree: Any, path: str, arrays: dict[str, np.ndarray]) -> Any:
    """Put the arrays of a tree into a dictionary by their paths; returns what JSON needs to put it together again."""
    if tree is None:
        return None
    if isinstance(tree, Mapping):
        return {"dict": {key: _taken_apart(value, f"{path}.{key}", arrays) for key, value in tree.items()}}
    if isinstance(tree, tuple | list):
        names: tuple[str, ...] | None = getattr(tree, "_fields", None)
        inner = [_taken_apart(x, f"{path}.{names[k] if names else k}", arrays) for k, x in enumerate(tree)]
        return {"tuple": inner} if names is None else {"named": dict(zip(names, inner, strict=True))}
    array = np.array(tree, order="C")
    if array.dtype.kind not in "biuf":
        raise TypeError(f"a solver's state holds numbers, not {type(tree).__name__} in {path}")
    if path in arrays:
        raise ValueError(f"two arrays of a solver's state are called {path}")
    arrays[path] = array
    return "array"


def _put_together(form: Any, path: str, arrays: Mapping[str, np.ndarray]) -> Any:
    """The tree again; a named tuple has its names, but a class of its own."""
    if form is None:
        return None
    if form == "array":
        return arrays[path]
    ((kind, inner),) = form.items()
    if kind == "tuple":
        return tuple(_put_together(x, f"{path}.{k}", arrays) for k, x in enumerate(inner))
    values = {key: _put_together(x, f"{path}.{key}", arrays) for key, x in inner.items()}
    return values if kind == "dict" else namedtuple("Kept", values)(**values)
