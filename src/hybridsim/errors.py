"""Exceptions and warnings of the package, and the problems that they carry."""

from hybridsim.core.errors import DataError as DataError
from hybridsim.core.errors import DivergedError as DivergedError
from hybridsim.core.errors import FileError as FileError
from hybridsim.core.errors import FolderError as FolderError
from hybridsim.core.errors import HybridsimError as HybridsimError
from hybridsim.core.errors import ModelError as ModelError
from hybridsim.core.errors import ModelWarning as ModelWarning
from hybridsim.core.errors import ParameterError as ParameterError
from hybridsim.core.errors import PrecisionError as PrecisionError
from hybridsim.core.errors import Problem as Problem
from hybridsim.core.errors import ProblemsError as ProblemsError
from hybridsim.core.errors import Severity as Severity
from hybridsim.core.errors import SpecificationError as SpecificationError
from hybridsim.core.errors import TapError as TapError
from hybridsim.core.errors import UnsupportedOperationError as UnsupportedOperationError
from hybridsim.project.schema.project_error import ProjectError as ProjectError
