"""Location of the real recordings, which are not part of the package.

The environment variable HYBRIDSIM_DATA names their folder; the default is `../shared/data`. docs/experiments.md
lists their sources; file formats are documented at the top of each experiment.
"""

import os
from pathlib import Path

from hybridsim.core.errors import HybridsimError

ENVIRONMENT_VARIABLE = "HYBRIDSIM_DATA"
DEFAULT_FOLDER = Path("..") / "shared" / "data"


class MissingRecordingsError(HybridsimError):
    """The folder of recordings does not exist."""


def recordings_folder(name: str) -> Path:
    """Folder of a set of recordings.

    Raises:
        MissingRecordingsError: the folder does not exist.
    """
    folder = Path(os.environ.get(ENVIRONMENT_VARIABLE) or DEFAULT_FOLDER) / name
    if not folder.is_dir():
        raise MissingRecordingsError(
            f"the recordings {name!r} are not in {folder.parent}; download them from their source "
            f"(docs/experiments.md), and set {ENVIRONMENT_VARIABLE} to the folder that contains {name!r}"
        )
    return folder
