"""Serialization of checkpoints: exact, with a hash that detects damage.

The arrays of the solver state are tensors of a safetensors file, named by their paths (`state.point.theta`,
`state.internal.factor`). The metadata contains the structure of the state, the results of completed stages, and the
SHA-256 of the file, computed with zeros in place of the hash.
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
from hybridsim.identify.objective import Point
from hybridsim.identify.solve import Checkpoint
from hybridsim.identify.solvers.solver import SolverState, Termination

FORMAT = 3
"""Version of the format."""

_NO_HASH = "0" * 64
_HEADER_SIZE = 8
"""Size of the header length at the beginning of a safetensors file [bytes]."""


class DamagedCheckpointError(HybridsimError):
    """A checkpoint whose bytes differ from those written."""


class StageResult(NamedTuple):
    """Result of a completed stage."""

    cost: float
    termination: Termination
    steps: int


class SavedCheckpoint(NamedTuple):
    """Content of a checkpoint file."""

    checkpoint: Checkpoint
    stage_results: Mapping[int, StageResult]
    """Results of completed stages by index."""


def to_bytes(saved: SavedCheckpoint, fit: str) -> bytes:
    """Serialize a checkpoint of the fit with this identification."""
    arrays: dict[str, np.ndarray] = {}
    content = {
        "stage": saved.checkpoint.stage,
        "structure": _flatten(saved.checkpoint.state, "state", arrays),
        "stage_results": {
            str(stage): [result.cost, int(result.termination), result.steps]
            for stage, result in saved.stage_results.items()
        },
    }
    metadata = {"format": str(FORMAT), "fit": fit, "content": json.dumps(content), "sha256": _NO_HASH}
    data = safetensors.numpy.save(arrays, metadata)
    return data.replace(_NO_HASH.encode(), _hash(data).encode(), 1)


def from_bytes(data: bytes, fit: str) -> SavedCheckpoint:
    """Deserialize a checkpoint of the fit with this identification.

    Raises:
        DamagedCheckpointError: the file is damaged, or belongs to another fit.
        HybridsimError: the file was written by another version.
    """
    metadata = _metadata(data)
    stored = metadata.get("sha256", "")
    if len(stored) != len(_NO_HASH) or _hash(data.replace(stored.encode(), _NO_HASH.encode(), 1)) != stored:
        raise DamagedCheckpointError("its content does not match its hash")
    if metadata.get("format") != str(FORMAT):
        raise HybridsimError(
            f"a checkpoint has format {metadata.get('format')}, and this version of hybridsim reads {FORMAT}; "
            "resume with the version that wrote it"
        )
    if metadata.get("fit") != fit:
        raise DamagedCheckpointError("it belongs to another fit")
    arrays = safetensors.numpy.load(data)
    content = json.loads(metadata["content"])
    state = SolverState(*_unflatten(content["structure"], "state", arrays))
    state = state._replace(point=Point(*state.point))
    stage_results = {
        int(stage): StageResult(cost, Termination(termination), steps)
        for stage, (cost, termination, steps) in content["stage_results"].items()
    }
    return SavedCheckpoint(Checkpoint(content["stage"], state), stage_results)


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _metadata(data: bytes) -> dict[str, str]:
    """Metadata of a safetensors file, before its hash is verified."""
    try:
        safetensors.numpy.load(data)
        size = int.from_bytes(data[:_HEADER_SIZE], "little")
        return dict(json.loads(data[_HEADER_SIZE : _HEADER_SIZE + size]).get("__metadata__", {}))
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedCheckpointError(f"it is not a complete safetensors file ({error})") from None


def _flatten(tree: Any, path: str, arrays: dict[str, np.ndarray]) -> Any:
    """Collect the arrays of a tree by path; returns the structure of the tree as JSON data."""
    if tree is None:
        return None
    if isinstance(tree, Mapping):
        return {"dict": {key: _flatten(value, f"{path}.{key}", arrays) for key, value in tree.items()}}
    if isinstance(tree, tuple | list):
        names: tuple[str, ...] | None = getattr(tree, "_fields", None)
        inner = [_flatten(x, f"{path}.{names[k] if names else k}", arrays) for k, x in enumerate(tree)]
        return {"tuple": inner} if names is None else {"named": dict(zip(names, inner, strict=True))}
    array = np.array(tree, order="C")
    if array.dtype.kind not in "biuf":
        raise TypeError(f"a solver state must contain numeric arrays only, not {type(tree).__name__} in {path}")
    if path in arrays:
        raise ValueError(f"two arrays of a solver state have the path {path}")
    arrays[path] = array
    return "array"


def _unflatten(structure: Any, path: str, arrays: Mapping[str, np.ndarray]) -> Any:
    """Restore a tree; named tuples keep their field names, but not their class."""
    if structure is None:
        return None
    if structure == "array":
        return arrays[path]
    ((kind, inner),) = structure.items()
    if kind == "tuple":
        return tuple(_unflatten(x, f"{path}.{k}", arrays) for k, x in enumerate(inner))
    values = {key: _unflatten(x, f"{path}.{key}", arrays) for key, x in inner.items()}
    return values if kind == "dict" else namedtuple("Restored", values)(**values)
