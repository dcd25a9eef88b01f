"""URDF joints that follow others: chains are shortened to their head, and what makes no sense is reported."""

from collections.abc import Mapping
from dataclasses import replace

from hybridsim.core.messages import did_you_mean
from hybridsim.io.attributes import Reader
from hybridsim.io.urdf.read_elements import Joint
from hybridsim.io.xml import Element
from hybridsim.model.specs import JointKind, JointSpec

RANGE_SLACK = 0.01
"""Share of a joint's own range by which its master may lead it beyond its limits: files round."""

_ONE_DOF = (JointKind.REVOLUTE, JointKind.CONTINUOUS, JointKind.PRISMATIC)


def settle_mimics(reader: Reader, joints: Mapping[str, Joint]) -> None:
    """Let every joint with a `<mimic>` follow one that moves on its own, ratios and offsets put together.

    Args:
        reader: collects the problems.
        joints: the joints by name; those whose `<mimic>` cannot be used lose it.
    """
    for joint in joints.values():
        if joint.spec.mimic and not _is_sound(reader, joint, joints):
            joint.spec.mimic = ""
    for joint in joints.values():
        _break_circle(reader, joint, joints)
    in_file = {name: joint.spec for name, joint in joints.items()}
    for joint in joints.values():
        if joint.spec.mimic:
            joint.spec = _led_by_head(joint.spec, in_file)
            _check_range(reader, joint, in_file[joint.spec.mimic])


def composed(ratio: float, offset: float, master_ratio: float, master_offset: float) -> tuple[float, float]:
    """Ratio and offset of a joint to the one that its master follows."""
    return ratio * master_ratio, ratio * master_offset + offset


def _is_sound(reader: Reader, joint: Joint, joints: Mapping[str, Joint]) -> bool:
    spec, master = joint.spec, joints.get(joint.spec.mimic)
    what = f"joint {joint.name!r} mimics {spec.mimic!r}"
    if spec.kind is JointKind.FIXED:
        reader.warn(_mimic(joint), "mimic.fixed", f"{what}, but is fixed: the <mimic> is ignored", "remove the <mimic>")
    elif master is None:
        fix = did_you_mean(spec.mimic, joints) or "name one of the joints"
        reader.report(_mimic(joint), "mimic.unknown", f"{what}, but there is no such joint", fix)
    elif spec.kind not in _ONE_DOF or master.spec.kind not in _ONE_DOF:
        which = joint if spec.kind not in _ONE_DOF else master
        message = f"{what}, but joint {which.name!r} is {which.spec.kind}"
        fix = "mimic works between revolute, continuous and prismatic joints; a joint that follows a fixed one is fixed"
        reader.report(_mimic(joint), "mimic.kind", message, fix)
    else:
        return True
    return False


def _break_circle(reader: Reader, joint: Joint, joints: Mapping[str, Joint]) -> None:
    chain = [joint]
    while (master := chain[-1].spec.mimic) and joints[master] is not joint and len(chain) <= len(joints):
        chain.append(joints[master])
    if not master or joints[master] is not joint:
        return  # it ends, or goes round without this joint
    if len(chain) == 1:
        message = f"joint {joint.name!r} mimics itself"
        reader.report(_mimic(joint), "mimic.self", message, "name another joint, or remove the <mimic>")
    else:
        round_trip = " → ".join(repr(part.name) for part in [*chain, joint])
        fix = "remove the <mimic> of the joint that is driven; the others then follow it"
        reader.report(_mimic(joint), "mimic.circle", f"joints mimic each other in a circle: {round_trip}", fix)
    for part in chain:
        part.spec.mimic = ""


def _led_by_head(spec: JointSpec, in_file: Mapping[str, JointSpec]) -> JointSpec:
    master, ratio, offset = spec.mimic, spec.mimic_ratio, spec.mimic_offset
    while in_file[master].mimic:
        ratio, offset = composed(ratio, offset, in_file[master].mimic_ratio, in_file[master].mimic_offset)
        master = in_file[master].mimic
    return replace(spec, mimic=master, mimic_ratio=ratio, mimic_offset=offset)


def _check_range(reader: Reader, joint: Joint, master: JointSpec) -> None:
    spec = joint.spec
    ratio, lower, upper = spec.mimic_ratio, spec.lower, spec.upper
    # a ratio of zero holds the joint still, however far its master goes
    ends = [spec.mimic_offset + (ratio * end if ratio else 0.0) for end in (master.lower, master.upper)]
    low, high = min(ends), max(ends)
    slack = RANGE_SLACK * (upper - lower)
    if lower <= upper and (low < lower - slack or high > upper + slack):
        reader.warn(
            _mimic(joint),
            "mimic.range",
            f"joint {joint.name!r} mimics {master.name!r}, which leads it from {low:g} to {high:g}, "
            f"beyond its own limits {lower:g} to {upper:g}",
            f"widen its limits, or narrow those of {master.name!r}",
        )


def _mimic(joint: Joint) -> Element:
    return joint.element.child("mimic") or joint.element
