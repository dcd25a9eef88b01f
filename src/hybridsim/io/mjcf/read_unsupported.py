"""Warnings about unsupported MJCF elements and attributes, by name and line: nothing is ignored silently.

The tables list supported features and those without influence on the dynamics. Everything else is reported, including
elements of future MuJoCo versions.
"""

from collections.abc import Iterator
from typing import Any

from hybridsim.core.errors import Problem, Severity
from hybridsim.core.messages import name_list, pluralize
from hybridsim.io.mjcf.read_document import Document
from hybridsim.io.mjcf.read_node import Node, mujoco_module, words

_ORIENTATION = "pos quat axisangle xyaxes zaxis euler"
_ACTUATOR = (
    "joint jointinparent ctrllimited ctrlrange forcelimited forcerange gear inheritrange "
    # an actuator with these attributes is omitted and reported as a whole
    "tendon site refsite body slidersite cranksite cranklength"
)

_NO_EFFECT = words("name class childclass group user rgba material")
"""Attributes of any element without influence on the dynamics."""

_SUPPORTED: dict[str, frozenset[str]] = {
    tag: words(attributes)
    for tag, attributes in {
        "worldbody": _ORIENTATION,
        "body": f"{_ORIENTATION} mocap fuse simple sleep",
        "frame": _ORIENTATION,
        "replicate": f"{_ORIENTATION} count offset sep",
        "attach": "model body frame prefix",
        "inertial": f"{_ORIENTATION} mass diaginertia fullinertia",
        "joint": "type pos axis range limited ref springref springdamper stiffness damping armature "
        "frictionloss actuatorfrclimited actuatorfrcrange",
        "freejoint": "align",
        "geom": f"{_ORIENTATION} type size fromto mass density shellinertia friction contype conaffinity priority "
        "solref solimp mesh hfield fitscale",
        "site": f"{_ORIENTATION} type size fromto mesh",
        "pair": "geom1 geom2 friction",
        "exclude": "body1 body2",
        "motor": _ACTUATOR,
        "position": f"{_ACTUATOR} kp kv dampratio timeconst",
        "velocity": f"{_ACTUATOR} kv",
        "general": f"{_ACTUATOR} gaintype gainprm biastype biasprm dyntype dynprm",
        "option": "timestep gravity actuatorgroupdisable "
        # these concern sensors, signed distance fields and sleeping bodies
        "magnetic sdf_initpoints sdf_iterations sleep_tolerance",
        "flag": "gravity constraint contact limit frictionloss spring damper actuation clampctrl "
        # these affect speed, output or MuJoCo's solver only
        "energy fwdinv sensor warmstart autoreset midphase nativeccd multiccd island eulerdamp refsafe "
        "invdiscrete diagexact sleep",
        "key": "qpos",
        "mujoco": "model",
    }.items()
}

_IGNORED_SECTIONS = words("compiler size visual statistic custom asset extension")
_IGNORED_TAGS = words("camera light")

_NEUTRAL: dict[str, tuple[str, ...]] = {
    "margin": ("0",),
    "gap": ("0",),
    "gravcomp": ("0",),
    "condim": ("1", "3"),
    "solmix": ("1",),
    "density": ("0",),
    "viscosity": ("0",),
    "wind": ("0 0 0",),
    "fluidshape": ("none",),
    "integrator": ("Euler",),
    "cone": ("pyramidal",),
    "armature": ("0",),
    "damping": ("0",),
    "delay": ("0",),
    "nsample": ("0",),
    "adhesion": ("0",),
    "surfacevel": ("0 0 0", "0 0 0 0 0 0"),
    "actuatorgravcomp": ("false",),
    "equality": ("enable",),
    "filterparent": ("enable",),
    "override": ("disable",),
    "ipc": ("disable",),
    "qvel": ("0",),
    "time": ("0",),
}
"""Values of unsupported attributes that have no effect; zero vectors are treated as zero."""

