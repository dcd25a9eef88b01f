# The public names of hybridsim.io: this file is their only list.

from .convert import convert as convert
from .edit_xml import Change as Change
from .edit_xml import Changes as Changes
from .export import export as export
from .hulls import with_hulls as with_hulls
from .load import inspect_model as inspect_model
from .load import load_model as load_model
from .load_options import LoadKwargs as LoadKwargs
