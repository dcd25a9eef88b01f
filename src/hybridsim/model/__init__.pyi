# The public names of hybridsim.model: this file is their only list.

from .builder import ModelBuilder as ModelBuilder
from .contact_grid import contact_grid as contact_grid
from .coordinates import difference as difference
from .coordinates import retract as retract
from .floor import with_floor as with_floor
from .geometry import Geometry as Geometry
from .geometry import GeomInfo as GeomInfo
from .geometry import Shape as Shape
from .inertial import Inertial as Inertial
from .inertial import solid_box as solid_box
from .inertial import solid_capsule as solid_capsule
from .inertial import solid_cylinder as solid_cylinder
from .inertial import solid_ellipsoid as solid_ellipsoid
from .joints import ElementaryJoint as ElementaryJoint
from .joints import ElementaryJointType as ElementaryJointType
from .model import Actuators as Actuators
from .model import Bodies as Bodies
from .model import Joints as Joints
from .model import Model as Model
from .specs import JointKind as JointKind
from .stretch import stretch_links as stretch_links
from .topology import ModelSource as ModelSource
from .topology import Topology as Topology
