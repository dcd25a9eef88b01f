# The public names of hybridsim.project: this file is their only list.

from .build.blueprint_file import load_blueprint as load_blueprint
from .build.blueprint_file import save_blueprint as save_blueprint
from .build.build import BuiltProject as BuiltProject
from .build.build import build as build
from .fit import fit as fit
from .fit import fit_task as fit_task
from .fit_result import FitResult as FitResult
from .load_result import load_result as load_result
from .report.prediction import Prediction as Prediction
from .schema.load import Project as Project
from .schema.load import load_project as load_project
