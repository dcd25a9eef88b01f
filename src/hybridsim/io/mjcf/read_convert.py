"""Conversion of a compiled MuJoCo model to a `ModelSpec`; see `read_mjcf` for the conventions."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hybridsim.core.errors import Problem, Severity
from hybridsim.core.messages import name_list
from hybridsim.io.compare import pair_name
from hybridsim.io.mjcf.read_document import Document
from hybridsim.io.mjcf.read_node import Node, mujoco_module
from hybridsim.io.mjcf.read_pairs import NamedPairs, named_pairs, pair_frictions, pair_warnings
from hybridsim.io.mjcf.read_poses import one_dof_joint_transform, rotation_matrix
from hybridsim.io.mjcf.read_shapes import shape_of, solref_warning, surface_of
from hybridsim.io.mjcf.read_unsupported import unsupported_actuator_reason, unsupported_problems
from hybridsim.model.inertial import Inertial, inertia_matrix
from hybridsim.model.specs import (
    WORLD_NAME,
    ActuatorSpec,
    BodySpec,
    FrameSpec,
    GeomSpec,
    JointKind,
    JointSpec,
    ModelSpec,
    Source,
    identity_pose,
)
from hybridsim.model.validate import model_problems
from hybridsim.spatial.transform import Pose

JOINT_KINDS = {
    "free": JointKind.FREE,
    "ball": JointKind.SPHERICAL,
    "slide": JointKind.PRISMATIC,
    "hinge": JointKind.REVOLUTE,
}
"""Joint types by their MJCF name, in the order of MuJoCo's `mjtJoint`, for reading and writing."""
_KINDS = tuple(JOINT_KINDS.values())


@dataclass
class ImportedMjcf:
    """An imported MJCF file, with the data needed to edit it."""

    spec: ModelSpec
    problems: list[Problem]
    document: Document
    nodes: dict[tuple[str, str], Node]
    """Node of each element by kind (body, joint, geom, site, actuator, pair) and name in the description."""
    mjspec: Any
    compiled: Any
    ids: dict[tuple[str, str], int]
    """MuJoCo id of each element by kind and name in the description."""
    owners: dict[str, str]
    """MJCF body of each body in the description; massless bodies of a joint chain belong to the body at its end."""


