"""URDF mimic joints: chains are resolved to their independent joint, invalid ones are reported."""

from collections.abc import Mapping
from dataclasses import replace

from hybridsim.core.messages import name_list, spelling_suggestion
from hybridsim.io.attributes import Reader
from hybridsim.io.urdf.read_elements import Joint
from hybridsim.io.xml import Element
from hybridsim.model.specs import ONE_DOF_JOINTS, JointKind, JointSpec

RANGE_SLACK = 0.01
"""Fraction of a mimic joint's range by which it may exceed its limits without a warning, for rounding in files."""


def resolve_mimics(reader: Reader, joints: Mapping[str, Joint]) -> None:
    """Make every mimic joint follow an independent joint, with composed ratio and offset.

    Args:
        reader: collects the problems.
        joints: the joints by name; an invalid `<mimic>` is removed.
    """
    for joint in joints.values():
        if joint.spec.mimic and not _check_mimic(reader, joint, joints):
            joint.spec.mimic = ""
    for joint in joints.values():
        _break_cycle(reader, joint, joints)
    in_file = {name: joint.spec for name, joint in joints.items()}
    for joint in joints.values():
        if joint.spec.mimic:
            joint.spec = _resolve_chain(joint.spec, in_file)
            _check_range(reader, joint, in_file[joint.spec.mimic])


def compose_mimics(ratio: float, offset: float, master_ratio: float, master_offset: float) -> tuple[float, float]:
    """Ratio and offset of a mimic joint with respect to the master of its master."""
    return ratio * master_ratio, ratio * master_offset + offset


def _check_mimic(reader: Reader, joint: Joint, joints: Mapping[str, Joint]) -> bool:
    spec, master = joint.spec, joints.get(joint.spec.mimic)
    where = f"joint {joint.name!r} mimics {spec.mimic!r}"
    if spec.kind is JointKind.FIXED:
        reader.warn(_mimic(joint), "mimic.fixed", f"{where} but is fixed; <mimic> is ignored", "remove the <mimic>")
    elif master is None:
        fix = spelling_suggestion(spec.mimic, joints) or f"the joints are {name_list(joints)}"
        reader.report(_mimic(joint), "mimic.unknown", f"{where}, which does not exist", fix)
    elif spec.kind not in ONE_DOF_JOINTS or master.spec.kind not in ONE_DOF_JOINTS:
        unsupported = joint if spec.kind not in ONE_DOF_JOINTS else master
        message = f"{where}, but joint {unsupported.name!r} is {unsupported.spec.kind}"
        fix = "only revolute, continuous and prismatic joints can mimic each other"
        reader.report(_mimic(joint), "mimic.kind", message, fix)
    else:
        return True
    return False


def _break_cycle(reader: Reader, joint: Joint, joints: Mapping[str, Joint]) -> None:
    chain = [joint]
    while (master := chain[-1].spec.mimic) and joints[master] is not joint and len(chain) <= len(joints):
        chain.append(joints[master])
    if not master or joints[master] is not joint:
        return  # the chain ends, or contains a cycle without this joint
    if len(chain) == 1:
        message = f"joint {joint.name!r} mimics itself"
        reader.report(_mimic(joint), "mimic.self", message, "name another joint, or remove the <mimic>")
    else:
        cycle = " → ".join(repr(part.name) for part in [*chain, joint])
        fix = "remove the <mimic> of the actuated joint"
        reader.report(_mimic(joint), "mimic.cycle", f"mimic joints form a cycle: {cycle}", fix)
    for part in chain:
        part.spec.mimic = ""


def _resolve_chain(spec: JointSpec, in_file: Mapping[str, JointSpec]) -> JointSpec:
    master, ratio, offset = spec.mimic, spec.mimic_ratio, spec.mimic_offset
    while in_file[master].mimic:
        ratio, offset = compose_mimics(ratio, offset, in_file[master].mimic_ratio, in_file[master].mimic_offset)
        master = in_file[master].mimic
    return replace(spec, mimic=master, mimic_ratio=ratio, mimic_offset=offset)


def _check_range(reader: Reader, joint: Joint, master: JointSpec) -> None:
    spec = joint.spec
    ratio, lower, upper = spec.mimic_ratio, spec.lower, spec.upper
    # the range of the master may be infinite, and 0 · inf is NaN
    ends = [spec.mimic_offset + (ratio * end if ratio else 0.0) for end in (master.lower, master.upper)]
    low, high = min(ends), max(ends)
    slack = RANGE_SLACK * (upper - lower)
    if lower <= upper and (low < lower - slack or high > upper + slack):
        reader.warn(
            _mimic(joint),
            "mimic.range",
            f"joint {joint.name!r} mimics {master.name!r}, whose range moves it from {low:g} to {high:g}, "
            f"beyond its own limits {lower:g} to {upper:g}",
            f"extend its limits, or restrict those of {master.name!r}",
        )


def _mimic(joint: Joint) -> Element:
    return joint.element.child("mimic") or joint.element