_REASONS = {
    "connect": "kinematic loops are not simulated",
    "weld": "kinematic loops are not simulated",
    "joint": "joint coupling constraints are not simulated",
    "composite": "its bodies and joints are simulated, its elasticity is not",
    "flexcomp": "its points are simulated as separate bodies, its elasticity and contacts are not",
    "flex": "deformable bodies are not simulated",
    "skin": "it affects the appearance only",
    "spatial": "tendons are not simulated",
    "fixed": "tendons are not simulated",
    "tendon": "tendons are not simulated",
}
_FIXES = {
    "composite": "replace it with explicit bodies and joint springs",
    "flexcomp": "replace it with explicit bodies and joint springs",
}
_TOPICS = {
    "contact": (
        "margin gap solmix solref solimp solreffriction solimpfriction solreflimit "
        "solimplimit o_margin o_solref o_solimp o_friction friction adhesion surfacevel filterparent "
        "override ipc",
        "contacts, limits and friction are modelled differently",
    ),
    "condim": ("condim", "torsional and rolling friction are not simulated"),
    "solver": (
        "cone jacobian solver iterations tolerance ls_iterations ls_tolerance noslip_iterations "
        "noslip_tolerance ccd_iterations ccd_tolerance impratio integrator",
        "integrator and solver are specified in the simulator, not in the model file",
    ),
    "fluid": (
        "density viscosity wind fluidshape fluidcoef",
        "fluid forces are not simulated",
    ),
    "gravcomp": ("gravcomp actuatorgravcomp", "gravity compensation is not simulated"),
}
_TOPIC_OF = {name: topic for topic, (names, _) in _TOPICS.items() for name in names.split()}

_Findings = dict[tuple[str, str], dict[str, list[Node]]]
"""Nodes by tag and topic, then by attribute."""


def unsupported_problems(document: Document) -> list[Problem]:
    """Warnings about all unsupported elements and attributes, in document order.

    Elements are listed individually, attributes grouped by tag and topic, with their lines.
    """
    problems: list[Problem] = []
    attributes: _Findings = {}
    roots = [document.root, *document.attached]
    for section in (section for root in roots for section in root.children):
        if section.tag in ("equality", "tendon", "deformable"):
            problems += [_element_problem(node) for node in section.children]
        elif section.tag == "sensor":
            problems += _sensor_problem(section)
        elif section.tag == "keyframe":
            # the home configuration is that of the main model
            home = [key for key in section.children if key.get("name") == "home" and section.parent is document.root]
            problems += _keyframe_problem(section, home)
            _collect(home, attributes)
        elif section.tag == "default":
            _collect_defaults(section, attributes)
        elif section.tag == "actuator":
            # unsupported actuators are reported from their compiled values
            _collect([node for node in section.children if node.tag in _SUPPORTED], attributes)
        elif section.tag == "contact":
            _collect(section.children, attributes)
        elif section.tag == "asset":
            problems += [_element_problem(node) for node in section.children if node.tag == "skin"]
        elif section.tag not in _IGNORED_SECTIONS:
            problems += _collect_tree(section, attributes)
    problems += [_attribute_problem(tag, topic, nodes) for (tag, topic), nodes in attributes.items()]
    return sorted(problems, key=lambda problem: (problem.file != document.file, problem.file, problem.line))


def unsupported_actuator_reason(compiled: Any, index: int) -> str:
    """Reason why a compiled actuator is not supported; empty if it is.

    Args:
        compiled: the `MjModel`.
        index: id of the actuator.
    """
    mujoco = mujoco_module()

    m = compiled
    transmission = mujoco.mjtTrn(int(m.actuator_trntype[index]))
    if transmission not in (mujoco.mjtTrn.mjTRN_JOINT, mujoco.mjtTrn.mjTRN_JOINTINPARENT):
        return f"its transmission is {_enum_label(transmission)}, not a joint"
    joint = mujoco.mjtJoint(int(m.jnt_type[m.actuator_trnid[index, 0]]))
    if joint not in (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE):
        return f"its joint is a {_enum_label(joint)} joint"
    dynamics = mujoco.mjtDyn(int(m.actuator_dyntype[index]))
    if dynamics != mujoco.mjtDyn.mjDYN_NONE:
        return f"it has activation dynamics ({_enum_label(dynamics)})"
    gain = mujoco.mjtGain(int(m.actuator_gaintype[index]))
    affine_but_constant = gain == mujoco.mjtGain.mjGAIN_AFFINE and not m.actuator_gainprm[index, 1:3].any()
    if gain != mujoco.mjtGain.mjGAIN_FIXED and not affine_but_constant:
        return f"its gain is not constant ({_enum_label(gain)})"
    bias = mujoco.mjtBias(int(m.actuator_biastype[index]))
    if bias not in (mujoco.mjtBias.mjBIAS_NONE, mujoco.mjtBias.mjBIAS_AFFINE):
        return f"its bias is not affine ({_enum_label(bias)})"
    if m.actuator_ctrlnum[index] != 1:
        return f"it has {m.actuator_ctrlnum[index]} controls"
    if m.opt.disableactuator & (1 << max(int(m.actuator_group[index]), 0)):
        return f"<option actuatorgroupdisable> disables its group {m.actuator_group[index]}"
    return ""


