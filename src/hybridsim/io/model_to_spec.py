"""Conversion of a `Model` back to a `ModelSpec`, for the file writers.

Files have one value per joint where a model has one per degree of freedom, and no attributes for some parameters. Both
cases are noted here because they apply to every format.
"""

from collections.abc import Collection

import numpy as np

from hybridsim.core.errors import Problem
from hybridsim.io.model_rows import entry, inertial_of, is_rotation, pose_of, row
from hybridsim.io.write_document import Notes, unwritable_error
from hybridsim.model.assemble import assemble
from hybridsim.model.coordinates import zero_configuration
from hybridsim.model.geometry import Shape
from hybridsim.model.joints import ElementaryJointType
from hybridsim.model.model import Model
from hybridsim.model.specs import (
    ONE_DOF_JOINTS,
    WORLD_NAME,
    ActuatorSpec,
    BodySpec,
    FrameSpec,
    GeomSpec,
    JointKind,
    JointSpec,
    ModelSpec,
)
from hybridsim.model.topology import WORLD, Topology
from hybridsim.model.validate import inertial_problems
from hybridsim.spatial.transform import Pose

SHAPE_NAMES = {
    Shape.ELLIPSOID: "ellipsoids",
    Shape.POINTS: "contact points",
    Shape.HEIGHTFIELD: "height fields",
    Shape.POLYGON: "polygons",
    Shape.ELLIPSE: "ellipses",
}
"""Shapes that not every format supports, as named in notes."""

_PER_DOF = ("armature", "stiffness", "damping", "friction", "lower", "upper", "effort_limit")


def spec_of(model: Model, notes: Notes) -> ModelSpec:
    """Description of a model; parameters that a `ModelSpec` cannot represent are noted.

    Raises:
        ModelError: the model has invalid values, such as an orientation that is not a rotation matrix.
    """
    topology, geometry = model.topology, model.geometry
    spec = ModelSpec(
        topology.name,
        bodies=[_body(model, i, notes) for i in range(topology.nb)],
        geoms=[_geom(model, k) for k in range(len(geometry.infos))],
        frames=[_frame(model, k) for k in range(len(topology.frame_names))],
        actuators=[_actuator(model, k) for k in range(model.nu)],
        is_unactuated=model.nu == 0,
        gravity=np.asarray(model.gravity, dtype=float),
        home=_home(model),
        timestep=model.timestep,
        excluded_pairs=list(geometry.excluded_pairs),
        explicit_pairs=list(geometry.explicit_pairs),
        pair_friction={pair: entry(geometry.pair_friction, k) for k, pair in enumerate(geometry.friction_pairs)},
    )
    _note_unsupported_parameters(model, spec, notes)
    _note_order(topology, notes)
    return spec


def _body(model: Model, i: int, notes: Notes) -> BodySpec:
    topology = model.topology
    name, parent = topology.body_names[i], _body_name(topology, topology.parents[i])
    placement = _pose(model.joint.placement, i, f"joint {topology.joint_names[i]!r}")
    return BodySpec(name, parent, _joint(model, i, notes), placement, inertial_of(model, i))


def _joint(model: Model, i: int, notes: Notes) -> JointSpec:
    topology, joint = model.topology, model.joint
    name, kind, master = topology.joint_names[i], topology.joint_types[i], topology.masters[i]
    spec = JointSpec(
        name,
        JointKind(kind.value),
        axis=row(joint.axis, i),
        anchor=row(joint.anchor, i),
        mimic=topology.joint_names[master] if master >= 0 else "",
        mimic_ratio=entry(joint.mimic_ratio, i),
        mimic_offset=entry(joint.mimic_offset, i),
    )
    dofs, coordinates = slice(*topology.tree_v_slices[i]), slice(*topology.tree_q_slices[i])
    for field in _PER_DOF if kind.nv else ():
        values = row(getattr(joint, field), dofs)
        equal = bool(np.all(values == values[0]))
        setattr(spec, field, float(values[0] if equal else values.mean()))
        if not equal:
            notes.add(f"{field} differs between the degrees of freedom of joints", name, remark="the mean is written")
    if spec.lower > spec.upper:
        notes.add("lower limits exceed the upper limits", name, remark="other programs may reject this")
    if kind.joint.has_spring and not kind.joint.is_euclidean:
        spec.rest = row(joint.rest, coordinates)
    elif kind.nq == 1:
        spec.rest = float(row(joint.rest, coordinates)[0])
    return spec


def _geom(model: Model, k: int) -> GeomSpec:
    geometry = model.geometry
    info = geometry.infos[k]
    body = _body_name(model.topology, info.body)
    return GeomSpec(
        info.name,
        body,
        info.shape,
        row(geometry.size, k),
        _pose(geometry.placement, k, f"shape {info.name!r}"),
        friction=entry(geometry.friction, k),
        mesh_file=info.mesh_file,
        group=info.group,
        mask=info.mask,
        link=info.link if info.link != body else "",
        restitution=entry(geometry.restitution, k),
        recovery_time=entry(geometry.recovery_time, k),
        softness=entry(geometry.softness, k),
        stiffness=entry(geometry.stiffness, k),
        damping=entry(geometry.damping, k),
        is_friction_specified=info.is_friction_specified,
        priority=info.priority,
        data=np.array(geometry.data[info.data_index], dtype=float) if info.data_index >= 0 else None,
        faces=info.faces,
    )


