"""The section `[model]` of a project: the mechanism, and how it is simulated."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from hybridsim.project.schema.section import Positive, Section, Seed, conflict

PairNumbers = float | dict[str, float]
"""One number for all pairs of shapes, or by the names of pairs: `{ "*" = 0.5, "foot*|floor" = 0.8 }`."""

OF_IMPULSES = ("restitution", "softness", "sweeps", "cone", "gradient")
OF_FORCES = ("stiffness", "damping", "exponent", "law")
"""Numbers that only one of the two kinds of contact has."""
OF_FILES = ("base", "inertia", "packages", "allowed", "lenient")
"""Keys that say how to read a file."""


class Contact(Section):
    """What happens where bodies touch; what is left out is taken from the model's surfaces."""

    kind: Literal["none", "impulse", "compliant"]
    """Bodies pass through each other, or touch by impulses or by compliant forces."""
    floor: float | None = None
    """Height of a floor to put under the mechanism [m]."""
    only: tuple[str, ...] = ()
    """Pairs of shapes or links that can touch, such as `foot*|floor`."""
    exclude: tuple[str, ...] = ()
    """Pairs that pass through each other."""
    self_collision: bool = True
    """Can parts of the mechanism touch each other?"""
    friction: PairNumbers | None = None
    """Coulomb's coefficient of friction."""
    restitution: PairNumbers | None = None
    """Speed after an impact by that before; impulse only."""
    softness: PairNumbers | None = None
    """By how much a contact gives way; impulse only."""
    sweeps: Annotated[int, Field(ge=1)] | None = None
    """Turns of the solver in a time step; impulse only."""
    cone: Literal["pyramid", "cone"] | None = None
    """Bound of friction; impulse only."""
    gradient: Literal["unrolled", "implicit"] | None = None
    """Derivative of the solver's sweeps or of the solution; impulse only."""
    stiffness: PairNumbers | None = None
    """[N/m to the power of the exponent]; compliant only."""
    damping: PairNumbers | None = None
    """Of a contact; compliant only."""
    exponent: PairNumbers | None = None
    """Power of the penetration; compliant only."""
    law: Literal["coulomb", "andersson", "hollars", "brown"] | None = None
    """Friction law; compliant only."""
    reach: Annotated[float, Field(ge=0.0)] | None = None
    """Distance over which derivatives feel contacts that do not touch [m]."""

    @model_validator(mode="after")
    def _fits_its_kind(self):
        foreign = {"none": (*OF_IMPULSES, *OF_FORCES), "impulse": OF_FORCES, "compliant": OF_IMPULSES}[self.kind]
        for key in self.model_fields_set & set(foreign):
            raise conflict(key, f"is nothing that contact of the kind {self.kind!r} has", "leave it out")
        return self

    @property
    def settings(self) -> dict[str, Any]:
        """What the model of contact is given."""
        return {key: getattr(self, key) for key in self.model_fields_set - {"kind", "floor"}}


def _by_kind(value: Any) -> Any:
    return {"kind": value} if isinstance(value, str) else value


class ModelSection(Section):
    """The mechanism, and how it is simulated."""

    file: str = ""
    """URDF or MJCF file; relative to the project's folder, or absolute."""
    built_in: str = ""
    """Name of a built-in mechanism, instead of a file."""
    base: Literal["fixed", "free"] = "fixed"
    """Whether a URDF's root link is fixed to the world or free to move."""
    inertia: Literal["file", "from_geometry", "error"] = "file"
    """Missing inertias of a URDF: take the file as it is, compute them from the shapes, or refuse."""
    packages: dict[str, str] = Field(default_factory=dict)
    """Folders of the ROS packages that `package://` paths name."""
    allowed: tuple[str, ...] = ()
    """Folders outside the model's own that meshes and included files may lie in."""
    lenient: tuple[str, ...] = ()
    """Codes of problems that shall not stop the import, such as `inertia.triangle`, or `all`."""
    dt: Positive | None = None
    """Time step [s]; the model's own by default."""
    integrator: Literal["euler", "rk4", "implicit"] = "euler"
    """Semi-implicit Euler, Runge–Kutta, or implicit in velocity for stiff damping."""
    backend: Literal["auto", "native", "xla"] = "auto"
    """What runs the simulation: native code where it can and XLA elsewhere, or one of them."""
    contact: Annotated[Contact, BeforeValidator(_by_kind)] = Contact(kind="none")
    """`"none"`, `"impulse"`, `"compliant"`, or a table `[model.contact]` with settings."""

    @model_validator(mode="after")
    def _is_one_mechanism(self):
        if bool(self.file) == bool(self.built_in):
            what = "names two mechanisms, file and built_in" if self.file else "names no mechanism"
            raise conflict("", what, 'give file = "robot.urdf", or built_in = "pendulum"')
        if self.built_in:
            for key in OF_FILES:
                if key in self.model_fields_set:
                    raise conflict(key, "says how to read a file, and the mechanism is a built-in one", "leave it out")
        if self.contact.kind == "impulse" and self.integrator != "euler":
            fix = 'write integrator = "euler", or contact = "compliant"'
            raise conflict("integrator", "must be euler where bodies touch by impulses", fix)
        return self


class RunSection(Section):
    """What a fit writes, and its random numbers."""

    seed: Seed = 0
    """Of everything that is drawn at random: first weights of networks, order of mini-batches."""
    out: str = ""
    """Folder for the run's record, inside the project's folder; `runs/NAME` by default."""
    name: str = ""
    """Name of the run; that of the project file by default."""
