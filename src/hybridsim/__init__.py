"""hybridsim: robot simulator and system identification with neural networks inside the physics.

The names below are the public interface. They are loaded on first use, so that `import hybridsim` is fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hybridsim.contact.compliant.compliant_contact import CompliantContact as CompliantContact
    from hybridsim.contact.compliant.friction_laws import Andersson as Andersson
    from hybridsim.contact.compliant.friction_laws import Brown as Brown
    from hybridsim.contact.compliant.friction_laws import Coulomb as Coulomb
    from hybridsim.contact.compliant.friction_laws import Hollars as Hollars
    from hybridsim.contact.impulse.impulse_contact import ImpulseContact as ImpulseContact
    from hybridsim.contact.impulse.stabilization import ERP as ERP
    from hybridsim.contact.impulse.stabilization import Baumgarte as Baumgarte
    from hybridsim.contact.impulse.stabilization import RecoveryTime as RecoveryTime
    from hybridsim.core.errors import HybridsimError as HybridsimError
    from hybridsim.core.errors import ModelError as ModelError
    from hybridsim.core.errors import ModelWarning as ModelWarning
    from hybridsim.core.errors import PrecisionError as PrecisionError
    from hybridsim.core.errors import TapError as TapError
    from hybridsim.core.result import Status as Status
    from hybridsim.data.channel import Channel as Channel
    from hybridsim.data.load import load_recording as load_recording
    from hybridsim.data.recording import Recording as Recording
    from hybridsim.dynamics.aba import forward_dynamics as forward_dynamics
    from hybridsim.dynamics.actuation import Actuation as Actuation
    from hybridsim.dynamics.crba import mass_matrix as mass_matrix
    from hybridsim.dynamics.inverse_kinematics import Target as Target
    from hybridsim.dynamics.inverse_kinematics import inverse_kinematics as inverse_kinematics
    from hybridsim.dynamics.kinematics import kinematics as kinematics
    from hybridsim.dynamics.rnea import inverse_dynamics as inverse_dynamics
    from hybridsim.identify.discover import discover as discover
    from hybridsim.identify.fit import fit as fit
    from hybridsim.identify.inverse_dynamics_fit import fit_inverse_dynamics as fit_inverse_dynamics
    from hybridsim.identify.network_scales import scale_to_data as scale_to_data
    from hybridsim.identify.penalty import Sparsity as Sparsity
    from hybridsim.identify.problem import FitProblem as FitProblem
    from hybridsim.identify.problem import Stage as Stage
    from hybridsim.identify.score import score_predictions as score_predictions
    from hybridsim.identify.score import score_windows as score_windows
    from hybridsim.identify.solvers.adam import Adam as Adam
    from hybridsim.identify.solvers.lbfgs import LBFGS as LBFGS
    from hybridsim.identify.solvers.levenberg_marquardt import LevenbergMarquardt as LevenbergMarquardt
    from hybridsim.identify.windows import ChannelRoles as ChannelRoles
    from hybridsim.identify.windows import InputSignal as InputSignal
    from hybridsim.io.convert import convert as convert
    from hybridsim.io.export import export as export
    from hybridsim.io.hulls import with_hulls as with_hulls
    from hybridsim.io.load import load_model as load_model
    from hybridsim.model.builder import ModelBuilder as ModelBuilder
    from hybridsim.model.contact_grid import contact_grid as contact_grid
    from hybridsim.model.floor import with_floor as with_floor
    from hybridsim.model.model import Model as Model
    from hybridsim.networks.drag import RodDrag as RodDrag
    from hybridsim.networks.friction import ConeFriction as ConeFriction
    from hybridsim.networks.friction import JointFriction as JointFriction
    from hybridsim.networks.internal_force import InternalForce as InternalForce
    from hybridsim.networks.lagrangian import Lagrangian as Lagrangian
    from hybridsim.networks.mlp import MLP as MLP
    from hybridsim.networks.passive import Conservative as Conservative
    from hybridsim.networks.passive import Dissipative as Dissipative
    from hybridsim.networks.passive import PortHamiltonian as PortHamiltonian
    from hybridsim.params.free import Free as Free
    from hybridsim.params.setup import Setup as Setup
    from hybridsim.params.space import ParameterSpace as ParameterSpace
    from hybridsim.project.build.blueprint_file import load_blueprint as load_blueprint
    from hybridsim.project.build.blueprint_file import save_blueprint as save_blueprint
    from hybridsim.sim.audit import audit as audit
    from hybridsim.sim.c_export.export_network import export_network_c as export_network_c
    from hybridsim.sim.c_export.export_step import export_c as export_c
    from hybridsim.sim.rollout import Trajectory as Trajectory
    from hybridsim.sim.rollout import rollout as rollout
    from hybridsim.sim.rollout import simulate as simulate
    from hybridsim.sim.sensors import Sensors as Sensors
    from hybridsim.sim.simulator import Simulator as Simulator
    from hybridsim.sim.state import Inputs as Inputs
    from hybridsim.sim.state import State as State
    from hybridsim.sim.step import observe as observe
    from hybridsim.sim.step import step as step
    from hybridsim.taps.blueprint import Blueprint as Blueprint
    from hybridsim.taps.blueprint import Graft as Graft

_MODULES = {
    "HybridsimError": "core.errors",
    "ModelError": "core.errors",
    "ModelWarning": "core.errors",
    "PrecisionError": "core.errors",
    "TapError": "core.errors",
    "Status": "core.result",
    "Model": "model.model",
    "ModelBuilder": "model.builder",
    "load_model": "io.load",
    "convert": "io.convert",
    "export": "io.export",
    "with_floor": "model.floor",
    "with_hulls": "io.hulls",
    "kinematics": "dynamics.kinematics",
    "forward_dynamics": "dynamics.aba",
    "inverse_dynamics": "dynamics.rnea",
    "mass_matrix": "dynamics.crba",
    "inverse_kinematics": "dynamics.inverse_kinematics",
    "Target": "dynamics.inverse_kinematics",
    "Actuation": "dynamics.actuation",
    "Blueprint": "taps.blueprint",
    "Graft": "taps.blueprint",
    "MLP": "networks.mlp",
    "RodDrag": "networks.drag",
    "ImpulseContact": "contact.impulse.impulse_contact",
    "CompliantContact": "contact.compliant.compliant_contact",
    "RecoveryTime": "contact.impulse.stabilization",
    "ERP": "contact.impulse.stabilization",
    "Baumgarte": "contact.impulse.stabilization",
    "Coulomb": "contact.compliant.friction_laws",
    "Andersson": "contact.compliant.friction_laws",
    "Hollars": "contact.compliant.friction_laws",
    "Brown": "contact.compliant.friction_laws",
    "contact_grid": "model.contact_grid",
    "Simulator": "sim.simulator",
    "State": "sim.state",
    "Inputs": "sim.state",
    "step": "sim.step",
    "observe": "sim.step",
    "rollout": "sim.rollout",
    "simulate": "sim.rollout",
    "Trajectory": "sim.rollout",
    "export_c": "sim.c_export.export_step",
    "export_network_c": "sim.c_export.export_network",
    "Channel": "data.channel",
    "Recording": "data.recording",
    "load_recording": "data.load",
    "Free": "params.free",
    "ParameterSpace": "params.space",
    "Setup": "params.setup",
    "Sensors": "sim.sensors",
    "FitProblem": "identify.problem",
    "Stage": "identify.problem",
    "ChannelRoles": "identify.windows",
    "InputSignal": "identify.windows",
    "LevenbergMarquardt": "identify.solvers.levenberg_marquardt",
    "LBFGS": "identify.solvers.lbfgs",
    "Adam": "identify.solvers.adam",
    "fit": "identify.fit",
    "score_windows": "identify.score",
    "score_predictions": "identify.score",
    "fit_inverse_dynamics": "identify.inverse_dynamics_fit",
    "Conservative": "networks.passive",
    "Dissipative": "networks.passive",
    "PortHamiltonian": "networks.passive",
    "Lagrangian": "networks.lagrangian",
    "JointFriction": "networks.friction",
    "ConeFriction": "networks.friction",
    "InternalForce": "networks.internal_force",
    "discover": "identify.discover",
    "scale_to_data": "identify.network_scales",
    "Sparsity": "identify.penalty",
    "audit": "sim.audit",
    "load_blueprint": "project.build.blueprint_file",
    "save_blueprint": "project.build.blueprint_file",
}

__all__ = [
    "ERP",
    "LBFGS",
    "MLP",
    "Actuation",
    "Adam",
    "Andersson",
    "Baumgarte",
    "Blueprint",
    "Brown",
    "Channel",
    "ChannelRoles",
    "CompliantContact",
    "ConeFriction",
    "Conservative",
    "Coulomb",
    "Dissipative",
    "FitProblem",
    "Free",
    "Graft",
    "Hollars",
    "HybridsimError",
    "ImpulseContact",
    "InputSignal",
    "Inputs",
    "InternalForce",
    "JointFriction",
    "Lagrangian",
    "LevenbergMarquardt",
    "Model",
    "ModelBuilder",
    "ModelError",
    "ModelWarning",
    "ParameterSpace",
    "PortHamiltonian",
    "PrecisionError",
    "Recording",
    "RecoveryTime",
    "RodDrag",
    "Sensors",
    "Setup",
    "Simulator",
    "Sparsity",
    "Stage",
    "State",
    "Status",
    "TapError",
    "Target",
    "Trajectory",
    "audit",
    "contact_grid",
    "convert",
    "discover",
    "export",
    "export_c",
    "export_network_c",
    "fit",
    "fit_inverse_dynamics",
    "forward_dynamics",
    "inverse_dynamics",
    "inverse_kinematics",
    "kinematics",
    "load_blueprint",
    "load_model",
    "load_recording",
    "mass_matrix",
    "observe",
    "rollout",
    "save_blueprint",
    "scale_to_data",
    "score_predictions",
    "score_windows",
    "simulate",
    "step",
    "with_floor",
    "with_hulls",
]
__version__ = "0.1.0"


def __getattr__(name: str):
    if name not in _MODULES:
        raise AttributeError(f"module 'hybridsim' has no attribute {name!r}")
    value = getattr(import_module(f"hybridsim.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULES])
