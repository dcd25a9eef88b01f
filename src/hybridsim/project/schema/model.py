"""Section `[model]` of a project: the mechanism and its simulation."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from hybridsim.project.schema.strict_table import Positive, Seed, StrictTable, key_error

PairValues = float | dict[str, float]
"""A value for all pairs of shapes, or values by pair: `{ "*" = 0.5, "foot*|floor" = 0.8 }`."""

IMPULSE_KEYS = ("restitution", "softness", "sweeps", "cone", "gradient")
COMPLIANT_KEYS = ("stiffness", "damping", "exponent", "law")
"""Keys specific to one of the two contact models."""
MODEL_FILE_KEYS = ("base", "inertia", "packages", "allowed_folders", "tolerate")
"""Keys that apply to model files only."""


class ContactTable(StrictTable):
    """Contact model; settings that are not specified are taken from the model's surfaces."""

    kind: Literal["none", "impulse", "compliant"]
    """Contact model: none, impulse-based or compliant."""
    floor: float | None = None
    """Height of a floor to add [m]."""
    only: tuple[str, ...] = ()
    """Pairs of shapes or links that can collide, such as `foot*|floor`."""
    exclude: tuple[str, ...] = ()
    """Pairs that do not collide."""
    self_collision: bool = True
    """Whether parts of the mechanism can collide with each other."""
    friction: PairValues | None = None
    """Coulomb friction coefficient."""
    restitution: PairValues | None = None
    """Coefficient of restitution; impulse only."""
    softness: PairValues | None = None
    """Regularization relative to the apparent inverse mass of the bodies; impulse only."""
    sweeps: Annotated[int, Field(ge=1)] | None = None
    """Sweeps of the solver per time step; impulse only."""
    cone: Literal["pyramidal", "circular"] | None = None
    """Shape of the friction cone; impulse only."""
    gradient: Literal["unrolled", "implicit"] | None = None
    """Derivative of the unrolled sweeps, or implicit derivative of the solution; impulse only."""
    stiffness: PairValues | None = None
    """Contact stiffness [N/mⁿ with the exponent n]; compliant only."""
    damping: PairValues | None = None
    """Contact damping; compliant only."""
    exponent: PairValues | None = None
    """Exponent of the penetration; compliant only."""
    law: Literal["coulomb", "andersson", "hollars", "brown"] | None = None
    """Friction law; compliant only."""
    reach: Annotated[float, Field(ge=0.0)] | None = None
    """Decay length of the derivatives of open contacts [m]."""

    @model_validator(mode="after")
    def _check_keys_of_kind(self):
        invalid = {"none": (*IMPULSE_KEYS, *COMPLIANT_KEYS), "impulse": COMPLIANT_KEYS, "compliant": IMPULSE_KEYS}[
            self.kind
        ]
        for key in self.model_fields_set & set(invalid):
            raise key_error(key, f"does not apply to contact of kind {self.kind!r}", "remove it")
        return self

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments of the contact model."""
        return {key: getattr(self, key) for key in self.model_fields_set - {"kind", "floor"}}


def _expand_kind(value: Any) -> Any:
    return {"kind": value} if isinstance(value, str) else value


class ModelSection(StrictTable):
    """The mechanism and its simulation."""

    file: str = ""
    """URDF or MJCF file, relative to the project's folder or absolute."""
    built_in: str = ""
    """Name of a built-in mechanism, instead of a file."""
    base: Literal["fixed", "free"] = "fixed"
    """Whether a URDF's root link is fixed to the world or free to move."""
    inertia: Literal["file", "from_geometry", "error"] = "file"
    """Treatment of moving URDF links without mass or inertia: use the values of the file (`file`), compute them from
    the shapes (`from_geometry`), or report an error (`error`)."""
    packages: dict[str, str] = Field(default_factory=dict)
    """Folders of ROS packages, to resolve `package://` paths."""
    allowed_folders: tuple[str, ...] = ()
    """Folders outside that of the model from which meshes and included files may be read."""
    tolerate: tuple[str, ...] = ()
    """Codes of problems to be tolerated, such as `inertia.triangle`, or `all`."""
    dt: Positive | None = None
    """Time step [s]; by default that of the model."""
    integrator: Literal["euler", "rk4", "implicit"] = "euler"
    """Semi-implicit Euler, Runge–Kutta 4, or implicit in velocity for stiff damping."""
    backend: Literal["auto", "native", "xla"] = "auto"
    """Backend of the simulation: native code with XLA as fallback, or one of them."""
    contact: Annotated[ContactTable, BeforeValidator(_expand_kind)] = ContactTable(kind="none")
    """`"none"`, `"impulse"`, `"compliant"`, or a table `[model.contact]` with settings."""

    @model_validator(mode="after")
    def _check_mechanism(self):
        if bool(self.file) == bool(self.built_in):
            message = "specifies two mechanisms, file and built_in" if self.file else "specifies no mechanism"
            raise key_error("", message, 'write file = "robot.urdf" or built_in = "pendulum"')
        if self.built_in:
            for key in MODEL_FILE_KEYS:
                if key in self.model_fields_set:
                    raise key_error(key, "applies to model files only, not to a built-in mechanism", "remove it")
        if self.contact.kind == "impulse" and self.integrator != "euler":
            fix = 'write integrator = "euler", or contact = "compliant"'
            raise key_error("integrator", "must be euler with impulse contact", fix)
        return self


class RunSection(StrictTable):
    """Output of a fit and its random seed."""

    seed: Seed = 0
    """Random seed of the initial weights of networks and of the order of minibatches."""
    out: str = ""
    """Run folder, inside the project's folder; by default `runs/NAME`."""
    name: str = ""
    """Name of the fit; by default that of the project file."""
