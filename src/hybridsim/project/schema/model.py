"""Sections `[model]` and `[run]` of a project: the mechanism and its simulation, the output of a fit."""

from dataclasses import KW_ONLY

from pydantic import model_validator

from hybridsim.core.specification import setting_error, setting_fields, specification
from hybridsim.identify.fit_settings import FitSettings
from hybridsim.io.load_options import LoadOptions
from hybridsim.sim.simulation_settings import SimulationSettings


@specification
class ModelSection(LoadOptions, SimulationSettings):
    """The mechanism and its simulation."""

    _: KW_ONLY
    file: str = ""
    """URDF or MJCF file, relative to the project's folder or absolute."""
    built_in: str = ""
    """Name of a built-in mechanism, instead of a file."""

    @model_validator(mode="after")
    def _check_mechanism(self):
        if bool(self.file) == bool(self.built_in):
            message = "specifies two mechanisms, file and built_in" if self.file else "specifies no mechanism"
            raise setting_error("", message, 'write file = "robot.urdf" or built_in = "pendulum"')
        if self.built_in:
            default = LoadOptions()
            for key in setting_fields(LoadOptions):
                if getattr(self, key) != getattr(default, key):
                    message = "applies to model files only, not to a built-in mechanism"
                    raise setting_error(key, message, "remove it")
        return self


@specification
class RunSection(FitSettings):
    """Output of a fit and its random seed."""

    _: KW_ONLY
    out: str = ""
    """Run folder, inside the project's folder; by default `runs/NAME`."""