@dataclass
class MjcfConverter:
    """Converts a compiled model to a description."""

    document: Document
    mjspec: Any
    m: Any
    nodes: dict[tuple[str, str], Node] = field(default_factory=dict)
    ids: dict[tuple[str, str], int] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)

    def convert(self, default_name: str) -> ImportedMjcf:
        """Imported file; the model is named `default_name` if the file specifies no name."""
        self.problems = list(self.document.problems)
        self.bodies = self._names("body", self.m.nbody, self.mjspec.bodies)
        self.joints = self._names("joint", self.m.njnt, self.mjspec.joints)
        self.geoms = self._names("geom", self.m.ngeom, self.mjspec.geoms)
        self.sites = self._names("site", self.m.nsite, self.mjspec.sites)
        self.actuators = self._names("actuator", self.m.nactuator, self.mjspec.actuators)
        self.bodies[0] = WORLD_NAME
        self.body_names = set(self.bodies)
        self._locate_free_joints()
        self.full_inertias = {body.id: inertia_matrix(body.fullinertia) for body in self.mjspec.bodies}
        self.mesh_files = {mesh.id: mesh.file for mesh in self.mjspec.meshes}
        spec = ModelSpec(
            self.document.root.get("model") or default_name,
            gravity=np.zeros(3) if self._is_disabled("GRAVITY") else self.m.opt.gravity.copy(),
            timestep=float(self.m.opt.timestep),
        )
        for body in range(1, self.m.nbody):
            spec.bodies += self._chain(body)
        self.solref_warnings: dict[str, list[str]] = {}
        spec.geoms = [geom for g in range(self.m.ngeom) if (geom := self._geom(g))]
        self._report_solref()
        spec.frames = self._frames()
        spec.actuators = [actuator for a in range(self.m.nactuator) if (actuator := self._actuator(a))]
        spec.is_unactuated = not spec.actuators
        spec.home = self._home()
        spec.excluded_pairs = [
            (self.bodies[s >> 16], self.bodies[s & 0xFFFF]) for s in self.m.exclude_signature.tolist()
        ]
        pairs = named_pairs(self.m, self.geoms, {geom.name for geom in spec.geoms})
        spec.explicit_pairs = list(pairs) if self._is_contact_enabled() else []
        spec.pair_friction = pair_frictions(self.m, pairs)
        self._locate_pairs(pairs)
        self.problems += unsupported_problems(self.document)
        self.problems += [replace(p, file=p.file or self.document.file) for p in model_problems(spec)]
        return ImportedMjcf(spec, self.problems, self.document, self.nodes, self.mjspec, self.m, self.ids, self.owners)

    def _names(self, kind: str, count: int, elements: Sequence[Any]) -> list[str]:
        """Unique names of all elements of a kind; also records their nodes and ids."""
        specified: dict[int, str] = {}
        for element in elements:
            if 0 <= element.id < count:
                specified[element.id] = element.name
        names = [specified.get(i, "") for i in range(count)]
        used = set(names)
        for i in range(count):
            if not names[i]:
                names[i] = _unique_name(f"{kind}{i}", used)
        for element in elements:
            node = self.document.node_at(element.info)
            if 0 <= element.id < count and node is not None:
                self.nodes[kind, names[element.id]] = node
        self.ids |= {(kind, name): i for i, name in enumerate(names)}
        return names

    def _locate_free_joints(self) -> None:
        """Record the nodes of `<freejoint>` elements, for which MjSpec has no location."""
        for j, name in enumerate(self.joints):
            body = self.nodes.get(("body", self.bodies[self.m.jnt_bodyid[j]]))
            free = [child for child in body.children if child.tag == "freejoint"] if body else []
            if free:
                self.nodes.setdefault(("joint", name), free[0])

    def _locate_pairs(self, pairs: NamedPairs) -> None:
        """Record the nodes and ids of pairs, and warn about their unsupported settings."""
        elements = {element.id: element for element in self.mjspec.pairs}
        for names, k in pairs.items():
            self.ids["pair", pair_name(names)] = k
            if node := self.document.node_at(elements[k].info):
                self.nodes["pair", pair_name(names)] = node
        for message, fix, name in pair_warnings(self.m, pairs):
            self._warn("pair", name, "unsupported.pair.surface", message, fix)

    def _source(self, kind: str, name: str) -> Source:
        node = self.nodes.get((kind, name))
        return Source(node.element.file, node.element.line) if node else Source(self.document.file)

    def _has_attribute(self, kind: str, name: str, attribute: str, value: str) -> bool:
        node = self.nodes.get((kind, name))
        return node is not None and node.get(attribute) == value

    def _is_disabled(self, *flags: str) -> bool:
        mujoco = mujoco_module()

        bits = [int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag}")) for flag in flags]
        return any(self.m.opt.disableflags & bit for bit in bits)

    def _is_contact_enabled(self) -> bool:
        return not self._is_disabled("CONTACT", "CONSTRAINT")

    def _warn(self, kind: str, name: str, code: str, message: str, fix: str) -> None:
        source = self._source(kind, name)
        self.problems.append(Problem(message, fix, source.file, source.line, Severity.WARNING, code, name))

    def _chain(self, body: int) -> list[BodySpec]:
        """The body with its joint; for several joints a chain of massless bodies, one per joint, ending in the body."""
        m, name = self.m, self.bodies[body]
        source = self._source("body", name)
        node = self.nodes.get(("body", name))
        inertial_element = node.element.child("inertial") if node else None
        inertial_source = Source(source.file, inertial_element.line) if inertial_element else source
        placement = Pose(rotation_matrix(m.body_quat[body]), m.body_pos[body].copy())
        first = int(m.body_jntadr[body])
        joints = [self._joint(j) for j in range(first, first + int(m.body_jntnum[body]))]
        if m.body_mocapid[body] >= 0:
            self._warn(
                "body",
                name,
                "unsupported.mocap",
                f"mocap body {name!r} is treated as fixed",
                "give it a joint if it has to move",
            )
        if not joints:
            joint_name = _unique_name(f"{name}_fixed", set(self.joints))
            self.joints.append(joint_name)
            joints = [(JointSpec(joint_name, JointKind.FIXED, source=source), identity_pose())]
        chain, parent = [], self.bodies[m.body_parentid[body]]
        for k, (joint, X_ref) in enumerate(joints):
            last = k == len(joints) - 1
            part = name if last else _unique_name(f"{name}:{joint.name}", self.body_names)
            inertial = self._inertial(body) if last else Inertial()
            # the coordinates of a free joint are the pose in the world, so its placement is the identity
            X_PJ = identity_pose() if joint.kind is JointKind.FREE else placement @ X_ref
            self.owners[part] = name
            chain.append(BodySpec(part, parent, joint, X_PJ, inertial, source, inertial_source))
            parent, placement = part, identity_pose()
        return chain

    def _joint(self, j: int) -> tuple[JointSpec, Pose]:
        """The joint, and its transform at minus `ref`, which is part of the placement."""
        m, name = self.m, self.joints[j]
        kind = _KINDS[m.jnt_type[j]]
        dof, coordinate = int(m.jnt_dofadr[j]), int(m.jnt_qposadr[j])
        joint = JointSpec(
            name,
            kind,
            armature=float(m.dof_armature[dof]),
            damping=0.0 if self._is_disabled("DAMPER") else float(m.dof_damping[dof]),
            friction=0.0 if self._is_disabled("FRICTIONLOSS", "CONSTRAINT") else float(m.dof_frictionloss[dof]),
            stiffness=0.0 if self._is_disabled("SPRING") else float(m.jnt_stiffness[j]),
            source=self._source("joint", name),
        )
        self._report_joint(j, joint)
        if kind is JointKind.FREE:
            joint.stiffness = 0.0
            return joint, identity_pose()
        joint.anchor = m.jnt_pos[j].copy()
        if kind is JointKind.SPHERICAL:
            joint.rest = m.qpos_spring[coordinate : coordinate + 4].copy()
            return joint, identity_pose()
        joint.axis = m.jnt_axis[j].copy()
        joint.rest = float(m.qpos_spring[coordinate])
        # MuJoCo ignores a swapped range; keep it, so that the validation reports it
        swapped = m.jnt_range[j, 0] > m.jnt_range[j, 1] and not self._has_attribute("joint", name, "limited", "false")
        if (m.jnt_limited[j] or swapped) and not self._is_disabled("LIMIT", "CONSTRAINT"):
            joint.lower, joint.upper = map(float, m.jnt_range[j])
        if m.jnt_actfrclimited[j]:
            joint.effort_limit = float(np.abs(m.jnt_actfrcrange[j]).max())
        return joint, one_dof_joint_transform(joint, -float(m.qpos0[coordinate]))

    def _report_joint(self, j: int, joint: JointSpec) -> None:
        m, name = self.m, joint.name
        dof = int(m.jnt_dofadr[j])
        if m.jnt_stiffnesspoly[j].any() or m.dof_dampingpoly[dof].any():
            message = f"joint {name!r} has nonlinear stiffness or damping; only the linear part is used"
            self._warn("joint", name, "unsupported.joint.polynomial", message, "specify a single value")
        if joint.kind is JointKind.SPHERICAL and m.jnt_limited[j]:
            message = f"range of ball joint {name!r} is not supported and is ignored"
            self._warn("joint", name, "unsupported.joint.range", message, "remove it to silence this warning")
        if joint.kind is JointKind.FREE and joint.stiffness:
            message = f"stiffness of free joint {name!r} is not supported and is ignored"
            self._warn("joint", name, "unsupported.joint.free", message, "remove it to silence this warning")
        if joint.kind is JointKind.FREE and joint.friction:
            message = f"frictionloss of free joint {name!r} acts along the body axes, not the world axes"
            self._warn(
                "joint", name, "unsupported.joint.free", message, "remove it, and let contacts provide the friction"
            )
        low, high = m.jnt_actfrcrange[j]
        if m.jnt_actfrclimited[j] and low != -high:
            message = f"actuatorfrcrange of joint {name!r} is asymmetric; ±{max(-low, high):g} is used"
            self._warn(
                "joint",
                name,
                "unsupported.joint.actuatorfrcrange",
                message,
                "limit the forcerange of the actuator",
            )

    def _inertial(self, body: int) -> Inertial:
        m = self.m
        R = rotation_matrix(m.body_iquat[body])
        inertia = R @ np.diag(m.body_inertia[body]) @ R.T
        inertia = 0.5 * (inertia + inertia.T)
        # MuJoCo stores principal moments and axes; use the exact values of the file if it specifies the full matrix
        full = self.full_inertias[body]
        if np.allclose(full, inertia, rtol=0.0, atol=1e-9 * np.abs(inertia).max()):
            inertia = full
        return Inertial(float(m.body_mass[body]), m.body_ipos[body].copy(), inertia)

    def _geom(self, g: int) -> GeomSpec | None:
        m, name = self.m, self.geoms[g]
        geom_shape = shape_of(m, g, lambda mesh: self.document.mesh_paths.get(self.mesh_files.get(mesh, "")))
        if geom_shape is None:
            message = f"geom {name!r} is a mesh without a file or of an unsupported type, and is ignored"
            self._warn(
                "geom", name, "unsupported.geom.type", message, "replace it, or remove it to silence this warning"
            )
            return None
        message = solref_warning(m, g)
        if message:
            self.solref_warnings.setdefault(message, []).append(name)
        collides = self._is_contact_enabled()
        return GeomSpec(
            name,
            self.bodies[m.geom_bodyid[g]],
            geom_shape.shape,
            geom_shape.size,
            geom_shape.placement,
            mesh_file=geom_shape.mesh_file,
            group=int(m.geom_contype[g]) if collides else 0,
            mask=int(m.geom_conaffinity[g]) if collides else 0,
            source=self._source("geom", name),
            data=geom_shape.data,
            **surface_of(m, g),
        )

    def _report_solref(self) -> None:
        for text, names in self.solref_warnings.items():
            message = f"solref of geoms {name_list(names)} {text}"
            fix = "specify a positive time constant and a damping ratio of 1"
            self._warn("geom", names[0], "unsupported.geom.solref", message, fix)

    def _frames(self) -> list[FrameSpec]:
        """Frames of sites; a site with the name of a fixed body, which also becomes a frame, is named `name_site`."""
        m = self.m
        fixed = {self.bodies[b] for b in range(m.nbody) if m.body_jntnum[b] == 0}
        frames, used = [], fixed.union(self.sites)
        for s, name in enumerate(self.sites):
            name = _unique_name(f"{name}_site", used) if name in fixed else name
            placement = Pose(rotation_matrix(m.site_quat[s]), m.site_pos[s].copy())
            frames.append(FrameSpec(name, self.bodies[m.site_bodyid[s]], placement))
        return frames

    def _actuator(self, a: int) -> ActuatorSpec | None:
        mujoco = mujoco_module()

        m, name = self.m, self.actuators[a]
        reason = "actuation is disabled" if self._is_disabled("ACTUATION") else unsupported_actuator_reason(m, a)
        if reason:
            message = f"actuator {name!r} is ignored, and there is no command for it: {reason}"
            self._warn("actuator", name, "unsupported.actuator", message, "remove it to silence this warning")
            return None
        self._check_order(name, "ctrlrange", "ctrllimited", m.actuator_ctrlrange[a])
        self._check_order(name, "forcerange", "forcelimited", m.actuator_forcerange[a])
        affine = int(m.actuator_biastype[a]) == int(mujoco.mjtBias.mjBIAS_AFFINE)
        unlimited = (-np.inf, np.inf)
        is_clamped = m.actuator_ctrllimited[a] and not self._is_disabled("CLAMPCTRL")
        return ActuatorSpec(
            name,
            self.joints[m.actuator_trnid[a, 0]],
            gear=float(m.actuator_gear[a, 0]),
            gain=float(m.actuator_gainprm[a, 0]),
            bias=tuple(m.actuator_biasprm[a, :3].tolist()) if affine else (0.0, 0.0, 0.0),
            command_range=tuple(m.actuator_ctrlrange[a].tolist()) if is_clamped else unlimited,
            force_range=tuple(m.actuator_forcerange[a].tolist()) if m.actuator_forcelimited[a] else unlimited,
            source=self._source("actuator", name),
        )

    def _check_order(self, name: str, attribute: str, switch: str, values: np.ndarray) -> None:
        if values[0] > values[1] and not self._has_attribute("actuator", name, switch, "false"):
            source = self._source("actuator", name)
            message = f"{attribute} of actuator {name!r} is swapped: {values[0]:g} > {values[1]:g}"
            fix = "swap the two values"
            problem = Problem(message, fix, source.file, source.line, code="limit.order", element=name)
            self.problems.append(problem)

    def _home(self) -> dict[str, np.ndarray | float]:
        m = self.m
        keys = [key.id for key in self.mjspec.keys if key.name == "home"]
        qpos = m.key_qpos[keys[0]] if keys else m.qpos0
        ends = [*m.jnt_qposadr[1:].tolist(), m.nq]
        return {self.joints[j]: qpos[m.jnt_qposadr[j] : ends[j]].copy() for j in range(m.njnt)}


def _unique_name(name: str, used: set[str]) -> str:
    while name in used:
        name += "_"
    used.add(name)
    return name
