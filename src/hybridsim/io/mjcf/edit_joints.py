"""Export of changed joint and actuator parameters into an MJCF file."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from hybridsim.io.mjcf.edit_document import MjcfEditor
from hybridsim.io.mjcf.read_node import Node
from hybridsim.io.xml import Element
from hybridsim.model.joints import ElementaryJointType
from hybridsim.model.model import Model

DOF_ATTRIBUTES = (
    ("armature", "armature", "kg·m² or kg"),
    ("damping", "damping", "N·m·s/rad or N·s/m"),
    ("stiffness", "stiffness", "N·m/rad or N/m"),
    ("friction", "frictionloss", "N·m or N"),
)
"""Field, MJCF attribute and unit of each joint parameter with one value for all degrees of freedom of a joint."""
_ONE_SIDED = "a one-sided range cannot be written into an existing file"


@dataclass
class MjcfJointEditor:
    """Edits the joints and actuators in which two models differ."""

    editor: MjcfEditor
    before: Model
    after: Model

    def edit(self) -> None:
        """Record all edits."""
        if _has_inertia_change(self.before, self.after):
            self._replace_damping_ratios()
        for i, kind in enumerate(self.before.topology.joint_types):
            if kind is not ElementaryJointType.FIXED:
                self._edit_scalar_fields(i)
                self._edit_vector(i, "anchor", "pos", "pos [m]")
            if kind in (ElementaryJointType.REVOLUTE, ElementaryJointType.PRISMATIC):
                self._edit_vector(i, "axis", "axis", "axis")
                self._edit_limits(i, kind)
        for a in range(self.before.nu):
            self._edit_actuator(a)

    def _replace_damping_ratios(self) -> None:
        """Replace damping ratios with explicit values, since MuJoCo's damping would change with the inertia."""
        editor, models = self.editor, (self.before.joint, self.after.joint)
        for i, name in enumerate(self.before.topology.joint_names):
            if self._has_spring_damper(name) and not editor.uneditable_reason("joint", name):
                element = editor.imported.nodes["joint", name].element
                self._edit_spring(i, element)
                dof = self.before.topology.tree_v_slices[i][0]
                values = [(float(joint.stiffness[dof]), float(joint.damping[dof])) for joint in models]
                editor.record_change(element, name, "stiffness and damping instead of springdamper", *values)
        for a, name in enumerate(self.before.actuator.names):
            if self._has_damping_ratio(name) and not editor.uneditable_reason("actuator", name):
                element = editor.imported.nodes["actuator", name].element
                self._edit_position_damping(element, name, *self._gains(a))

    def _has_spring_damper(self, name: str) -> bool:
        """Whether a joint or its default has `springdamper`, which overrides stiffness and damping."""
        imported = self.editor.imported
        index = imported.ids.get(("joint", name))
        return any(joint.id == index and min(joint.springdamper) > 0.0 for joint in imported.mjspec.joints)

    def _has_damping_ratio(self, name: str) -> bool:
        """Whether a `<position>` or its default has `dampratio`, which MjSpec stores as a positive damping."""
        imported = self.editor.imported
        node, index = imported.nodes.get(("actuator", name)), imported.ids["actuator", name]
        is_position = node is not None and node.tag == "position"
        return is_position and any(a.id == index and a.biasprm[2] > 0.0 for a in imported.mjspec.actuators)

    def _edit_spring(self, i: int, element: Element) -> None:
        """Set stiffness and damping instead of `springdamper`, which would override them."""
        # not just removed: it may be specified in a default
        self.editor.edits.set_attribute(element, "springdamper", "0 0")
        dof = self.before.topology.tree_v_slices[i][0]
        for field in ("stiffness", "damping"):
            self.editor.set_numbers(element, field, float(getattr(self.after.joint, field)[dof]))

    def _edit_scalar_fields(self, i: int) -> None:
        dofs = slice(*self.before.topology.tree_v_slices[i])
        for field, attribute, unit in DOF_ATTRIBUTES:
            old, new = getattr(self.before.joint, field)[dofs], getattr(self.after.joint, field)[dofs]
            if not np.any(old != new) or (element := self._element(i, field)) is None:
                continue
            name = self.before.topology.joint_names[i]
            if np.any(new != new[0]):
                self.editor.report(
                    None, f"{field} of joint {name!r} differs between degrees of freedom", "use equal values"
                )
            if field in ("stiffness", "damping") and self._has_spring_damper(name):
                self._edit_spring(i, element)
            else:
                self.editor.set_first_numbers(element, attribute, new[0])
            self.editor.record_change(element, name, f"{attribute} [{unit}]", old[0], new[0])

    def _edit_vector(self, i: int, field: str, attribute: str, label: str) -> None:
        old, new = getattr(self.before.joint, field)[i], getattr(self.after.joint, field)[i]
        if np.any(old != new) and (element := self._element(i, field, in_body_frame=True)) is not None:
            self.editor.set_numbers(element, attribute, new)
            self.editor.record_change(element, self.before.topology.joint_names[i], label, old, new)

    def _edit_limits(self, i: int, kind: ElementaryJointType) -> None:
        """Edit rest position, position limits and effort limit of a joint with one degree of freedom."""
        topology, editor = self.before.topology, self.editor
        name, dof, coordinate = (
            topology.joint_names[i],
            topology.tree_v_slices[i][0],
            topology.tree_q_slices[i][0],
        )
        in_degrees = kind is ElementaryJointType.REVOLUTE and bool(editor.imported.mjspec.compiler.degree)
        unit = "rad" if kind is ElementaryJointType.REVOLUTE else "m"
        models: tuple[Any, Any] = (self.before.joint, self.after.joint)

        rest = [float(joint.rest[coordinate]) for joint in models]
        if rest[0] != rest[1] and (element := self._element(i, "rest position")) is not None:
            editor.set_numbers(element, "springref", degrees(rest[1]) if in_degrees else rest[1])
            editor.record_change(element, name, f"springref [{unit}]", *rest)

        limits = [(float(joint.lower[dof]), float(joint.upper[dof])) for joint in models]
        if limits[0] != limits[1] and (element := self._element(i, "range")) is not None:
            written = [degrees(limit) if in_degrees else limit for limit in limits[1]]
            if not editor.set_range(element, "range", "limited", limits[0], written):
                message = f"range of joint {name!r} is {limits[1]}, but {_ONE_SIDED}"
                editor.report(None, message, "specify both limits or none")
            editor.record_change(element, name, f"range [{unit}]", *limits)

        efforts = [float(joint.effort_limit[dof]) for joint in models]
        if efforts[0] != efforts[1] and (element := self._element(i, "effort limit")) is not None:
            ranges = [(-effort, effort) for effort in efforts]
            editor.set_range(element, "actuatorfrcrange", "actuatorfrclimited", *ranges)
            editor.record_change(element, name, "actuatorfrcrange [N·m or N]", *efforts)

    def _element(self, i: int, what: str, in_body_frame: bool = False) -> Element | None:
        name = self.before.topology.joint_names[i]
        node = self.editor.editable_node("joint", name, what)
        if node is None:
            return None
        message = f"cannot write the change to the {what} of joint {name!r}"
        if node.tag == "freejoint":
            fix = 'replace it with <joint type="free" .../>'
            self.editor.report(node, f"{message}: <freejoint> does not support it", fix)
            return None
        if in_body_frame and node.parent is not None and node.parent.tag == "frame":
            self.editor.report(node, f"{message}: it is inside a <frame>", "move the joint out of the <frame>")
            return None
        return node.element

    def _edit_actuator(self, a: int) -> None:
        editor, name = self.editor, self.before.actuator.names[a]
        actuators: tuple[Any, Any] = (self.before.actuator, self.after.actuator)
        gears = [float(x.gear[a]) for x in actuators]
        gains = self._gains(a)
        commands = [(float(x.command_lower[a]), float(x.command_upper[a])) for x in actuators]
        forces = [(float(x.force_lower[a]), float(x.force_upper[a])) for x in actuators]
        same = gears[0] == gears[1] and commands[0] == commands[1] and forces[0] == forces[1]
        if same and not (gains[0] != gains[1]).any():
            return
        node = editor.editable_node("actuator", name, "parameters")
        if node is None:
            return
        element = node.element
        if gears[0] != gears[1]:
            editor.set_first_numbers(element, "gear", gears[1])
            editor.record_change(element, name, "gear", *gears)
        if (gains[0] != gains[1]).any():
            self._edit_gains(node, name, *gains)
        ranges = ((commands, "ctrlrange", "ctrllimited"), (forces, "forcerange", "forcelimited"))
        for pair, attribute, switch in ranges:
            if pair[0] == pair[1]:
                continue
            if not editor.set_range(element, attribute, switch, *pair):
                message = f"{attribute} of actuator {name!r} is {pair[1]}, but {_ONE_SIDED}"
                editor.report(node, message, "specify both limits or none")
            if attribute == "ctrlrange":
                editor.remove(element, ["inheritrange"])
            editor.record_change(element, name, attribute, *pair)

    def _gains(self, a: int) -> list[np.ndarray]:
        """Gain and bias of an actuator before and after the change."""
        actuators: tuple[Any, Any] = (self.before.actuator, self.after.actuator)
        return [np.array([x.gain[a], *x.bias[a]], dtype=float) for x in actuators]

    def _edit_position_damping(self, element: Element, name: str, old: np.ndarray, new: np.ndarray) -> None:
        """Set the damping of a `<position>` as `kv`; a damping ratio would depend on kp and the inertia."""
        label = "kv instead of dampratio" if self._has_damping_ratio(name) else "kv"
        self.editor.remove(element, ["dampratio"])
        self.editor.set_numbers(element, "kv", 0.0 - float(new[3]))
        self.editor.record_change(element, name, label, -old[3], -new[3])

    def _edit_gains(self, node: Node, name: str, old: np.ndarray, new: np.ndarray) -> None:
        """Edit gain and bias in the parametrization of the actuator type."""
        editor, element = self.editor, node.element
        gain, constant, per_length, per_speed = map(float, new)
        if node.tag == "general":
            if gain != old[0]:
                editor.set_first_numbers(element, "gainprm", gain)
                editor.record_change(element, name, "gainprm", old[0], gain)
            if (old[1:] != new[1:]).any():
                editor.set_numbers(element, "biasprm", new[1:])
                if not old[1:].any():
                    editor.edits.set_attribute(element, "biastype", "affine")
                editor.record_change(element, name, "biasprm", old[1:], new[1:])
        elif node.tag == "position" and constant == 0.0 and per_length == -gain:
            if gain != old[0]:
                editor.set_numbers(element, "kp", gain)
                editor.record_change(element, name, "kp", old[0], gain)
            has_damping_ratio = self._has_damping_ratio(name)
            was_replaced = has_damping_ratio and _has_inertia_change(self.before, self.after)
            if (has_damping_ratio or per_speed != old[3]) and not was_replaced:
                self._edit_position_damping(element, name, old, new)
        elif node.tag == "velocity" and constant == per_length == 0.0 and per_speed == -gain:
            editor.set_numbers(element, "kv", gain)
            editor.record_change(element, name, "kv", old[0], gain)
        else:
            bias = ", ".join(f"{value:g}" for value in new[1:])
            editor.report(
                node,
                f"<{node.tag}> does not support gain {gain:g} and bias ({bias}) of actuator {name!r}",
                "use <general> in the file; a <position> has gain kp and bias (0, -kp, -kv)",
            )


def _has_inertia_change(before: Model, after: Model) -> bool:
    """Whether the inertia seen by the joints has changed."""
    pairs = [
        (before.body, after.body, ("mass", "com", "inertia")),
        (before.joint, after.joint, ("axis", "anchor", "armature")),
        (before.joint.placement, after.joint.placement, ("R", "p")),
    ]
    return any(
        not np.array_equal(getattr(old, field), getattr(new, field)) for old, new, fields in pairs for field in fields
    )


def degrees(radians: float) -> float:
    """Angle in degrees that MuJoCo converts to exactly this angle in radians if there is one, otherwise the nearest."""
    nearest = math.degrees(radians)
    candidates = (nearest, math.nextafter(nearest, -math.inf), math.nextafter(nearest, math.inf))
    return min(candidates, key=lambda angle: abs(angle * (math.pi / 180.0) - radians))
