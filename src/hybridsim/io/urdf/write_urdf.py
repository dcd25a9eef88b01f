"""Writing a model as a new URDF file.

A URDF joint turns its link about the link's own origin. A body that turns about another point is written with
its frame moved there; its own frame lives on as a fixed link without mass.
"""

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from hybridsim.core.errors import ModelError
from hybridsim.io.attributes import MAX_NUMBER
from hybridsim.io.load_options import setting
from hybridsim.io.model_to_spec import SCALAR_JOINTS, SHAPE_NAMES, are_direct, impossible_inertials, spec_of
from hybridsim.io.urdf.read_contact import FIELDS
from hybridsim.io.urdf.read_elements import rpy
from hybridsim.io.urdf.read_lint import INERTIA_ENTRIES
from hybridsim.io.write_document import Element, Names, Notes, add, mesh_reference, write_document
from hybridsim.model.geometry import DEFAULT_FRICTION, DEFAULT_RECOVERY_TIME, DEFAULT_SOFTNESS, UNSPECIFIED, Shape
from hybridsim.model.inertial import Inertial
from hybridsim.model.model import Model
from hybridsim.model.specs import WORLD_NAME, BodySpec, FrameSpec, GeomSpec, JointKind, JointSpec, ModelSpec
from hybridsim.spatial.transform import Pose

FREE_ROOT_JOINT = "root"
"""What the reader calls the free joint of a root link."""

_TYPES = {
    JointKind.FIXED: "fixed",
    JointKind.REVOLUTE: "revolute",
    JointKind.PRISMATIC: "prismatic",
    JointKind.SPHERICAL: "spherical",
    JointKind.FREE: "floating",
}
_EMPTY = ModelSpec("")


def write_urdf(model: Model, out: str | Path) -> list[str]:
    """Write a model as a URDF file.

    A model that is one free mechanism gets a root link without a joint, as is usual for mobile robots;
    otherwise the root is a link called `world`.

    Args:
        model: the model.
        out: the file; replaced as a whole if it exists.

    Returns:
        What the file could not hold, or holds in another form, by name.

    Raises:
        ModelError: the model has numbers that no file can hold, or the file cannot be written.
    """
    notes = Notes()
    spec = spec_of(model, notes)
    _judge_inertials(spec, notes)
    _note_lost(spec, notes)
    write_document(_UrdfWriter(_turning_about_origins(spec, notes), Path(out), notes).root(), spec.name, out)
    return notes.texts()


def _judge_inertials(spec: ModelSpec, notes: Notes) -> None:
    """Refuse masses that no reader takes, and note inertias that only a lenient one does."""
    found = impossible_inertials(spec)
    fatal = [problem for _, problem in found if not problem.code.startswith("inertia.")]
    if fatal:
        raise ModelError(fatal)
    for body, problem in found:
        reason = f"impossible inertias are written as they are; read the file with {setting('lenient', [problem.code])}"
        notes.add(reason, body.name)


def _turning_about_origins(spec: ModelSpec, notes: Notes) -> ModelSpec:
    """The same mechanism with every body's frame at the point about which it turns."""
    shifts = {WORLD_NAME: np.zeros(3)}
    for body in spec.bodies:
        turns = body.joint.kind in (JointKind.REVOLUTE, JointKind.SPHERICAL)
        shifts[body.name] = np.asarray(body.joint.anchor) if turns else np.zeros(3)
    bodies, frames = [], []
    names = Names(notes, [*shifts, *(frame.name for frame in spec.frames)])
    for body in spec.bodies:
        shift, inertial = shifts[body.name], body.inertial
        X_PJ = body.placement
        placement = Pose(X_PJ.R, X_PJ.p - shifts[body.parent] + X_PJ.R @ shift)
        com = inertial.com - shift if inertial.mass else inertial.com
        inertial = Inertial(inertial.mass, com, inertial.inertia)
        bodies.append(replace(body, placement=placement, inertial=inertial))
        # nobody asks where the massless parts of a compound joint are
        if shift.any() and inertial.mass:
            frame = FrameSpec(names.invent(f"{body.name}_frame"), body.name)
            frames.append(frame)
            notes.add(
                "links are moved to the point about which they turn; their own frames are fixed links",
                frame.name,
            )
    moved = [replace(part, placement=_shifted(part, shifts)) for part in spec.geoms]
    frames = [replace(part, placement=_shifted(part, shifts)) for part in [*spec.frames, *frames]]
    return replace(spec, bodies=bodies, geoms=moved, frames=frames)