def _collect_tree(root: Node, attributes: _Findings) -> Iterator[Problem]:
    """Unsupported elements of a subtree; collects the attributes of the supported ones."""
    if root.tag in _IGNORED_TAGS:
        return
    if root.tag not in _SUPPORTED:
        yield _element_problem(root)
        return
    _collect([root], attributes)
    for child in root.children:
        yield from _collect_tree(child, attributes)


def _collect_defaults(default: Node, attributes: _Findings) -> None:
    for node in default.children:
        if node.tag == "default":
            _collect_defaults(node, attributes)
        elif node.tag in _SUPPORTED:
            _collect([node], attributes)


def _collect(nodes: list[Node], attributes: _Findings) -> None:
    for node in nodes:
        for name, value in node.element.attributes.items():
            if name in _SUPPORTED.get(node.tag, ()) or name in _NO_EFFECT or _is_neutral(name, value):
                continue
            topic = _TOPIC_OF.get(name, name)
            attributes.setdefault((node.tag, topic), {}).setdefault(name, []).append(node)


def _is_neutral(name: str, value: str) -> bool:
    neutral = _NEUTRAL.get(name, ())
    text = " ".join(value.split())
    if text in neutral:
        return True
    try:
        numbers = [float(word) for word in text.split()]
        return any(numbers == [float(word) for word in option.split()] for option in neutral) or (
            "0" in neutral and not any(numbers)
        )
    except ValueError:
        return False


def _element_problem(node: Node) -> Problem:
    reason = _REASONS.get(node.tag, "it has no counterpart in hybridsim")
    fix = _FIXES.get(node.tag, "remove it to silence this warning")
    support = "only partially supported" if node.tag in _FIXES else "not supported and is ignored"
    return node.problem(f"unsupported.{node.tag}", f"{node.title} is {support}: {reason}", fix, Severity.WARNING)


def _attribute_problem(tag: str, topic: str, by_attribute: dict[str, list[Node]]) -> Problem:
    nodes = sorted({id(n): n for group in by_attribute.values() for n in group}.values(), key=lambda n: n.element.line)
    first = nodes[0]
    lines = sorted({node.element.line for node in nodes if node.element.file == first.element.file})
    also = f" (also on lines {', '.join(map(str, lines[1:6]))}{', …' if len(lines) > 6 else ''})" if lines[1:] else ""
    listed = [f"{name}={first.get(name)!r}" if name in first.element.attributes else name for name in by_attribute]
    subject = f"{', '.join(listed)} of {first.title}"
    reason = _TOPICS[topic][1] if topic in _TOPICS else "it has no counterpart in hybridsim"
    be, attributes = ("is", "attribute") if len(listed) == 1 else ("are", "attributes")
    message = f"{subject} {be} not supported and {be} ignored: {reason}{also}"
    fix = f"remove the {attributes} to silence this warning"
    return first.problem(f"unsupported.{tag}.{topic}", message, fix, Severity.WARNING)


def _sensor_problem(section: Node) -> Iterator[Problem]:
    if section.children:
        message = f"{pluralize(len(section.children), 'sensor is', 'sensors are')} ignored"
        yield section.problem("unsupported.sensor", message, "define sensors with hybridsim instead", Severity.WARNING)


def _keyframe_problem(section: Node, home: list[Node]) -> Iterator[Problem]:
    others = [node for node in section.children if node not in home]
    if others:
        count = pluralize(len(others), "keyframe is", "keyframes are")
        yield others[0].problem(
            "unsupported.key",
            f"{count} ignored: {name_list([node.get('name') for node in others])}",
            "remove them; the home configuration is the keyframe 'home' of the main model",
            Severity.WARNING,
        )


def _enum_label(member: Any) -> str:
    """Label of an enum member: `filter` for mjDYN_FILTER."""
    return member.name.split("_", 1)[1].lower()
