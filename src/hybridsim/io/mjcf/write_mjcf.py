"""MJCF writer; MuJoCo compiles the file to the same mechanism.

MuJoCo requires mass and inertia of every moving body. Massless bodies of compound joints become additional joints of
the next body, as is usual in MJCF; other massless bodies get negligible mass and inertia, with a note.
"""

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from hybridsim.core.errors import ModelError
from hybridsim.io.mjcf.read_convert import JOINT_KINDS
from hybridsim.io.mjcf.read_poses import rotation_matrix
from hybridsim.io.mjcf.write_elements import (
    MIN_WRITTEN_INERTIAL,
    actuator_element,
    body_chains,
    excluded_body_pairs,
    inertia_attributes,
    is_identity,
    mujoco_inertia,
    nonzero_or_none,
    pose_attributes,
    quaternion,
    range_of,
)
from hybridsim.io.mjcf.write_shapes import (
    has_heights,
    heightfield_attributes,
    note_default_friction,
    pair_friction_attribute,
    placement_of,
    surface_attributes,
)
from hybridsim.io.model_to_spec import SHAPE_NAMES, inconsistent_inertials, require_joint_types, spec_of
from hybridsim.io.write_document import (
    Notes,
    UniqueNames,
    XmlElement,
    add_element,
    mesh_reference,
    unwritable_error,
    write_document,
)
from hybridsim.io.xml import MAX_DEPTH
from hybridsim.model.geometry import Shape
from hybridsim.model.model import Model
from hybridsim.model.specs import (
    ONE_DOF_JOINTS,
    WORLD_NAME,
    BodySpec,
    GeomSpec,
    JointKind,
    JointSpec,
    ModelSpec,
    identity_pose,
)
from hybridsim.spatial.transform import Pose

MESH_FORMATS = (".stl", ".obj", ".msh")
"""Mesh formats that MuJoCo supports."""

_TYPES = {kind: name for name, kind in JOINT_KINDS.items()}
_SIZES = {Shape.SPHERE: 1, Shape.CAPSULE: 2, Shape.CYLINDER: 2, Shape.BOX: 3, Shape.ELLIPSOID: 3}
"""Number of size parameters of a shape."""


def write_mjcf(model: Model, out: str | Path) -> list[str]:
    """Write a model as an MJCF file; see `io.convert.convert`, which selects the format by the file extension.

    Raises:
        ModelError: MJCF cannot represent the model.
        FileError: the file cannot be written.
    """
    notes = Notes()
    spec = spec_of(model, notes)
    require_joint_types(spec, (JointKind.FIXED, *_TYPES), "MJCF")
    _require_representable(spec)
    write_document(_MjcfWriter(spec, Path(out), notes).root(), spec.name, out)
    return notes.texts()


def _require_representable(spec: ModelSpec) -> None:
    problems = [problem for _, problem in inconsistent_inertials(spec)]
    if problems:
        raise ModelError(replace(p, fix=f"{p.fix}; MuJoCo always rejects it") for p in problems)
    depths = {WORLD_NAME: 0}
    for body in spec.bodies:
        depths[body.name] = depths[body.parent] + 1
    if max(depths.values()) > MAX_DEPTH - 4:
        message = f"the tree is {max(depths.values())} bodies deep, too deep for nested MJCF elements"
        raise unwritable_error("write.depth", message, "write URDF, whose links are not nested")


