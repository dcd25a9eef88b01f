"""A model back as the plain descriptions that it could have been built from, for the file writers.

Files give one number per joint where a model has one per degree of freedom, and leave some parameters to the
program that reads them; both are noted here, since it is the same for every format.
"""

import numpy as np

from hybridsim.core.errors import Problem
from hybridsim.io.model_rows import inertial_of, is_rotation, number, pose_of, row
from hybridsim.io.write_document import Notes, refuse
from hybridsim.model.assemble import assemble
from hybridsim.model.coordinates import neutral
from hybridsim.model.geometry import Shape
from hybridsim.model.joints import JointType
from hybridsim.model.model import Model
from hybridsim.model.specs import (
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

SCALAR_JOINTS = (JointKind.REVOLUTE, JointKind.PRISMATIC)

SHAPE_NAMES = {
    Shape.ELLIPSOID: "ellipsoids",
    Shape.POINTS: "contact points",
    Shape.HEIGHTFIELD: "height fields",
    Shape.POLYGON: "polygons",
    Shape.ELLIPSE: "ellipses",
}
"""Shapes that not every format has, as notes call them."""

_PER_DOF = ("armature", "stiffness", "damping", "friction", "lower", "upper", "effort_limit")


def spec_of(model: Model, notes: Notes) -> ModelSpec:
    """Description of a model; what a description has no place for is noted.

    Raises:
        ModelError: the model has numbers that no file should hold, such as an orientation that is none.
    """
    topology, geometry = model.topology, model.geometry
    spec = ModelSpec(
        topology.name,
        bodies=[_body(model, i, notes) for i in range(topology.nb)],
        geoms=[_geom(model, k) for k in range(len(geometry.infos))],
        frames=[_frame(model, k) for k in range(len(topology.frame_names))],
        actuators=[_actuator(model, k) for k in range(model.nu)],
        passive=model.nu == 0,
        gravity=np.asarray(model.gravity, dtype=float),
        home=_home(model),
        timestep=model.timestep,
        excluded_pairs=list(geometry.excluded_pairs),
        explicit_pairs=list(geometry.explicit_pairs),
        pair_friction={pair: number(geometry.pair_friction, k) for k, pair in enumerate(geometry.friction_pairs)},
    )
    _note_own_laws(model, spec, notes)
    _note_order(topology, notes)
    return spec


def _body(model: Model, i: int, notes: Notes) -> BodySpec:
    topology = model.topology
    name, parent = topology.body_names[i], _body_name(topology, topology.parents[i])
    placement = _pose(model.joint.placement, i, f"joint {topology.joint_names[i]!r}")
    return BodySpec(name, parent, _joint(model, i, notes), placement, inertial_of(model, i))


def _joint(model: Model, i: int, notes: Notes) -> JointSpec:
    topology, joint = model.topology, model.joint
    name, kind, master = topology.joint_names[i], topology.joint_types[i], topology.mimics[i]
    spec = JointSpec(
        name,
        JointKind(kind.value),
        axis=row(joint.axis, i),
        anchor=row(joint.anchor, i),
        mimic=topology.joint_names[master] if master >= 0 else "",
        mimic_ratio=number(joint.mimic_ratio, i),
        mimic_offset=number(joint.mimic_offset, i),
    )
    dofs, coordinates = slice(*topology.tree_v_slices[i]), slice(*topology.tree_q_slices[i])
    for field in _PER_DOF if kind.nv else ():
        values = row(getattr(joint, field), dofs)
        same = bool(np.all(values == values[0]))
        setattr(spec, field, float(values[0] if same else values.mean()))
        if not same:
            notes.add(f"{field} differs between the directions of a joint; the mean is written", name)
    if spec.lower > spec.upper:
        notes.add("the lower limit is above the upper one, which the file may not keep or a reader refuse", name)
    if kind is JointType.SPHERICAL:
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
        friction=number(geometry.friction, k),
        mesh_file=info.mesh_file,
        group=info.group,
        mask=info.mask,
        link=info.link if info.link != body else "",
        restitution=number(geometry.restitution, k),
        recovery_time=number(geometry.recovery_time, k),
        softness=number(geometry.softness, k),
        stiffness=number(geometry.stiffness, k),
        damping=number(geometry.damping, k),
        has_friction=info.has_friction,
        priority=info.priority,
        data=np.array(geometry.data[info.data], dtype=float) if info.data >= 0 else None,
        faces=info.faces,
    )


