# The public names of hybridsim.native: this file is their only list.

from .runtime.function import NativeFunction as NativeFunction
from .runtime.rollout import Rollout as Rollout