class _MjcfWriter:
    def __init__(self, spec: ModelSpec, out: Path, notes: Notes):
        self.spec, self.out, self.notes = spec, out, notes
        self.static = {WORLD_NAME}
        for body in spec.bodies:
            if body.joint.kind is JointKind.FIXED and body.parent in self.static:
                self.static.add(body.name)
        self.chains = body_chains(spec)
        self.shape_names: dict[str, str] = {}
        self.meshes: dict[tuple[str, tuple[float, ...]], str] = {}
        self.heightfield_names = UniqueNames(notes)

    def root(self) -> XmlElement:
        """Root element of the file."""
        spec = self.spec
        mujoco = ElementTree.Element("mujoco", {"model": spec.name})
        add_element(mujoco, "compiler", angle="radian", autolimits="true", inertiafromgeom="false")
        add_element(mujoco, "option", timestep=spec.timestep, gravity=spec.gravity)
        assets = add_element(mujoco, "asset")
        world = add_element(mujoco, "worldbody")
        elements = {WORLD_NAME: world}
        for chain in self.chains:
            elements[chain[-1].name] = self._add_body(elements[chain[0].parent], chain)
        self._add_sites(elements)
        self._add_shapes(elements, assets)
        self._add_contacts(add_element(mujoco, "contact"), elements)
        self._add_mimics(add_element(mujoco, "equality"))
        self._add_actuators(add_element(mujoco, "actuator"))
        self._add_home(add_element(mujoco, "keyframe"), world)
        for section in [section for section in mujoco if not len(section) and not section.attrib]:
            mujoco.remove(section)
        return mujoco

    def _add_body(self, parent: XmlElement, chain: list[BodySpec]) -> XmlElement:
        body = chain[-1]
        placement = identity_pose()
        for part in chain:
            placement = placement @ part.placement
        if body.joint.kind is JointKind.FREE:
            placement = placement @ self._free_home(body)
        element = add_element(parent, "body", name=body.name, **pose_attributes(placement))
        for k, part in enumerate(chain):
            # MJCF specifies axes and anchors in the frame of the body
            X_JB = identity_pose()
            for later in chain[k + 1 :]:
                X_JB = X_JB @ later.placement
            self._add_joint(element, part, X_JB)
            if part is not body and part.name != (read_back := f"{body.name}:{part.joint.name}"):
                self.notes.add(f"massless body {part.name!r} is read back as {read_back!r}")
        self._add_inertial(element, body)
        return element

    def _free_home(self, body: BodySpec) -> Pose:
        if body.joint.name not in self.spec.home:
            return identity_pose()
        q = np.asarray(self.spec.home[body.joint.name])
        return Pose(rotation_matrix(q[3:]), q[:3])

    def _add_joint(self, element: XmlElement, body: BodySpec, X_JB: Pose) -> None:
        joint = body.joint
        if joint.kind is JointKind.FIXED:
            if joint.name != f"{body.name}_fixed":
                self.notes.add("MJCF does not support names of fixed joints", joint.name)
            return
        if joint.kind not in ONE_DOF_JOINTS and np.isfinite(joint.effort_limit):
            self.notes.add("MJCF does not support effort limits of ball and free joints", joint.name)
        attributes = {
            field: getattr(joint, name) or None
            for field, name in (
                ("armature", "armature"),
                ("damping", "damping"),
                ("frictionloss", "friction"),
            )
        }
        if joint.kind is JointKind.FREE:
            self._note_free(body)
            if not any(attributes.values()):
                add_element(element, "freejoint", name=joint.name)
                return
        else:
            attributes |= self._spring(joint)
            attributes["pos"] = nonzero_or_none(X_JB.inv_point(joint.anchor))
        if joint.kind in ONE_DOF_JOINTS:
            attributes["axis"] = X_JB.R.T @ joint.axis
            attributes["range"] = range_of(joint.lower, joint.upper)
            attributes["actuatorfrcrange"] = range_of(-joint.effort_limit, joint.effort_limit)
        add_element(element, "joint", name=joint.name, type=_TYPES[joint.kind], **attributes)

    def _spring(self, joint: JointSpec) -> dict[str, float | None]:
        if joint.kind is JointKind.SPHERICAL:
            if joint.stiffness and not np.array_equal(joint.rest, [1.0, 0.0, 0.0, 0.0]):
                self.notes.add("MJCF does not support rest positions of ball joint springs", joint.name)
            return {"stiffness": joint.stiffness or None}
        return {"stiffness": joint.stiffness or None, "springref": float(joint.rest) or None}

    def _note_free(self, body: BodySpec) -> None:
        joint = body.joint
        if joint.stiffness:
            self.notes.add("springs of free joints are omitted", joint.name)
        if joint.friction:
            self.notes.add("MuJoCo applies friction of free joints along the world axes", joint.name)
        if not is_identity(body.placement):
            remark = "their coordinates are poses in the world"
            self.notes.add("MJCF does not support placements of free joints", joint.name, remark=remark)

    def _add_inertial(self, element: XmlElement, body: BodySpec) -> None:
        inertial = body.inertial
        moving = body.joint.kind is not JointKind.FIXED
        empty = inertial.mass == 0.0 and not inertial.inertia.any()
        if empty and (not moving or self._has_fixed_mass(body.name)):
            return
        mass = inertial.mass
        if moving and mass < MIN_WRITTEN_INERTIAL:
            mass = MIN_WRITTEN_INERTIAL
            self.notes.add(f"massless bodies get {mass:g} kg, since MuJoCo requires a positive mass", body.name)
        matrix, added = mujoco_inertia(inertial)
        if added and inertial.mass:
            self.notes.add(
                f"principal moments are increased by {added:.2g} kg·m², since MuJoCo requires positive moments that "
                "satisfy the triangle inequality",
                body.name,
            )
        add_element(element, "inertial", mass=mass, pos=inertial.com, **inertia_attributes(matrix))

    def _has_fixed_mass(self, name: str) -> bool:
        """Whether a body fixed to this one has mass."""
        fixed = [b for b in self.spec.bodies if b.parent == name and b.joint.kind is JointKind.FIXED]
        return any(body.inertial.mass > 0.0 or self._has_fixed_mass(body.name) for body in fixed)

    def _add_sites(self, elements: dict[str, XmlElement]) -> None:
        names = UniqueNames(self.notes)
        for frame in self.spec.frames:
            name = names.claim(frame.name, "frame")
            add_element(elements[frame.body], "site", name=name, **pose_attributes(frame.placement))

    def _add_shapes(self, elements: dict[str, XmlElement], assets: XmlElement) -> None:
        names, mesh_names = UniqueNames(self.notes), UniqueNames(self.notes)
        for geom in self.spec.geoms:
            size = self._size(geom, assets, mesh_names)
            if size is None:
                continue
            name = self.shape_names[geom.name] = names.claim(geom.name, "shape")
            add_element(
                elements[geom.body],
                "geom",
                name=name,
                type="hfield" if geom.shape is Shape.HEIGHTFIELD else geom.shape.value,
                **size,
                **pose_attributes(placement_of(geom)),
                **surface_attributes(geom, self.notes),
                contype=geom.group if geom.group != 1 else None,
                conaffinity=geom.mask if geom.mask != 1 else None,
            )
        note_default_friction(self.spec, self.notes)

    def _size(self, geom: GeomSpec, assets: XmlElement, mesh_names: UniqueNames) -> dict | None:
        """Size attribute of a shape; None, with a note, for a shape that MuJoCo does not accept."""
        if geom.shape is Shape.MESH:
            mesh = self._mesh(geom, assets, mesh_names)
            return None if mesh is None else {"mesh": mesh}
        if geom.shape is Shape.PLANE:
            if geom.body not in self.static:
                self.notes.add("planes on moving bodies are omitted, since MuJoCo does not support them", geom.name)
                return None
            # the last value is the spacing of the rendered grid and must not be zero
            return {"size": [*geom.size[:2], geom.size[2] or 1.0]}
        if has_heights(geom):
            name = self.heightfield_names.make_unique(geom.name)
            add_element(assets, "hfield", name=name, **heightfield_attributes(geom))
            self.notes.add("heights are rounded to single precision and relative to the minimum in MuJoCo", geom.name)
            return {"hfield": name}
        if geom.shape not in _SIZES:
            reason = "they have no extent" if geom.shape is Shape.HEIGHTFIELD else "MJCF does not support them"
            self.notes.add(f"{SHAPE_NAMES[geom.shape]} are omitted, since {reason}", geom.name)
            return None
        size = geom.size[: _SIZES[geom.shape]]
        if not (size > 0.0).all():
            self.notes.add("shapes without extent are omitted", geom.name)
            return None
        return {"size": size}

    def _mesh(self, geom: GeomSpec, assets: XmlElement, mesh_names: UniqueNames) -> str | None:
        if Path(geom.mesh_file).suffix.lower() not in MESH_FORMATS:
            reason = f"meshes are omitted, since MuJoCo supports only {', '.join(MESH_FORMATS)}"
            self.notes.add(reason, geom.name)
            return None
        file = mesh_reference(geom.mesh_file, geom.name, self.out, self.notes)
        if file is None:
            return None
        key = (file, tuple(geom.size.tolist()))
        if key not in self.meshes:
            self.meshes[key] = mesh_names.make_unique(Path(file).stem)
            scale = geom.size if (geom.size != 1.0).any() else None
            add_element(assets, "mesh", name=self.meshes[key], file=file, scale=scale)
        return self.meshes[key]

    def _add_contacts(self, contact: XmlElement, elements: dict[str, XmlElement]) -> None:
        for a, b in self.spec.explicit_pairs:
            if a in self.shape_names and b in self.shape_names:
                friction = pair_friction_attribute(self.spec, a, b, self.notes)
                add_element(contact, "pair", geom1=self.shape_names[a], geom2=self.shape_names[b], friction=friction)
            else:
                self.notes.add("pairs with an omitted shape are omitted", f"{a} and {b}")
        for a, b in self.spec.pair_friction:
            if not {(a, b), (b, a)}.intersection(self.spec.explicit_pairs):
                self.notes.add("friction of pairs that are not explicit collision pairs is omitted", f"{a} and {b}")
        for a, b in excluded_body_pairs(self.spec, elements, self.notes):
            add_element(contact, "exclude", body1=a, body2=b)

    def _add_mimics(self, equality: XmlElement) -> None:
        for joint in (body.joint for body in self.spec.bodies if body.joint.mimic):
            self.notes.add(
                "mimic joints are written as <equality>",
                joint.name,
                remark="MuJoCo treats it as a soft constraint, and they are read back as independent joints",
            )
            polynomial = (joint.mimic_offset, joint.mimic_ratio, 0.0, 0.0, 0.0)
            add_element(equality, "joint", joint1=joint.name, joint2=joint.mimic, polycoef=polynomial)

    def _add_actuators(self, actuators: XmlElement) -> None:
        names = UniqueNames(self.notes)
        for spec in self.spec.actuators:
            tag, parameters = actuator_element(spec)
            add_element(
                actuators,
                tag,
                name=names.claim(spec.name, "actuator"),
                joint=spec.joint,
                gear=spec.gear if spec.gear != 1.0 else None,
                **parameters,
                ctrlrange=range_of(*spec.command_range),
                forcerange=range_of(*spec.force_range),
            )

    def _add_home(self, keyframe: XmlElement, world: XmlElement) -> None:
        """Add the home configuration; MuJoCo orders coordinates as in the file."""
        if not self.spec.home:
            return
        joints = {body.joint.name: body for body in self.spec.bodies}
        order = [joints[e.attrib["name"]] for e in world.iter() if e.tag in ("joint", "freejoint")]
        add_element(keyframe, "key", name="home", qpos=np.concatenate([self._home_of(body) for body in order]))

    def _home_of(self, body: BodySpec) -> np.ndarray:
        joint, home = body.joint, self.spec.home
        if joint.kind is JointKind.FREE:
            q = np.asarray(home.get(joint.name, [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]))
            if is_identity(body.placement):
                return q
            X_WB = body.placement @ self._free_home(body)
            return np.concatenate([X_WB.p, quaternion(X_WB.R)])
        if joint.kind is JointKind.SPHERICAL:
            return np.asarray(home.get(joint.name, [1.0, 0.0, 0.0, 0.0]))
        if joint.mimic:
            return joint.mimic_ratio * np.atleast_1d(home.get(joint.mimic, 0.0)) + joint.mimic_offset
        return np.atleast_1d(home.get(joint.name, 0.0))
