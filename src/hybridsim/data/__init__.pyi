# The public names of hybridsim.data: this file is their only list.

from .channel import Channel as Channel
from .derivative import derivative as derivative
from .load import load_recording as load_recording
from .load import load_runs as load_runs
from .noise import noise_level as noise_level
from .read import read_table as read_table
from .recording import Recording as Recording
from .resample import resample as resample
from .segments import segments as segments
from .series import Series as Series
from .split import split_runs as split_runs
from .table import Table as Table
