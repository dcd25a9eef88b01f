"""URDF writer.

A URDF joint rotates its link about the link's origin. A body whose joint has its anchor away from the body's origin is
written with its link frame at the anchor; its own frame becomes a massless link fixed to it.
"""

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from hybridsim.core.errors import ModelError
from hybridsim.io.attributes import MAX_NUMBER
from hybridsim.io.load_options import option_hint
from hybridsim.io.model_to_spec import (
    SHAPE_NAMES,
    has_default_actuators,
    inconsistent_inertials,
    require_joint_types,
    spec_of,
)
from hybridsim.io.urdf.dof_attributes import DOF_ATTRIBUTES
from hybridsim.io.urdf.read_contact import FIELDS
from hybridsim.io.urdf.read_elements import KINDS, roll_pitch_yaw
from hybridsim.io.urdf.read_lint import INERTIA_ENTRIES
from hybridsim.io.write_document import Notes, UniqueNames, XmlElement, add_element, mesh_reference, write_document
from hybridsim.model.geometry import DEFAULT_FRICTION, DEFAULT_RECOVERY_TIME, DEFAULT_SOFTNESS, UNSPECIFIED, Shape
from hybridsim.model.inertial import Inertial
from hybridsim.model.model import Model
from hybridsim.model.specs import (
    WORLD_NAME,
    BodySpec,
    FrameSpec,
    GeomSpec,
    JointKind,
    JointSpec,
    ModelSpec,
)
from hybridsim.spatial.transform import Pose

FREE_ROOT_JOINT = "root"
"""Name that the reader gives to the free joint of a root link."""

_TYPES = {kind: name for name, kind in KINDS.items()}
_DEFAULTS = ModelSpec("")


def write_urdf(model: Model, out: str | Path) -> list[str]:
    """Write a model as a URDF file.

    A single free-floating mechanism gets a root link without a joint, as is usual for mobile robots; otherwise the root
    is a link named `world`.

    Args:
        model: the model.
        out: file to write; overwritten if it exists.

    Returns:
        Notes on everything that URDF does not support or represents differently, with the names of the elements.

    Raises:
        ModelError: the model has invalid values, or joints that URDF does not support.
        FileError: the file cannot be written.
    """
    notes = Notes()
    spec = spec_of(model, notes)
    require_joint_types(spec, _TYPES, "URDF")
    _check_inertials(spec, notes)
    _note_unsupported(spec, notes)
    write_document(_UrdfWriter(_with_links_at_anchors(spec, notes), Path(out), notes).root(), spec.name, out)
    return notes.texts()


def _check_inertials(spec: ModelSpec, notes: Notes) -> None:
    """Reject masses that no reader accepts, and note inertias that are accepted with `tolerate` only."""
    invalid = inconsistent_inertials(spec)
    errors = [problem for _, problem in invalid if not problem.code.startswith("inertia.")]
    if errors:
        raise ModelError(errors)
    for body, problem in invalid:
        option = option_hint("tolerate", [problem.code])
        remedy = f"load the file with {option}"
        notes.add("physically inconsistent inertias are written unchanged", body.name, remark=remedy)


def _with_links_at_anchors(spec: ModelSpec, notes: Notes) -> ModelSpec:
    """The same mechanism with every body frame at the anchor of its joint."""
    shifts = {WORLD_NAME: np.zeros(3)}
    for body in spec.bodies:
        joint = body.joint.kind.elementary_type.joint
        turns = joint.rotations and joint.turns_about_anchor
        shifts[body.name] = np.asarray(body.joint.anchor) if turns else np.zeros(3)
    bodies, frames = [], []
    names = UniqueNames(notes, [*shifts, *(frame.name for frame in spec.frames)])
    for body in spec.bodies:
        shift, inertial = shifts[body.name], body.inertial
        X_PJ = body.placement
        placement = Pose(X_PJ.R, X_PJ.p - shifts[body.parent] + X_PJ.R @ shift)
        com = inertial.com - shift if inertial.mass else inertial.com
        inertial = Inertial(inertial.mass, com, inertial.inertia)
        bodies.append(replace(body, placement=placement, inertial=inertial))
        # no frames for the massless bodies of compound joints
        if shift.any() and inertial.mass:
            frame = FrameSpec(names.make_unique(f"{body.name}_frame"), body.name)
            frames.append(frame)
            notes.add(
                "link frames are moved to the joint anchor; the original frames become links fixed to them",
                frame.name,
            )
    geoms = [replace(part, placement=_shifted_placement(part, shifts)) for part in spec.geoms]
    frames = [replace(part, placement=_shifted_placement(part, shifts)) for part in [*spec.frames, *frames]]
    return replace(spec, bodies=bodies, geoms=geoms, frames=frames)


def _shifted_placement(part: GeomSpec | FrameSpec, shifts: dict[str, np.ndarray]) -> Pose:
    return Pose(part.placement.R, part.placement.p - shifts[part.body])


