# The public names of hybridsim.contact: this file is their only list.

from .candidates import Candidates as Candidates
from .candidates import Pair as Pair
from .compliant.compliant_contact import CompliantContact as CompliantContact
from .compliant.friction_laws import Andersson as Andersson
from .compliant.friction_laws import Brown as Brown
from .compliant.friction_laws import Coulomb as Coulomb
from .compliant.friction_laws import FrictionLaw as FrictionLaw
from .compliant.friction_laws import Hollars as Hollars
from .contact import AbstractContact as AbstractContact
from .contact import NoContact as NoContact
from .impulse.impulse_contact import ImpulseContact as ImpulseContact
from .impulse.stabilization import ERP as ERP
from .impulse.stabilization import Baumgarte as Baumgarte
from .impulse.stabilization import RecoveryTime as RecoveryTime
from .impulse.stabilization import Stabilization as Stabilization