def _shifted(part: GeomSpec | FrameSpec, shifts: dict[str, np.ndarray]) -> Pose:
    return Pose(part.placement.R, part.placement.p - shifts[part.body])


def _note_lost(spec: ModelSpec, notes: Notes) -> None:
    """What URDF has no place for."""
    for joint in (body.joint for body in spec.bodies):
        if joint.armature:
            notes.add("armature is not part of URDF", joint.name)
        if joint.stiffness:
            notes.add("springs are not part of URDF", joint.name)
        if joint.kind is JointKind.SPHERICAL:
            notes.add("spherical joints are an extension of URDF that other programs may refuse", joint.name)
    if not are_direct(spec):
        names = [actuator.name for actuator in spec.actuators]
        reason = "actuators are not part of URDF; every joint is read back with a direct torque or force"
        notes.add(reason, *names)
    for geom in spec.geoms:
        if geom.shape in SHAPE_NAMES:
            notes.add(f"{SHAPE_NAMES[geom.shape]} are left out, since URDF has none", geom.name)
            continue
        if (geom.group, geom.mask) != (1, 1):
            notes.add("collision groups are not part of URDF", geom.name)
        if geom.priority:
            notes.add("priorities of surfaces are not part of URDF", geom.name)
        has_spring = np.isfinite([geom.stiffness, geom.damping]).all()
        time = geom.damping / geom.stiffness if has_spring else DEFAULT_RECOVERY_TIME
        if geom.recovery_time != time:
            notes.add("recovery times of contacts are not part of URDF", geom.name)
        if geom.softness != DEFAULT_SOFTNESS:
            notes.add("softness of contacts is not part of URDF", geom.name)
    for pairs, what in (
        (spec.excluded_pairs, "excluded collision pairs are"),
        (spec.explicit_pairs, "explicit collision pairs are"),
        (spec.pair_friction, "friction of pairs of shapes is"),
    ):
        if pairs:
            notes.add(f"{what} not part of URDF", *(f"{a} and {b}" for a, b in pairs))
    if not np.array_equal(spec.gravity, _EMPTY.gravity):
        notes.add(f"gravity is not part of URDF; it was {' '.join(f'{g:g}' for g in spec.gravity)} m/s²")
    if spec.timestep != _EMPTY.timestep:
        notes.add(f"the time step is not part of URDF; it was {spec.timestep:g} s")
    if spec.home:
        notes.add("the starting configuration is not part of URDF; it is not zero for joints", *spec.home)


