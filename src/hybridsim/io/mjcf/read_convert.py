"""From a compiled MuJoCo model to a description; `io.mjcf` says by which conventions."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hybridsim.core.errors import Problem, Severity
from hybridsim.core.messages import name_list
from hybridsim.io.compare import pair_name
from hybridsim.io.mjcf.read_document import Document
from hybridsim.io.mjcf.read_node import Node, mujoco_module
from hybridsim.io.mjcf.read_pairs import NamedPairs, named_pairs, pair_doubts, pair_friction
from hybridsim.io.mjcf.read_poses import joint_motion, matrix_of
from hybridsim.io.mjcf.read_shapes import extent_of, solref_doubt, surface_of
from hybridsim.io.mjcf.read_unsupported import actuator_obstacle, unsupported
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

_KINDS = (JointKind.FREE, JointKind.SPHERICAL, JointKind.PRISMATIC, JointKind.REVOLUTE)
"""Joint kinds in the order of MuJoCo's `mjtJoint`."""


@dataclass
class ImportedMjcf:
    """A read MJCF file with what is needed to write back into it."""

    spec: ModelSpec
    problems: list[Problem]
    document: Document
    nodes: dict[tuple[str, str], Node]
    """Where an element stands in the file, by its kind (body, joint, geom, actuator) and our name."""
    mjspec: Any
    compiled: Any
    ids: dict[tuple[str, str], int]
    """MuJoCo's number of an element, by kind and our name."""
    owners: dict[str, str]
    """For each of our bodies the file's body that it is, or is a massless part of."""


