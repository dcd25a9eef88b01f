"""Contact parameters per pair of shapes: specified by the user, or combined from the surfaces in the model."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Float

from hybridsim.contact.candidates import Candidates
from hybridsim.core.errors import SettingError
from hybridsim.core.messages import name_hint, name_list, pluralize
from hybridsim.core.parameter_field import parameter
from hybridsim.core.types import AnyArray, as_floats
from hybridsim.model.geometry import Geometry, GeomInfo

PairParameters = AnyArray | float | Mapping[str, AnyArray | float] | None
"""One value for all pairs, one per pair, or a mapping by name: `{"*": 0.5, "foot_*": 0.6, "foot_*|floor": 0.8}`.

Names are those of shapes, links or bodies, as for `only` and `exclude` of `find_candidates`: `foot_*|floor` for a pair
in either order, `foot_*` for all pairs of such a shape. The last matching pattern applies; pairs that match none keep
the value of the model, if it has one.
"""


def pair_parameter(default: Any, *declaration, **options) -> Any:
    """Field of a contact model, friction law or stabilization that holds a parameter, declared as by `parameter`."""
    return eqx.field(default=default, metadata=parameter(*declaration, **options))


def pair_values(
    setting: str,
    specified: PairParameters,
    candidates: Candidates,
    *,
    owner: str = "",
    max_value: float = np.finfo(float).max,
    must_be_positive: bool = False,
    default: Float[AnyArray, " npairs"] | None = None,
) -> Float[AnyArray, " npairs"]:
    """Values of a pair parameter, one per pair.

    Args:
        setting: name of the parameter.
        owner: component that it belongs to, in messages; by default the contact model.
        specified: values as specified by the user.
        candidates: candidate pairs.
        max_value: largest valid value.
        must_be_positive: whether zero is invalid.
        default: values of pairs that no pattern matches; without it, every pair must be matched.

    Raises:
        ValueError: wrong number of values, a pattern that matches no pair, a pair without a value, or an invalid value.
    """
    names = [pair.name for pair in candidates.pairs]
    label = f"{setting} of {owner}" if owner else setting
    if isinstance(specified, Mapping):
        specified = _values_by_name(setting, label, specified, candidates, default)
    try:
        values = as_floats(specified)
    except (TypeError, ValueError):
        raise SettingError(f"{label} must be numeric, not {specified!r}", setting) from None
    if values.shape not in ((), (len(names),)):
        pairs = f"{'is' if len(names) == 1 else 'are'} {pluralize(len(names), 'pair')}"
        raise SettingError(f"{label} has shape {values.shape}, but there {pairs}: {name_list(names)}", setting)
    if not isinstance(values, Tracer) and not ((values >= 0.0) & (values <= max_value)).all():
        bounds = f"between 0 and {max_value:g}" if max_value < np.finfo(float).max else "finite and nonnegative"
        raise SettingError(f"{label} must be {bounds}, not {values.tolist()}", setting)
    if must_be_positive and not isinstance(values, Tracer) and not values.all():
        raise SettingError(f"{label} must be positive, not {values.tolist()}", setting)
    return jnp.broadcast_to(values, (len(names),)) if isinstance(values, Tracer) else values + np.zeros(len(names))


def specified_mask(specified: PairParameters, candidates: Candidates) -> tuple[bool, ...]:
    """Whether the user has specified a value, for each pair."""
    if isinstance(specified, Mapping):
        matched = {pair for pattern in specified for pair in candidates.match(pattern)}
        return tuple(k in matched for k in range(len(candidates.pairs)))
    return (specified is not None,) * len(candidates.pairs)


def _values_by_name(
    setting: str,
    label: str,
    specified: Mapping[str, AnyArray | float],
    candidates: Candidates,
    default: AnyArray | None,
) -> list[AnyArray | float]:
    """Values specified by name, one per pair."""
    names = [pair.name for pair in candidates.pairs]
    values = {}
    for pattern, value in specified.items():
        matches = candidates.match(pattern)
        if not matches:
            raise SettingError(
                f"no pair of shapes matches {pattern!r} of {label}; {name_hint(pattern, names)}", setting
            )
        values |= dict.fromkeys(matches, value)
    missing = [name for k, name in enumerate(names) if k not in values]
    if missing and default is not None:
        values = dict(enumerate(default)) | values
    elif missing:
        raise SettingError(f"{label} is not specified for {name_list(missing)}; add '*' for all other pairs", setting)
    return [values[k] for k in range(len(names))]


def pair_max(values: Float[AnyArray, " ng"], candidates: Candidates) -> Float[AnyArray, " npairs"]:
    """Larger of the two surface values of each pair, or the value of the surface with higher priority."""
    return _maximum(values, *_shapes(candidates))


def candidate_friction(geometry: Geometry, candidates: Candidates) -> Float[AnyArray, " npairs"]:
    """Friction of every pair.

    A friction coefficient that the model specifies for the pair applies, or else that of the surface with higher
    priority, or else the larger of the two. At equal priority, one that the model specifies for a surface overrides a
    default of the other.
    """
    surface_friction = _maximum(
        geometry.friction, *_shapes(candidates, lambda info: (info.priority, info.is_friction_specified))
    )
    if not geometry.friction_pairs:
        return surface_friction
    own_friction = {frozenset(names): len(candidates.pairs) + k for k, names in enumerate(geometry.friction_pairs)}
    infos = candidates.infos
    indices = [
        own_friction.get(frozenset((infos[pair.first].name, infos[pair.second].name)), k)
        for k, pair in enumerate(candidates.pairs)
    ]
    return jnp.concatenate([surface_friction, jnp.asarray(geometry.pair_friction)])[np.array(indices, dtype=int)]


def _maximum(values: Float[AnyArray, " ng"], first: np.ndarray, second: np.ndarray) -> Float[AnyArray, " npairs"]:
    values = jnp.asarray(values)
    return jnp.maximum(values[first], values[second])


def pair_mean(values: Float[AnyArray, " ng"], candidates: Candidates) -> Float[AnyArray, " npairs"]:
    """Mean of the two surface values of each pair, or the value of the surface with higher priority."""
    first, second = _shapes(candidates)
    values = jnp.asarray(values)
    return 0.5 * (values[first] + values[second])


def pair_series(values: Float[AnyArray, " ng"], candidates: Candidates, pairs: Sequence[int]) -> AnyArray:
    """Stiffness or damping of two surfaces in series, for some pairs; an infinite value means rigid."""
    first, second = (shapes[np.array(pairs, dtype=int)] for shapes in _shapes(candidates))
    a, b = (jnp.asarray(values)[shapes] for shapes in (first, second))
    is_rigid = jnp.isinf(a) | jnp.isinf(b)
    total = jnp.where(is_rigid, 1.0, a + b)
    series = jnp.where(is_rigid, 0.0, a) * jnp.where(is_rigid, 0.0, b) / jnp.where(total > 0.0, total, 1.0)
    # where one surface has priority, both indices are its own, and its value applies
    return jnp.where(is_rigid | (first == second), jnp.minimum(a, b), series)


def _shapes(
    candidates: Candidates, rank: Callable[[GeomInfo], Any] = lambda info: info.priority
) -> tuple[np.ndarray, np.ndarray]:
    """Indices of the two shapes whose surfaces each pair combines; the higher-ranking one twice if ranks differ."""
    indices = []
    for pair in candidates.pairs:
        a, b = rank(candidates.infos[pair.first]), rank(candidates.infos[pair.second])
        indices.append((pair.second if b > a else pair.first, pair.first if a > b else pair.second))
    first, second = np.array(indices, dtype=int).reshape(-1, 2).T
    return first, second
