"""Numbers per pair of shapes: taken from the surfaces in the model, or given by the user."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Float

from hybridsim.contact.candidates import Candidates
from hybridsim.core.messages import name_hint, name_list
from hybridsim.core.types import AnyArray, as_floats
from hybridsim.model.geometry import Geometry, GeomInfo

PairParameters = AnyArray | float | Mapping[str, AnyArray | float] | None
"""One number for all pairs, one each, or by name: `{"*": 0.5, "foot_*": 0.6, "foot_*|floor": 0.8}`.

Names are those of shapes, links or bodies, as for `only` and `exclude` of `candidates`: `foot_*|floor` for a pair in
either order, `foot_*` for all that such a shape touches. Where several match a pair, the last one given counts; where
none does, what the model says, if it says something.
"""


def per_pair(
    what: str,
    given: PairParameters,
    candidates: Candidates,
    *,
    most: float = np.finfo(float).max,
    is_positive: bool = False,
    otherwise: Float[AnyArray, " npairs"] | None = None,
) -> Float[AnyArray, " npairs"]:
    """Given numbers as one per pair.

    Args:
        what: how messages call the number.
        given: numbers as a user gives them.
        candidates: the pairs.
        most: the largest number that makes sense.
        is_positive: whether zero makes no sense.
        otherwise: numbers of pairs that no given name matches; without any, there must not be such pairs.

    Raises:
        ValueError: there are too many or too few, a name fits no pair, or a pair no name, or they make no sense.
    """
    names = [pair.name for pair in candidates.pairs]
    if isinstance(given, Mapping):
        given = _by_name(what, given, candidates, otherwise)
    try:
        values = as_floats(given)
    except (TypeError, ValueError):
        raise ValueError(f"{what} must be numbers, not {given!r}") from None
    if values.shape not in ((), (len(names),)):
        raise ValueError(f"{what} has shape {values.shape}, but there are {len(names)} pairs: {name_list(names)}")
    if not isinstance(values, Tracer) and not ((values >= 0.0) & (values <= most)).all():
        bounds = f"between 0 and {most:g}" if most < np.finfo(float).max else "finite and not negative"
        raise ValueError(f"{what} must be {bounds}, not {values.tolist()}")
    if is_positive and not isinstance(values, Tracer) and not values.all():
        raise ValueError(f"{what} must be positive, not {values.tolist()}")
    return jnp.broadcast_to(values, (len(names),)) if isinstance(values, Tracer) else values + np.zeros(len(names))


def specified_pairs(given: PairParameters, candidates: Candidates) -> tuple[bool, ...]:
    """Which pairs have been given a number."""
    if isinstance(given, Mapping):
        told = {pair for pattern in given for pair in candidates.match(pattern)}
        return tuple(k in told for k in range(len(candidates.pairs)))
    return (given is not None,) * len(candidates.pairs)


def _by_name(
    what: str, given: Mapping[str, AnyArray | float], candidates: Candidates, otherwise: AnyArray | None
) -> list[AnyArray | float]:
    """Numbers given by name, one per pair."""
    names = [pair.name for pair in candidates.pairs]
    told = {}
    for pattern, value in given.items():
        found = candidates.match(pattern)
        if not found:
            raise ValueError(f"no pair of shapes matches {pattern!r} of {what}; {name_hint(pattern, names)}")
        told |= dict.fromkeys(found, value)
    missing = [name for k, name in enumerate(names) if k not in told]
    if missing and otherwise is not None:
        told = dict(enumerate(otherwise)) | told
    elif missing:
        raise ValueError(f"{what} is not told for {name_list(missing)}; add '*' for all others")
    return [told[k] for k in range(len(names))]


def pair_max(values: Float[AnyArray, " ng"], candidates: Candidates) -> Float[AnyArray, " npairs"]:
    """Of two surfaces' numbers the larger one; that of the surface with the higher priority, if they differ."""
    return _maximum(values, *_shapes(candidates))


def pair_friction(geometry: Geometry, candidates: Candidates) -> Float[AnyArray, " npairs"]:
    """Friction of every pair: its own, or else by the two surfaces. One that is told counts before one that is not."""
    of_surfaces = _maximum(geometry.friction, *_shapes(candidates, lambda info: (info.priority, info.has_friction)))
    if not geometry.friction_pairs:
        return of_surfaces
    own = {frozenset(names): len(candidates.pairs) + k for k, names in enumerate(geometry.friction_pairs)}
    infos = candidates.infos
    place = [
        own.get(frozenset((infos[pair.first].name, infos[pair.second].name)), k)
        for k, pair in enumerate(candidates.pairs)
    ]
    return jnp.concatenate([of_surfaces, jnp.asarray(geometry.pair_friction)])[np.array(place, dtype=int)]


def _maximum(values: Float[AnyArray, " ng"], first: np.ndarray, second: np.ndarray) -> Float[AnyArray, " npairs"]:
    values = jnp.asarray(values)
    return jnp.maximum(values[first], values[second])


def pair_mean(values: Float[AnyArray, " ng"], candidates: Candidates) -> Float[AnyArray, " npairs"]:
    """The mean of two surfaces' numbers; that of the surface with the higher priority, if they differ."""
    first, second = _shapes(candidates)
    values = jnp.asarray(values)
    return 0.5 * (values[first] + values[second])


def pair_series(values: Float[AnyArray, " ng"], candidates: Candidates, chosen: Sequence[int]) -> AnyArray:
    """Stiffness or damping of two surfaces in series, for some pairs; an infinite one does not give way."""
    first, second = (shapes[np.array(chosen, dtype=int)] for shapes in _shapes(candidates))
    a, b = (jnp.asarray(values)[shapes] for shapes in (first, second))
    is_rigid = jnp.isinf(a) | jnp.isinf(b)
    total = jnp.where(is_rigid, 1.0, a + b)
    both = jnp.where(is_rigid, 0.0, a) * jnp.where(is_rigid, 0.0, b) / jnp.where(total > 0.0, total, 1.0)
    # a surface with priority stands for both
    return jnp.where(is_rigid | (first == second), jnp.minimum(a, b), both)


def _shapes(
    candidates: Candidates, rank: Callable[[GeomInfo], Any] = lambda info: info.priority
) -> tuple[np.ndarray, np.ndarray]:
    """The shapes whose surfaces count for each pair; twice the same where one is of a higher rank."""
    chosen = []
    for pair in candidates.pairs:
        a, b = rank(candidates.infos[pair.first]), rank(candidates.infos[pair.second])
        chosen.append((pair.second if b > a else pair.first, pair.first if a > b else pair.second))
    first, second = np.array(chosen, dtype=int).reshape(-1, 2).T
    return first, second
