# The public names of hybridsim.data: this file is their only list.

from .channel import Channel as Channel
from .channel import Command as Command
from .derivative import derivative as derivative
from .load import load_recordings as load_recordings
from .noise import noise_level as noise_level
from .read import read_table as read_table
from .recording import Recording as Recording
from .recording_options import RecordingOptions as RecordingOptions
from .resample import resample as resample
from .run import Run as Run
from .segments import segments as segments
from .series import Series as Series
from .split import split_runs as split_runs
from .table import Table as Table