def _frame(model: Model, k: int) -> FrameSpec:
    topology = model.topology
    name, body = topology.frame_names[k], topology.frame_bodies[k]
    return FrameSpec(name, _body_name(topology, body), _pose(model.frame_placement, k, f"frame {name!r}"))


def _actuator(model: Model, k: int) -> ActuatorSpec:
    a = model.actuator
    constant, stiffness, damping = map(float, row(a.bias, k))
    return ActuatorSpec(
        a.names[k],
        model.topology.joint_names[a.joints[k]],
        gear=number(a.gear, k),
        gain=number(a.gain, k),
        bias=(constant, stiffness, damping),
        control_range=(number(a.control_lower, k), number(a.control_upper, k)),
        force_range=(number(a.force_lower, k), number(a.force_upper, k)),
    )


def _home(model: Model) -> dict[str, np.ndarray | float]:
    """Coordinates of the joints that do not start in their zero position."""
    topology, rest = model.topology, neutral(model.topology)
    home: dict[str, np.ndarray | float] = {}
    for i, name in enumerate(topology.joint_names):
        coordinates = slice(*topology.q_slices[i])
        start = row(model.home, coordinates)
        if topology.mimics[i] < 0 and np.any(start != rest[coordinates]):
            home[name] = start
    return home


def _pose(poses: Pose, i: int, what: str) -> Pose:
    pose = pose_of(poses, i)
    if not is_rotation(pose.R):
        fix = "keep R orthonormal, for example with Pose.retract"
        raise refuse("write.rotation", f"orientation of {what} is not a rotation", fix)
    return pose


def _body_name(topology: Topology, index: int) -> str:
    return WORLD_NAME if index == WORLD else topology.body_names[index]


def are_direct(spec: ModelSpec) -> bool:
    """Whether the actuators are those of a model without any: a direct torque or force on every joint."""
    driven = [body.joint for body in spec.bodies if body.joint.kind in SCALAR_JOINTS and not body.joint.mimic]
    return spec.actuators == [ActuatorSpec(joint.name, joint.name) for joint in driven]


def impossible_inertials(spec: ModelSpec) -> list[tuple[BodySpec, Problem]]:
    """Bodies whose mass properties nothing can have, with what is wrong."""
    return [
        (body, problem)
        for body in spec.bodies
        for problem in inertial_problems(body.name, body.inertial, body.inertial_source)
        # harmless where the body is fixed to another one; a moving one never gets into a model
        if problem.code != "mass.zero_with_inertia"
    ]


def _note_own_laws(model: Model, spec: ModelSpec, notes: Notes) -> None:
    """Parameters of friction and limit stops that are this engine's own."""
    usual = assemble(spec).joint  # with the stops that a joint has by default
    names = _joint_of_each_dof(model.topology)

    def values(field: str) -> np.ndarray:
        return np.asarray(getattr(model.joint, field), dtype=float)

    def note(parameter: str, concerned: np.ndarray) -> None:
        if concerned.any():
            affected = [name for name, is_affected in zip(names, concerned, strict=True) if is_affected]
            notes.add(f"{parameter} is left out, since the file has no place for it", *affected)

    rubs = (values("friction") != 0.0) | (values("breakaway") != 0.0)
    note("breakaway friction", values("breakaway") != 0.0)
    limited = np.isfinite(values("lower")) | np.isfinite(values("upper"))
    for field, text, concerned in (
        ("friction_width", "the width of dry friction", rubs),
        ("limit_stiffness", "stiffness of the limit stops", limited),
        ("limit_damping", "damping of the limit stops", limited),
    ):
        differs = ~np.isclose(values(field), getattr(usual, field), rtol=1e-9, atol=0.0)
        note(text, concerned & differs)


def _joint_of_each_dof(topology: Topology) -> list[str]:
    pairs = zip(topology.joint_names, topology.joint_types, strict=True)
    return [name for name, kind in pairs for _ in range(kind.nv)]


def _note_order(topology: Topology, notes: Notes) -> None:
    children: dict[int, list[int]] = {}
    for body, parent in enumerate(topology.parents):
        children.setdefault(parent, []).append(body)
    order, waiting = [], children.get(WORLD, [])[::-1]
    while waiting:
        order.append(waiting.pop())
        waiting += children.get(order[-1], [])[::-1]
    if order != sorted(order):
        names = [topology.joint_names[i] for i in order if topology.joint_types[i] is not JointType.FIXED]
        notes.add("joints are read back branch by branch, so coordinates come in another order", *names)
