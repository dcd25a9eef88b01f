"""Name and random seed of a fit."""

from dataclasses import KW_ONLY
from pathlib import Path
from typing import ClassVar

from pydantic import model_validator

from hybridsim.core.specification import Seed, setting_error, specification


@specification
class FitSettings:
    """Name and random seed of a fit."""

    python_name: ClassVar[str] = "fit"
    """Function whose arguments these are in Python."""
    _: KW_ONLY
    seed: Seed = 0
    """Random seed of the initial weights of networks and of the order of minibatches."""
    name: str = ""
    """Name of the fit; by default that of the project file."""

    @model_validator(mode="after")
    def _check_name(self):
        if self.name and (Path(self.name).name != self.name or self.name in (".", "..")):
            message = f"is {self.name!r}, which is not a valid folder name"
            raise setting_error("name", message, "remove slashes and dots", "project.outside")
        return self