def _note_unsupported(spec: ModelSpec, notes: Notes) -> None:
    """Note everything that URDF does not support."""
    for joint in (body.joint for body in spec.bodies):
        for parameter, what in (("armature", "armature"), ("stiffness", "joint springs")):
            if getattr(joint, parameter) and parameter not in DOF_ATTRIBUTES:
                notes.add(f"URDF does not support {what}", joint.name)
        if joint.kind is JointKind.SPHERICAL:
            notes.add("spherical joints are an extension of URDF that other programs may reject", joint.name)
    if not has_default_actuators(spec):
        names = [actuator.name for actuator in spec.actuators]
        remark = "every independent joint with one degree of freedom is read back with a torque actuator"
        notes.add("URDF does not support actuators", *names, remark=remark)
    for geom in spec.geoms:
        if geom.shape in SHAPE_NAMES:
            notes.add(f"{SHAPE_NAMES[geom.shape]} are omitted, since URDF does not support them", geom.name)
            continue
        if (geom.group, geom.mask) != (1, 1):
            notes.add("URDF does not support collision groups", geom.name)
        if geom.priority:
            notes.add("URDF does not support surface priorities", geom.name)
        has_spring = np.isfinite([geom.stiffness, geom.damping]).all()
        time = geom.damping / geom.stiffness if has_spring else DEFAULT_RECOVERY_TIME
        if geom.recovery_time != time:
            notes.add("URDF does not support contact recovery times", geom.name)
        if geom.softness != DEFAULT_SOFTNESS:
            notes.add("URDF does not support contact softness", geom.name)
    for pairs, what in (
        (spec.excluded_pairs, "excluded collision pairs"),
        (spec.explicit_pairs, "explicit collision pairs"),
        (spec.pair_friction, "friction of pairs of shapes"),
    ):
        if pairs:
            notes.add(f"URDF does not support {what}", *(f"{a} and {b}" for a, b in pairs))
    if not np.array_equal(spec.gravity, _DEFAULTS.gravity):
        gravity = " ".join(f"{g:g}" for g in spec.gravity)
        notes.add(f"URDF does not support gravity; that of the model is {gravity} m/s²")
    if spec.timestep != _DEFAULTS.timestep:
        notes.add(f"URDF does not support a time step; that of the model is {spec.timestep:g} s")
    if spec.home:
        notes.add("URDF does not support a home configuration; that of the model is not zero for joints", *spec.home)


class _UrdfWriter:
    def __init__(self, spec: ModelSpec, out: Path, notes: Notes):
        self.spec, self.out, self.notes = spec, out, notes
        self.joint_names = UniqueNames(notes, (body.joint.name for body in spec.bodies))

    def root(self) -> XmlElement:
        """Root element of the file."""
        spec = self.spec
        robot = ElementTree.Element("robot", {"name": spec.name})
        links = {}
        free_root = _free_root(spec)
        if free_root is None:
            links[WORLD_NAME] = add_element(robot, "link", name=WORLD_NAME)
        else:
            self._note_free_root(free_root)
        for body in spec.bodies:
            links[body.name] = self._add_link(robot, body)
            if body is not free_root:
                self._add_joint(robot, body)
        self._add_frames(robot, links)
        self._add_shapes(links)
        return robot

    def _note_free_root(self, body: BodySpec) -> None:
        remedy = f"load the file with {option_hint('base', 'free')}"
        self.notes.add("the root link has no joint", body.name, remark=remedy)
        joint = body.joint.name
        if joint != FREE_ROOT_JOINT:
            self.notes.add(f"the free joint is read back as {FREE_ROOT_JOINT!r}", joint)

    def _add_link(self, robot: XmlElement, body: BodySpec) -> XmlElement:
        link, inertial = add_element(robot, "link", name=body.name), body.inertial
        if inertial.mass or inertial.inertia.any():
            element = add_element(link, "inertial")
            add_element(element, "origin", xyz=inertial.com)
            add_element(element, "mass", value=inertial.mass)
            add_element(element, "inertia", **dict(zip(INERTIA_ENTRIES, inertial.entries(), strict=True)))
        return link

    def _add_joint(self, robot: XmlElement, body: BodySpec) -> None:
        joint = body.joint
        unlimited = np.isneginf(joint.lower) and np.isposinf(joint.upper)
        kind = "continuous" if joint.kind is JointKind.REVOLUTE and unlimited else _TYPES[joint.kind]
        element = add_element(robot, "joint", name=joint.name, type=kind)
        add_element(element, "parent", link=body.parent)
        add_element(element, "child", link=body.name)
        _add_origin(element, body.placement)
        if joint.kind.elementary_type.joint.has_axis:
            add_element(element, "axis", xyz=joint.axis)
        _add_dof_attributes(element, joint, has_range=kind in ("revolute", "prismatic"))
        if joint.mimic:
            ratio, offset = joint.mimic_ratio, joint.mimic_offset
            add_element(element, "mimic", joint=joint.mimic, multiplier=ratio, offset=offset)

    def _add_frames(self, robot: XmlElement, links: dict[str, XmlElement]) -> None:
        names = UniqueNames(self.notes, [WORLD_NAME, *links])
        for frame in self.spec.frames:
            if frame.body not in links:
                self.notes.add("frames of the world are omitted, since the file has no world link", frame.name)
                continue
            name = names.claim(frame.name, "frame")
            add_element(robot, "link", name=name)
            joint = add_element(robot, "joint", name=self.joint_names.make_unique(f"{name}_joint"), type="fixed")
            add_element(joint, "parent", link=frame.body)
            add_element(joint, "child", link=name)
            _add_origin(joint, frame.placement)

    def _add_shapes(self, links: dict[str, XmlElement]) -> None:
        names = UniqueNames(self.notes)
        for geom in self.spec.geoms:
            if geom.body not in links:
                self.notes.add("shapes of the world are omitted, since the file has no world link", geom.name)
                continue
            shape = self._shape(geom)
            if shape is None:
                continue
            if geom.shape in (Shape.CAPSULE, Shape.PLANE):
                reason = "capsules and planes are extensions of URDF that other programs may ignore"
                self.notes.add(reason, geom.name)
            tag, attributes = shape
            collision = add_element(links[geom.body], "collision", name=names.claim(geom.name, "shape"))
            _add_origin(collision, geom.placement)
            add_element(add_element(collision, "geometry"), tag, **attributes)
            _add_contact(collision, geom)

    def _shape(self, geom: GeomSpec) -> tuple[str, dict] | None:
        size = geom.size
        match geom.shape:
            case Shape.BOX:
                return "box", {"size": 2.0 * size}
            case Shape.SPHERE:
                return "sphere", {"radius": size[0]}
            case Shape.CYLINDER | Shape.CAPSULE:
                return geom.shape.value, {"radius": size[0], "length": 2.0 * size[1]}
            case Shape.PLANE:
                return "plane", {"normal": (0.0, 0.0, 1.0)}
            case Shape.MESH:
                file = mesh_reference(geom.mesh_file, geom.name, self.out, self.notes)
                scale = size if (size != 1.0).any() else None
                return None if file is None else ("mesh", {"filename": file, "scale": scale})
            case _:
                return None


