"""Array types with shapes, and the glossary of dimension names.

Dimension names used in every signature of the project:

| name            | meaning                                                    |
|-----------------|------------------------------------------------------------|
| nb              | bodies, excluding the world, whose index as a parent is -1 |
| nq              | coordinates in `q` (a quaternion counts as four)           |
| nv              | degrees of freedom: entries of `qd`, `qdd`, `tau`          |
| tree_nq tree_nv | nq and nv of the tree before mimic joints are eliminated   |
| nu              | commands                                                   |
| nf              | named frames fixed to bodies                               |
| ng              | shapes                                                     |
| nc              | contacts of all candidate pairs, active or not             |
| T               | time steps                                                 |

Model records hold NumPy arrays until JAX traces them, so the aliases accept both.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, Int

from hybridsim.core.errors import PrecisionError

if TYPE_CHECKING:
    # static checkers ignore shapes, and the two array types are otherwise interchangeable
    AnyArray = Any
else:
    # models hold NumPy arrays, and indexing a NumPy vector gives a NumPy scalar
    AnyArray = Array | np.ndarray | np.floating

ArrayLike = AnyArray | Sequence | float
"""Any array-like argument: an array, a list, a tuple or a scalar."""

Scalar = Float[AnyArray, ""]
Vec3 = Float[AnyArray, "3"]
Mat3 = Float[AnyArray, "3 3"]
Quaternion = Float[AnyArray, "4"]
"""Unit quaternion, w first."""
MotionVector = Float[AnyArray, "6"]
"""Spatial velocity [rad/s, m/s] or acceleration [rad/s², m/s²]: angular part first."""
Wrench = Float[AnyArray, "6"]
"""Spatial force [N·m, N]: torque first."""
Q = Float[AnyArray, " nq"]
"""Joint coordinates [rad, m or quaternion entries]."""
Qd = Float[AnyArray, " nv"]
"""Joint velocities [rad/s or m/s]."""
Qdd = Float[AnyArray, " nv"]
"""Joint accelerations [rad/s² or m/s²]."""
Tau = Float[AnyArray, " nv"]
"""Joint torques or forces [N·m or N]."""
Command = Float[AnyArray, " nu"]
"""Actuator commands, in the unit of each actuator."""
StatusCode = Int[AnyArray, ""]
"""A value of `hybridsim.core.result.Status`."""


def as_floats(x: ArrayLike) -> AnyArray:
    """`x` as a NumPy array of float64, whatever the precision of JAX; traced values remain JAX arrays."""
    if isinstance(x, Tracer):
        return x if jax.numpy.issubdtype(x.dtype, np.float64) else x.astype(float)
    if any(isinstance(part, Tracer) for part in jax.tree.leaves(x)):
        return jax.numpy.asarray(x)
    return np.array(x, dtype=float)


def as_array(x: Any) -> Any:
    """`x` unchanged if it is an array of any kind, else converted to a NumPy array."""
    return x if isinstance(x, Tracer | jax.Array | np.ndarray) else np.asarray(x)


def require_float64() -> None:
    """Raise unless JAX computes in double precision here.

    The library's entry points enable double precision for the duration of the call; this guards functions that users
    compose inside their own transformations.
    """
    if not jax.config.read("jax_enable_x64"):
        raise PrecisionError(
            "hybridsim computes in float64, but JAX is set to float32 here. Wrap the call in "
            "`with jax.enable_x64(True): ...`, or put `jax.config.update('jax_enable_x64', True)` "
            "at the start of your program."
        )