def _frame(model: Model, k: int) -> FrameSpec:
    topology = model.topology
    name, body = topology.frame_names[k], topology.frame_bodies[k]
    return FrameSpec(name, _body_name(topology, body), _pose(model.frame_placement, k, f"frame {name!r}"))


def _actuator(model: Model, k: int) -> ActuatorSpec:
    a = model.actuator
    constant, per_length, per_speed = map(float, row(a.bias, k))
    return ActuatorSpec(
        a.names[k],
        model.topology.joint_names[a.joints[k]],
        gear=entry(a.gear, k),
        gain=entry(a.gain, k),
        bias=(constant, per_length, per_speed),
        command_range=(entry(a.command_lower, k), entry(a.command_upper, k)),
        force_range=(entry(a.force_lower, k), entry(a.force_upper, k)),
    )


def _home(model: Model) -> dict[str, np.ndarray | float]:
    """Home coordinates of the joints that are not at zero."""
    topology, zero = model.topology, zero_configuration(model.topology)
    home: dict[str, np.ndarray | float] = {}
    for i, name in enumerate(topology.joint_names):
        coordinates = slice(*topology.q_slices[i])
        q = row(model.home, coordinates)
        if topology.masters[i] < 0 and np.any(q != zero[coordinates]):
            home[name] = q
    return home


def _pose(poses: Pose, i: int, what: str) -> Pose:
    pose = pose_of(poses, i)
    if not is_rotation(pose.R):
        fix = "R must be orthonormal; update it, for example, with Pose.retract"
        raise unwritable_error("write.rotation", f"orientation of {what} is not a rotation matrix", fix)
    return pose


def _body_name(topology: Topology, index: int) -> str:
    return WORLD_NAME if index == WORLD else topology.body_names[index]


def require_joint_types(spec: ModelSpec, supported: Collection[JointKind], format_name: str) -> None:
    """Raise if a file format does not support the type of a joint."""
    for joint in (body.joint for body in spec.bodies):
        if joint.kind not in supported:
            message = f"joint {joint.name!r} is {joint.kind}, which {format_name} does not support"
            raise unwritable_error("write.joint", message, f"its joint types are {', '.join(supported)}")


def has_default_actuators(spec: ModelSpec) -> bool:
    """Whether the actuators are the default ones of `ModelSpec.actuators`."""
    joints = [body.joint for body in spec.bodies if body.joint.kind in ONE_DOF_JOINTS and not body.joint.mimic]
    return spec.actuators == [ActuatorSpec(joint.name, joint.name) for joint in joints]


def inconsistent_inertials(spec: ModelSpec) -> list[tuple[BodySpec, Problem]]:
    """Bodies with physically inconsistent mass properties, each with its problem."""
    return [
        (body, problem)
        for body in spec.bodies
        for problem in inertial_problems(body.name, body.inertial, body.inertial_source)
        # harmless if the body is fixed to another one; a valid model has no such body on a movable joint
        if problem.code != "mass.zero_with_inertia"
    ]


def _note_unsupported_parameters(model: Model, spec: ModelSpec, notes: Notes) -> None:
    """Note parameters of joint friction and limit stops that file formats do not support."""
    default = assemble(spec).joint  # with default limit stops
    names = _joint_of_each_dof(model.topology)

    def values(field: str) -> np.ndarray:
        return np.asarray(getattr(model.joint, field), dtype=float)

    def note(parameter: str, mask: np.ndarray) -> None:
        if mask.any():
            affected = [name for name, is_affected in zip(names, mask, strict=True) if is_affected]
            notes.add(f"{parameter} is omitted, since the format does not support it", *affected)

    has_friction = (values("friction") != 0.0) | (values("stribeck_friction") != 0.0)
    note("Stribeck friction", values("stribeck_friction") != 0.0)
    limited = np.isfinite(values("lower")) | np.isfinite(values("upper"))
    for field, text, mask in (
        ("friction_width", "friction width", has_friction),
        ("limit_stiffness", "stiffness of the limit stops", limited),
        ("limit_damping", "damping of the limit stops", limited),
    ):
        differs = ~np.isclose(values(field), getattr(default, field), rtol=1e-9, atol=0.0)
        note(text, mask & differs)


def _joint_of_each_dof(topology: Topology) -> list[str]:
    pairs = zip(topology.joint_names, topology.joint_types, strict=True)
    return [name for name, kind in pairs for _ in range(kind.nv)]


def _note_order(topology: Topology, notes: Notes) -> None:
    children: dict[int, list[int]] = {}
    for body, parent in enumerate(topology.parents):
        children.setdefault(parent, []).append(body)
    order, stack = [], children.get(WORLD, [])[::-1]
    while stack:
        order.append(stack.pop())
        stack += children.get(order[-1], [])[::-1]
    if order != sorted(order):
        names = [topology.joint_names[i] for i in order if topology.joint_types[i] is not ElementaryJointType.FIXED]
        notes.add("joints are read back depth first, which changes the order of the coordinates", *names)