def _free_root(spec: ModelSpec) -> BodySpec | None:
    """The body that can be a root link without a joint: the only root body, on a free joint with default parameters."""
    roots = [body for body in spec.bodies if body.parent == WORLD_NAME]
    body, joint = roots[0], roots[0].joint
    has_placement = np.any(body.placement.p) or not np.array_equal(body.placement.R, np.eye(3))
    has_forces = any(getattr(joint, parameter) != getattr(JointSpec, parameter) for parameter in DOF_ATTRIBUTES)
    can_omit_joint = len(roots) == 1 and joint.kind is JointKind.FREE and not has_placement and not has_forces
    return body if can_omit_joint else None


def _add_origin(element: XmlElement, X: Pose) -> None:
    rotated = not np.array_equal(X.R, np.eye(3))
    if rotated or np.any(X.p):
        add_element(element, "origin", xyz=np.asarray(X.p), rpy=roll_pitch_yaw(X.R) if rotated else None)


def _add_contact(collision: XmlElement, geom: GeomSpec) -> None:
    """Add the surface parameters of a shape that differ from the defaults."""
    defaults = {"restitution": 0.0, "stiffness": UNSPECIFIED, "damping": UNSPECIFIED}
    if not geom.is_friction_specified:
        defaults["friction"] = DEFAULT_FRICTION
    values = {tag: getattr(geom, field) for tag, field in FIELDS.items() if getattr(geom, field) != defaults.get(field)}
    if values:
        contact = add_element(collision, "contact")
        for tag, value in values.items():
            add_element(contact, tag, value=value)


def _add_dof_attributes(element: XmlElement, joint: JointSpec, has_range: bool) -> None:
    """Add the elements of the attributes that differ from their defaults, and `<limit>` to joints with a range.

    The standard requires effort and velocity in `<limit>`, and not every parser accepts `inf`.
    """
    for tag in dict.fromkeys(tag for tag, _ in DOF_ATTRIBUTES.values()):
        parameters = {name: attribute for name, (at, attribute) in DOF_ATTRIBUTES.items() if at == tag}
        has_limit = tag == "limit" and has_range
        written = [name for name in parameters if has_limit or getattr(joint, name) != getattr(JointSpec, name)]
        if not written:
            continue
        values = {"lower": joint.lower, "upper": joint.upper} if has_limit else {}
        values |= {parameters[name]: getattr(joint, name) for name in written}
        if tag == "limit":
            values["velocity"] = MAX_NUMBER
        add_element(element, tag, **{name: np.clip(value, -MAX_NUMBER, MAX_NUMBER) for name, value in values.items()})
