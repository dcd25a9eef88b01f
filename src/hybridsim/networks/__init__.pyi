# The public names of hybridsim.networks: this file is their only list.

from .drag import RodDrag as RodDrag
from .friction import ConeFriction as ConeFriction
from .friction import JointFriction as JointFriction
from .frozen_fields import FROZEN as FROZEN
from .internal_force import InternalForce as InternalForce
from .lagrangian import Lagrangian as Lagrangian
from .mlp import MLP as MLP
from .passive import Conservative as Conservative
from .passive import Dissipative as Dissipative
from .passive import PortHamiltonian as PortHamiltonian
from .prune import PruningUnit as PruningUnit
