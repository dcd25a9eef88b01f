# The public names of hybridsim.taps: this file is their only list.

from .blueprint import Blueprint as Blueprint
from .blueprint import Graft as Graft
from .catalogue import CATALOGUE as CATALOGUE
from .catalogue import Axis as Axis
from .catalogue import Form as Form
from .catalogue import Quantity as Quantity
