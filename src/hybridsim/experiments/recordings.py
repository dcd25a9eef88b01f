"""Where real recordings are: they are not part of the package.

The environment variable HYBRIDSIM_DATA names the folder; without it `../shared/data` is looked into. The heads of the
experiments say where a recording comes from and what its files look like.
"""

import os
from pathlib import Path

from hybridsim.core.errors import HybridsimError

VARIABLE = "HYBRIDSIM_DATA"
USUAL = Path("..") / "shared" / "data"


class MissingRecordings(HybridsimError):
    """Recordings are not there."""


def recordings(name: str) -> Path:
    """The folder of some recordings.

    Raises:
        MissingRecordings: there is none; says where it was looked for.
    """
    folder = Path(os.environ.get(VARIABLE) or USUAL) / name
    if not folder.is_dir():
        raise MissingRecordings(
            f"the recordings {name!r} are not in {folder.parent}; get them from where the experiment says "
            f"(hybridsim experiment --help), and let {VARIABLE} name the folder that {name!r} is in"
        )
    return folder
