"""Checks of URDF tags and attributes against the known ones, to detect misspellings."""

from hybridsim.core.messages import spelling_suggestion
from hybridsim.io.attributes import Reader
from hybridsim.io.urdf.dof_attributes import DOF_ATTRIBUTES
from hybridsim.io.xml import Element

INERTIA_ENTRIES = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")

_KNOWN_TAGS = {
    "robot": {
        "link",
        "joint",
        "material",
        "transmission",
        "gazebo",
        "sensor",
        "mujoco",
        "ros2_control",
        "deformable",
    },
    "link": {"inertial", "visual", "collision", "contact", "gazebo", "sensor", "material", "verbose"},
    "joint": {
        *("origin", "parent", "child", "axis", "axis2", "limit", "dynamics", "mimic"),
        *("calibration", "safety_controller", "joint_properties", "gazebo", "hardwareInterface"),
    },
    "inertial": {"origin", "mass", "inertia"},
}
_KNOWN_ATTRIBUTES = {
    "origin": {"xyz", "rpy"},
    "mass": {"value"},
    "inertia": set(INERTIA_ENTRIES),
    "axis": {"xyz"},
    "limit": {"lower", "upper", "velocity"},
    "dynamics": set(),
    "mimic": {"joint", "multiplier", "offset"},
}
for _tag, _attribute in DOF_ATTRIBUTES.values():
    _KNOWN_ATTRIBUTES.setdefault(_tag, set()).add(_attribute)
_SINGLE_TAGS = {
    "inertial",
    "origin",
    "parent",
    "child",
    "axis",
    "limit",
    "dynamics",
    "mimic",
    "mass",
    "inertia",
}


def lint(reader: Reader, element: Element) -> None:
    """Warn about unknown tags and attributes, which are usually misspelt, and about repeated elements."""
    known = _KNOWN_TAGS[element.tag]
    seen: dict[str, Element] = {}
    for child in element.children:
        first = seen.setdefault(child.tag, child)
        if first is not child and child.tag in _SINGLE_TAGS:
            reader.warn(
                child,
                "element.repeated",
                f"{element.title} has more than one <{child.tag}>; the first one (line {first.line}) is used",
                "remove one of them",
            )
        # tags with a namespace prefix are extensions of other tools
        if child.tag not in known and ":" not in child.tag:
            reader.warn(
                child,
                "element.unknown",
                f"unknown element <{child.tag}> in {element.title} is ignored",
                spelling_suggestion(child.tag, known) or f"<{element.tag}> may contain {', '.join(sorted(known))}",
            )
        elif child.tag in _KNOWN_ATTRIBUTES:
            attributes = _KNOWN_ATTRIBUTES[child.tag]
            for attribute in child.attributes.keys() - attributes:
                reader.warn(
                    child,
                    "attribute.unknown",
                    f"unknown attribute {attribute!r} of {child.title} is ignored",
                    spelling_suggestion(attribute, attributes)
                    or f"<{child.tag}> has the attributes {', '.join(sorted(attributes))}",
                )