@dataclass
class Converter:
    """Turns one compiled model into a description."""

    document: Document
    mjspec: Any
    m: Any
    nodes: dict[tuple[str, str], Node] = field(default_factory=dict)
    ids: dict[tuple[str, str], int] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)

    def imported(self, fallback_name: str) -> ImportedMjcf:
        """The description, called `fallback_name` if the file has no name for the model."""
        self.problems = list(self.document.problems)
        self.bodies = self._names("body", self.m.nbody, self.mjspec.bodies)
        self.joints = self._names("joint", self.m.njnt, self.mjspec.joints)
        self.geoms = self._names("geom", self.m.ngeom, self.mjspec.geoms)
        self.sites = self._names("site", self.m.nsite, self.mjspec.sites)
        self.actuators = self._names("actuator", self.m.nactuator, self.mjspec.actuators)
        self.bodies[0] = WORLD_NAME
        self.taken = set(self.bodies)
        self._place_free_joints()
        self.full_inertias = {body.id: inertia_matrix(body.fullinertia) for body in self.mjspec.bodies}
        self.mesh_files = {mesh.id: mesh.file for mesh in self.mjspec.meshes}
        spec = ModelSpec(
            self.document.root.get("model") or fallback_name,
            gravity=np.zeros(3) if self._is_off("GRAVITY") else self.m.opt.gravity.copy(),
            timestep=float(self.m.opt.timestep),
        )
        for body in range(1, self.m.nbody):
            spec.bodies += self._chain(body)
        self.doubts: dict[str, list[str]] = {}
        spec.geoms = [geom for g in range(self.m.ngeom) if (geom := self._geom(g))]
        self._report_surfaces()
        spec.frames = self._frames()
        spec.actuators = [actuator for a in range(self.m.nactuator) if (actuator := self._actuator(a))]
        spec.passive = not spec.actuators
        spec.home = self._home()
        spec.excluded_pairs = [
            (self.bodies[s >> 16], self.bodies[s & 0xFFFF]) for s in self.m.exclude_signature.tolist()
        ]
        pairs = named_pairs(self.m, self.geoms, {geom.name for geom in spec.geoms})
        spec.explicit_pairs = list(pairs) if self._collides() else []
        spec.pair_friction = pair_friction(self.m, pairs)
        self._place_pairs(pairs)
        self.problems += unsupported(self.document)
        self.problems += [replace(p, file=p.file or self.document.file) for p in model_problems(spec)]
        return ImportedMjcf(spec, self.problems, self.document, self.nodes, self.mjspec, self.m, self.ids, self.owners)

    def _names(self, kind: str, count: int, elements: Sequence[Any]) -> list[str]:
        """Unique names of all elements of a kind; also notes where they stand in the file."""
        given: dict[int, str] = {}
        for element in elements:
            if 0 <= element.id < count:
                given[element.id] = element.name
        names = [given.get(i, "") for i in range(count)]
        taken = set(names)
        for i in range(count):
            if not names[i]:
                names[i] = _free_name(f"{kind}{i}", taken)
        for element in elements:
            node = self.document.node(element.info)
            if 0 <= element.id < count and node is not None:
                self.nodes[kind, names[element.id]] = node
        self.ids |= {(kind, name): i for i, name in enumerate(names)}
        return names

    def _place_free_joints(self) -> None:
        """MjSpec does not tell where a `<freejoint>` stands; it is a child of its body."""
        for j, name in enumerate(self.joints):
            body = self.nodes.get(("body", self.bodies[self.m.jnt_bodyid[j]]))
            free = [child for child in body.children if child.tag == "freejoint"] if body else []
            if free:
                self.nodes.setdefault(("joint", name), free[0])

    def _place_pairs(self, pairs: NamedPairs) -> None:
        """Note where pairs stand in the file, and what of them is not followed."""
        elements = {element.id: element for element in self.mjspec.pairs}
        for names, k in pairs.items():
            self.ids["pair", pair_name(names)] = k
            if node := self.document.node(elements[k].info):
                self.nodes["pair", pair_name(names)] = node
        for doubt, fix, concerned in pair_doubts(self.m, pairs):
            names = [pair_name(pair) for pair in concerned]
            self._warn("pair", names[0], "unsupported.pair.surface", f"{doubt}: {name_list(names)}", fix)

    def _source(self, kind: str, name: str) -> Source:
        node = self.nodes.get((kind, name))
        return Source(node.element.file, node.element.line) if node else Source(self.document.file)

    def _says(self, kind: str, name: str, attribute: str, value: str) -> bool:
        node = self.nodes.get((kind, name))
        return node is not None and node.get(attribute) == value

    def _is_off(self, *switches: str) -> bool:
        mujoco = mujoco_module()

        bits = [int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{switch}")) for switch in switches]
        return any(self.m.opt.disableflags & bit for bit in bits)

    def _collides(self) -> bool:
        return not self._is_off("CONTACT", "CONSTRAINT")

    def _warn(self, kind: str, name: str, code: str, message: str, fix: str) -> None:
        source = self._source(kind, name)
        self.problems.append(Problem(message, fix, source.file, source.line, Severity.WARNING, code, name))

    def _chain(self, body: int) -> list[BodySpec]:
        """The body with its joint, or a chain of massless bodies, one per joint, that ends in it."""
        m, name = self.m, self.bodies[body]
        source = self._source("body", name)
        node = self.nodes.get(("body", name))
        inertial_element = node.element.child("inertial") if node else None
        inertial_source = Source(source.file, inertial_element.line) if inertial_element else source
        placement = Pose(matrix_of(m.body_quat[body]), m.body_pos[body].copy())
        first = int(m.body_jntadr[body])
        joints = [self._joint(j) for j in range(first, first + int(m.body_jntnum[body]))]
        if m.body_mocapid[body] >= 0:
            self._warn(
                "body",
                name,
                "unsupported.mocap",
                f"mocap body {name!r} stands still",
                "move it as a fixed body",
            )
        if not joints:
            joint_name = _free_name(f"{name}_fixed", set(self.joints))
            self.joints.append(joint_name)
            joints = [(JointSpec(joint_name, JointKind.FIXED, source=source), identity_pose())]
        chain, parent = [], self.bodies[m.body_parentid[body]]
        for k, (joint, X_ref) in enumerate(joints):
            last = k == len(joints) - 1
            part = name if last else _free_name(f"{name}:{joint.name}", self.taken)
            inertial = self._inertial(body) if last else Inertial()
            # a free joint's coordinates are the pose in the world, so it has no placement of its own
            X_PJ = identity_pose() if joint.kind is JointKind.FREE else placement @ X_ref
            self.owners[part] = name
            chain.append(BodySpec(part, parent, joint, X_PJ, inertial, source, inertial_source))
            parent, placement = part, identity_pose()
        return chain

    def _joint(self, j: int) -> tuple[JointSpec, Pose]:
        """The joint, and the motion by minus its `ref`, which belongs to the placement."""
        m, name = self.m, self.joints[j]
        kind = _KINDS[m.jnt_type[j]]
        dof, coordinate = int(m.jnt_dofadr[j]), int(m.jnt_qposadr[j])
        joint = JointSpec(
            name,
            kind,
            armature=float(m.dof_armature[dof]),
            damping=0.0 if self._is_off("DAMPER") else float(m.dof_damping[dof]),
            friction=0.0 if self._is_off("FRICTIONLOSS", "CONSTRAINT") else float(m.dof_frictionloss[dof]),
            stiffness=0.0 if self._is_off("SPRING") else float(m.jnt_stiffness[j]),
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
        # MuJoCo takes a range in the wrong order for none at all; let the checks find it
        swapped = m.jnt_range[j, 0] > m.jnt_range[j, 1] and not self._says("joint", name, "limited", "false")
        if (m.jnt_limited[j] or swapped) and not self._is_off("LIMIT", "CONSTRAINT"):
            joint.lower, joint.upper = map(float, m.jnt_range[j])
        if m.jnt_actfrclimited[j]:
            joint.effort_limit = float(np.abs(m.jnt_actfrcrange[j]).max())
        return joint, joint_motion(joint, -float(m.qpos0[coordinate]))

    def _report_joint(self, j: int, joint: JointSpec) -> None:
        m, name = self.m, joint.name
        dof = int(m.jnt_dofadr[j])
        without = "the model is simulated without it"
        if m.jnt_stiffnesspoly[j].any() or m.dof_dampingpoly[dof].any():
            message = f"joint {name!r} has nonlinear stiffness or damping; only the linear part is used"
            self._warn("joint", name, "unsupported.joint.polynomial", message, "write one number")
        if joint.kind is JointKind.SPHERICAL and m.jnt_limited[j]:
            message = f"range of ball joint {name!r} is not supported"
            self._warn("joint", name, "unsupported.joint.range", message, without)
        if joint.kind is JointKind.FREE and joint.stiffness:
            message = f"stiffness of free joint {name!r} is not supported"
            self._warn("joint", name, "unsupported.joint.free", message, without)
        if joint.kind is JointKind.FREE and joint.friction:
            message = f"frictionloss of free joint {name!r} acts along the axes of the body, not of the world"
            self._warn("joint", name, "unsupported.joint.free", message, "leave friction to the contacts of the body")
        low, high = m.jnt_actfrcrange[j]
        if m.jnt_actfrclimited[j] and low != -high:
            message = f"actuatorfrcrange of joint {name!r} is not symmetric; ±{max(-low, high):g} is used"
            self._warn(
                "joint",
                name,
                "unsupported.joint.actuatorfrcrange",
                message,
                "limit the actuator's forcerange",
            )

    def _inertial(self, body: int) -> Inertial:
        m = self.m
        R = matrix_of(m.body_iquat[body])
        inertia = R @ np.diag(m.body_inertia[body]) @ R.T
        inertia = 0.5 * (inertia + inertia.T)
        # MuJoCo keeps principal axes; where the file gives the full matrix, use its own digits
        full = self.full_inertias[body]
        if np.allclose(full, inertia, rtol=0.0, atol=1e-9 * np.abs(inertia).max()):
            inertia = full
        return Inertial(float(m.body_mass[body]), m.body_ipos[body].copy(), inertia)

    def _geom(self, g: int) -> GeomSpec | None:
        m, name = self.m, self.geoms[g]
        extent = extent_of(m, g, lambda mesh: self.document.mesh_paths.get(self.mesh_files.get(mesh, "")))
        if extent is None:
            message = f"shape {name!r} is a mesh without a file, or of a kind that cannot collide"
            self._warn("geom", name, "unsupported.geom.type", message, "the model is simulated without it")
            return None
        doubt = solref_doubt(m, g)
        if doubt:
            self.doubts.setdefault(doubt, []).append(name)
        collides = self._collides()
        return GeomSpec(
            name,
            self.bodies[m.geom_bodyid[g]],
            extent.shape,
            extent.size,
            extent.placement,
            mesh_file=extent.mesh_file,
            group=int(m.geom_contype[g]) if collides else 0,
            mask=int(m.geom_conaffinity[g]) if collides else 0,
            source=self._source("geom", name),
            data=extent.data,
            **surface_of(m, g),
        )

    def _report_surfaces(self) -> None:
        for doubt, names in self.doubts.items():
            message = f"solref of shapes {doubt}: {name_list(names)}"
            fix = "write a positive time constant and a damping ratio of 1"
            self._warn("geom", names[0], "unsupported.geom.solref", message, fix)

    def _frames(self) -> list[FrameSpec]:
        """Sites; one with the name of a fixed body, which becomes a frame too, is called `name_site`."""
        m = self.m
        fixed = {self.bodies[b] for b in range(m.nbody) if m.body_jntnum[b] == 0}
        frames, taken = [], fixed.union(self.sites)
        for s, name in enumerate(self.sites):
            name = _free_name(f"{name}_site", taken) if name in fixed else name
            placement = Pose(matrix_of(m.site_quat[s]), m.site_pos[s].copy())
            frames.append(FrameSpec(name, self.bodies[m.site_bodyid[s]], placement))
        return frames

    def _actuator(self, a: int) -> ActuatorSpec | None:
        mujoco = mujoco_module()

        m, name = self.m, self.actuators[a]
        obstacle = "actuation is switched off" if self._is_off("ACTUATION") else actuator_obstacle(m, a)
        if obstacle:
            fix = "the model is simulated without it, and it has no entry in the controls"
            self._warn("actuator", name, "unsupported.actuator", f"actuator {name!r} is left out: {obstacle}", fix)
            return None
        self._check_order(name, "ctrlrange", "ctrllimited", m.actuator_ctrlrange[a])
        self._check_order(name, "forcerange", "forcelimited", m.actuator_forcerange[a])
        affine = int(m.actuator_biastype[a]) == int(mujoco.mjtBias.mjBIAS_AFFINE)
        unlimited = (-np.inf, np.inf)
        clamps = m.actuator_ctrllimited[a] and not self._is_off("CLAMPCTRL")
        return ActuatorSpec(
            name,
            self.joints[m.actuator_trnid[a, 0]],
            gear=float(m.actuator_gear[a, 0]),
            gain=float(m.actuator_gainprm[a, 0]),
            bias=tuple(m.actuator_biasprm[a, :3].tolist()) if affine else (0.0, 0.0, 0.0),
            control_range=tuple(m.actuator_ctrlrange[a].tolist()) if clamps else unlimited,
            force_range=tuple(m.actuator_forcerange[a].tolist()) if m.actuator_forcelimited[a] else unlimited,
            source=self._source("actuator", name),
        )

    def _check_order(self, name: str, attribute: str, switch: str, values: np.ndarray) -> None:
        if values[0] > values[1] and not self._says("actuator", name, switch, "false"):
            source = self._source("actuator", name)
            message = f"{attribute} of actuator {name!r} is swapped: {values[0]:g} > {values[1]:g}"
            fix = "exchange the two numbers"
            problem = Problem(message, fix, source.file, source.line, code="limit.order", element=name)
            self.problems.append(problem)

    def _home(self) -> dict[str, np.ndarray | float]:
        m = self.m
        keys = [key.id for key in self.mjspec.keys if key.name == "home"]
        qpos = m.key_qpos[keys[0]] if keys else m.qpos0
        ends = [*m.jnt_qposadr[1:].tolist(), m.nq]
        return {self.joints[j]: qpos[m.jnt_qposadr[j] : ends[j]].copy() for j in range(m.njnt)}


def _free_name(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name
