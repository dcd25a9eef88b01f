"""hybridsim: robot simulation that fits physics and neural networks to recorded motion.

The names below are the public interface. They are loaded on first use, so that `import hybridsim` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hybridsim.contact.compliant import CompliantContact as CompliantContact
    from hybridsim.contact.friction_laws import Andersson as Andersson
    from hybridsim.contact.friction_laws import Brown as Brown
    from hybridsim.contact.friction_laws import Coulomb as Coulomb
    from hybridsim.contact.friction_laws import Hollars as Hollars
    from hybridsim.contact.impulse import ImpulseContact as ImpulseContact
    from hybridsim.contact.stabilisation import Baumgarte as Baumgarte
    from hybridsim.contact.stabilisation import Erp as Erp
    from hybridsim.contact.stabilisation import Recovery as Recovery
    from hybridsim.core.errors import HybridsimError as HybridsimError
    from hybridsim.core.errors import ModelError as ModelError
    from hybridsim.core.errors import ModelWarning as ModelWarning
    from hybridsim.core.errors import PrecisionError as PrecisionError
    from hybridsim.core.errors import TapError as TapError
    from hybridsim.core.result import Status as Status
    from hybridsim.dynamics.aba import forward_dynamics as forward_dynamics
    from hybridsim.dynamics.actuation import Actuation as Actuation
    from hybridsim.dynamics.crba import mass_matrix as mass_matrix
    from hybridsim.dynamics.inverse_kinematics import Target as Target
    from hybridsim.dynamics.inverse_kinematics import inverse_kinematics as inverse_kinematics
    from hybridsim.dynamics.kinematics import kinematics as kinematics
    from hybridsim.dynamics.rnea import inverse_dynamics as inverse_dynamics
    from hybridsim.io.convert import convert as convert
    from hybridsim.io.export import export as export
    from hybridsim.io.hulls import with_hulls as with_hulls
    from hybridsim.io.load import load_model as load_model
    from hybridsim.model.builder import ModelBuilder as ModelBuilder
    from hybridsim.model.contact_grid import contact_grid as contact_grid
    from hybridsim.model.floor import with_floor as with_floor
    from hybridsim.model.model import Model as Model
    from hybridsim.sim.export_c import export_c as export_c
    from hybridsim.sim.rollout import Trajectory as Trajectory
    from hybridsim.sim.rollout import rollout as rollout
    from hybridsim.sim.rollout import simulate as simulate
    from hybridsim.sim.simulator import Simulator as Simulator
    from hybridsim.sim.state import Inputs as Inputs
    from hybridsim.sim.state import State as State
    from hybridsim.sim.step import observe as observe
    from hybridsim.sim.step import step as step
    from hybridsim.taps.blueprint import Blueprint as Blueprint
    from hybridsim.taps.blueprint import Graft as Graft
    from hybridsim.taps.drag import RodDrag as RodDrag
    from hybridsim.taps.networks import MLP as MLP

_HOME = {
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
    "MLP": "taps.networks",
    "RodDrag": "taps.drag",
    "ImpulseContact": "contact.impulse",
    "CompliantContact": "contact.compliant",
    "Recovery": "contact.stabilisation",
    "Erp": "contact.stabilisation",
    "Baumgarte": "contact.stabilisation",
    "Coulomb": "contact.friction_laws",
    "Andersson": "contact.friction_laws",
    "Hollars": "contact.friction_laws",
    "Brown": "contact.friction_laws",
    "contact_grid": "model.contact_grid",
    "Simulator": "sim.simulator",
    "State": "sim.state",
    "Inputs": "sim.state",
    "step": "sim.step",
    "observe": "sim.step",
    "rollout": "sim.rollout",
    "simulate": "sim.rollout",
    "Trajectory": "sim.rollout",
    "export_c": "sim.export_c",
}

__all__ = [
    "MLP",
    "Actuation",
    "Andersson",
    "Baumgarte",
    "Blueprint",
    "Brown",
    "CompliantContact",
    "Coulomb",
    "Erp",
    "Graft",
    "Hollars",
    "HybridsimError",
    "ImpulseContact",
    "Inputs",
    "Model",
    "ModelBuilder",
    "ModelError",
    "ModelWarning",
    "PrecisionError",
    "Recovery",
    "RodDrag",
    "Simulator",
    "State",
    "Status",
    "TapError",
    "Target",
    "Trajectory",
    "contact_grid",
    "convert",
    "export",
    "export_c",
    "forward_dynamics",
    "inverse_dynamics",
    "inverse_kinematics",
    "kinematics",
    "load_model",
    "mass_matrix",
    "observe",
    "rollout",
    "simulate",
    "step",
    "with_floor",
    "with_hulls",
]
__version__ = "0.1.0"


def __getattr__(name: str):
    if name not in _HOME:
        raise AttributeError(f"module 'hybridsim' has no attribute {name!r}")
    value = getattr(import_module(f"hybridsim.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
