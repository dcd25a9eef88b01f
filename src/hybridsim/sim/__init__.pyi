# The public names of hybridsim.sim: this file is their only list.

from .audit import Audit as Audit
from .audit import audit as audit
from .c_export.export_network import export_network_c as export_network_c
from .c_export.export_step import ExportedFiles as ExportedFiles
from .c_export.export_step import export_c as export_c
from .rollout import Trajectory as Trajectory
from .rollout import rollout as rollout
from .rollout import simulate as simulate
from .sensors import Sensors as Sensors
from .sensors import SensorTerm as SensorTerm
from .simulator import Simulator as Simulator
from .state import Inputs as Inputs
from .state import State as State
from .step import observe as observe
from .step import step as step