class _UrdfWriter:
    def __init__(self, spec: ModelSpec, out: Path, notes: Notes):
        self.spec, self.out, self.notes = spec, out, notes
        self.joint_names = Names(notes, (body.joint.name for body in spec.bodies))

    def root(self) -> Element:
        """The whole file."""
        spec = self.spec
        robot = ElementTree.Element("robot", {"name": spec.name})
        links = {}
        free_root = _free_root(spec)
        if free_root is None:
            links[WORLD_NAME] = add(robot, "link", name=WORLD_NAME)
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
        self.notes.add(f"the root link has no joint; read the file with {setting('base', 'free')}", body.name)
        joint = body.joint.name
        if joint != FREE_ROOT_JOINT:
            self.notes.add(f"the free joint is read back as {FREE_ROOT_JOINT!r}", joint)

    def _add_link(self, robot: Element, body: BodySpec) -> Element:
        link, inertial = add(robot, "link", name=body.name), body.inertial
        if inertial.mass or inertial.inertia.any():
            element = add(link, "inertial")
            add(element, "origin", xyz=inertial.com)
            add(element, "mass", value=inertial.mass)
            add(element, "inertia", **dict(zip(INERTIA_ENTRIES, inertial.entries(), strict=True)))
        return link

    def _add_joint(self, robot: Element, body: BodySpec) -> None:
        joint = body.joint
        unlimited = np.isneginf(joint.lower) and np.isposinf(joint.upper)
        kind = "continuous" if joint.kind is JointKind.REVOLUTE and unlimited else _TYPES[joint.kind]
        element = add(robot, "joint", name=joint.name, type=kind)
        add(element, "parent", link=body.parent)
        add(element, "child", link=body.name)
        _add_origin(element, body.placement)
        if joint.kind in SCALAR_JOINTS:
            add(element, "axis", xyz=joint.axis)
        if kind in ("revolute", "prismatic") or np.isfinite(joint.effort_limit):
            _add_limit(element, joint, ranged=kind in ("revolute", "prismatic"))
        if joint.damping or joint.friction:
            add(element, "dynamics", damping=joint.damping, friction=joint.friction)
        if joint.mimic:
            ratio, offset = joint.mimic_ratio, joint.mimic_offset
            add(element, "mimic", joint=joint.mimic, multiplier=ratio, offset=offset)

    def _add_frames(self, robot: Element, links: dict[str, Element]) -> None:
        names = Names(self.notes, [WORLD_NAME, *links])
        for frame in self.spec.frames:
            if frame.body not in links:
                self.notes.add("frames of the world are left out, since the file has no world", frame.name)
                continue
            name = names.claim(frame.name, "frame")
            add(robot, "link", name=name)
            joint = add(robot, "joint", name=self.joint_names.invent(f"{name}_joint"), type="fixed")
            add(joint, "parent", link=frame.body)
            add(joint, "child", link=name)
            _add_origin(joint, frame.placement)

    def _add_shapes(self, links: dict[str, Element]) -> None:
        names = Names(self.notes)
        for geom in self.spec.geoms:
            if geom.body not in links:
                self.notes.add("shapes of the world are left out, since the file has no world", geom.name)
                continue
            shape = self._shape(geom)
            if shape is None:
                continue
            if geom.shape in (Shape.CAPSULE, Shape.PLANE):
                reason = "capsules and planes are extensions of URDF that other programs may ignore"
                self.notes.add(reason, geom.name)
            tag, attributes = shape
            collision = add(links[geom.body], "collision", name=names.claim(geom.name, "shape"))
            _add_origin(collision, geom.placement)
            add(add(collision, "geometry"), tag, **attributes)
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
    """The body that can be a root link without a joint: the only one on the world, and simply free."""
    roots = [body for body in spec.bodies if body.parent == WORLD_NAME]
    body, joint = roots[0], roots[0].joint
    placed = np.any(body.placement.p) or not np.array_equal(body.placement.R, np.eye(3))
    resisted = joint.damping or joint.friction or np.isfinite(joint.effort_limit)
    simple = len(roots) == 1 and joint.kind is JointKind.FREE and not placed and not resisted
    return body if simple else None


def _add_origin(element: Element, X: Pose) -> None:
    turned = not np.array_equal(X.R, np.eye(3))
    if turned or np.any(X.p):
        add(element, "origin", xyz=np.asarray(X.p), rpy=rpy(X.R) if turned else None)


def _add_contact(collision: Element, geom: GeomSpec) -> None:
    """Surface of a shape, where it is not as usual."""
    usual = {"restitution": 0.0, "stiffness": UNSPECIFIED, "damping": UNSPECIFIED}
    if not geom.has_friction:
        usual["friction"] = DEFAULT_FRICTION
    numbers = {tag: getattr(geom, field) for tag, field in FIELDS.items() if getattr(geom, field) != usual.get(field)}
    if numbers:
        contact = add(collision, "contact")
        for tag, number in numbers.items():
            add(contact, tag, value=number)


def _add_limit(element: Element, joint: JointSpec, ranged: bool) -> None:
    """Limits; the standard asks for effort and velocity, and not all readers understand `inf`."""
    add(
        element,
        "limit",
        lower=max(joint.lower, -MAX_NUMBER) if ranged else None,
        upper=min(joint.upper, MAX_NUMBER) if ranged else None,
        effort=min(joint.effort_limit, MAX_NUMBER),
        velocity=MAX_NUMBER,
    )
