# The public names of hybridsim.params: this file is their only list.

from .free import Free as Free
from .parameter_table import ListedParameter as ListedParameter
from .parameter_table import parameter_table as parameter_table
from .setup import Setup as Setup
from .space import ParameterChange as ParameterChange
from .space import ParameterSpace as ParameterSpace
