"""Reading URDF: robot files of ROS, checked completely and turned into a model description."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Literal, get_args

from hybridsim.core.errors import ModelError, Problem, Severity
from hybridsim.io import xml
from hybridsim.io.numbers import Reader
from hybridsim.io.paths import resolve_mesh
from hybridsim.io.urdf_elements import Joint, Link, lint, nearest, read_joint, read_link
from hybridsim.io.urdf_geometry import read_shapes
from hybridsim.io.urdf_inertia import InertiaPolicy, check_density, settle_inertia
from hybridsim.io.urdf_tree import Branch, tree, unique
from hybridsim.io.xml import Element
from hybridsim.model.inertial import Inertial
from hybridsim.model.specs import (
    WORLD_NAME,
    BodySpec,
    GeomSpec,
    JointKind,
    JointSpec,
    ModelSpec,
    identity_pose,
)
from hybridsim.model.validate import problems_of

Base = Literal["fixed", "free"]

MAX_LINKS = 2000


def read_urdf(
    path: str | Path,
    *,
    base: Base = "fixed",
    inertia: InertiaPolicy = "file",
    packages: Mapping[str, str | Path] | None = None,
    allowed: Sequence[str | Path] = (),
) -> tuple[ModelSpec, list[Problem]]:
    """Description of a robot and everything that is wrong or doubtful about its file.

    Links and joints keep their names. The description can be assembled if no problem is an error.

    Args:
        path: the URDF file.
        base: whether the root link is fixed to the world or moves freely. A root called `world` is the world.
        inertia: what to do about moving links without mass or inertia: `file` takes what is there,
            `from_geometry` computes it from the collision shapes, `error` makes it an error.
        packages: folders of ROS packages by name, for `package://` paths; others are searched above the file.
        allowed: folders outside the model's own that meshes may lie in.

    Raises:
        ModelError: the file cannot be read, is not XML or not URDF at all.
    """
    if base not in get_args(Base) or inertia not in get_args(InertiaPolicy):
        raise ValueError(f"base is one of {get_args(Base)}, inertia one of {get_args(InertiaPolicy)}")
    _, robot = xml.read(path)
    return describe(robot, Path(path), base, inertia, packages, allowed)


def describe(
    robot: Element,
    path: Path,
    base: Base,
    inertia: InertiaPolicy,
    packages: Mapping[str, str | Path] | None,
    allowed: Sequence[str | Path],
) -> tuple[ModelSpec, list[Problem]]:
    """What `read_urdf` does with the parsed file; arguments as there."""
    reader = Reader()
    _check_root(reader, robot)

    @cache  # links often share meshes
    def resolve(uri: str) -> Path | Problem:
        return resolve_mesh(uri, path, packages, allowed)

    links = unique(reader, [read_link(reader, element) for element in robot.all("link")], "link")
    for link in links.values():
        link.shapes = read_shapes(reader, link.element, link.name, resolve)
    joints = [read_joint(reader, element) for element in robot.all("joint")]
    _check_mimics(reader, joints, unique(reader, joints, "joint"))
    branches = tree(reader, robot, links, joints)

    spec = ModelSpec(robot.get("name") or path.stem)
    _add_bodies(reader, spec, branches, base, inertia)
    spec.geoms = _uniquely_named([geom for link, _ in branches for geom in link.shapes])
    check_density(reader, links.values())
    if spec.bodies:
        reader.problems += _remaining_problems(spec, links, reader.problems)
    elif not any(p.severity is Severity.ERROR for p in reader.problems):
        reader.report(robot, "tree.empty", f"robot {spec.name!r} has no link that could move", "add a <link>")
    return spec, sorted(reader.problems, key=lambda p: (p.line, p.severity is Severity.WARNING))


def _check_root(reader: Reader, robot: Element) -> None:
    fatal = None
    if robot.tag != "robot":
        fatal = Problem(
            f"a URDF file starts with <robot>, this one with <{robot.tag}>",
            "name a URDF file",
            code="urdf.root",
        )
    elif sum(1 for _ in robot.all("link")) > MAX_LINKS or sum(1 for _ in robot.all("joint")) > MAX_LINKS:
        fatal = Problem(f"the robot has more than {MAX_LINKS} links or joints", "split the model", code="urdf.size")
    if fatal:
        raise ModelError([replace(fatal, file=robot.file, line=robot.line)])
    lint(reader, robot)
    if not robot.get("name"):
        reader.warn(robot, "name.missing", "the robot has no name", '<robot name="...">')
    for child in robot.children:
        if child.tag.startswith("xacro:"):
            reader.report(
                child,
                "urdf.xacro",
                f"<{child.tag}> is a xacro command, which a URDF file cannot have",
                "expand the file first: xacro model.xacro > model.urdf",
            )


def _check_mimics(reader: Reader, joints: list[Joint], by_name: dict[str, Joint]) -> None:
    for joint in joints:
        if joint.spec.mimic and joint.spec.mimic not in by_name:
            reader.report(
                joint.element.child("mimic") or joint.element,
                "mimic.unknown",
                f"joint {joint.name!r} mimics {joint.spec.mimic!r}, but there is no such joint",
                nearest(joint.spec.mimic, by_name) or "name one of the joints",
            )
            joint.spec.mimic = ""


def _add_bodies(reader: Reader, spec: ModelSpec, branches: list[Branch], base: Base, inertia: InertiaPolicy) -> None:
    taken = {joint.name for _, joint in branches if joint is not None}
    for k, (link, joint) in enumerate(branches):
        if link.name == WORLD_NAME and joint is None:
            if base == "free":
                reader.report(
                    link.element,
                    "base.world",
                    f"the root link is {WORLD_NAME!r}, which cannot move freely",
                    "read the file with base='fixed', or rename the link",
                )
            continue
        if joint is None:
            free = base == "free" and k == 0
            name = "root" if "root" not in taken else f"{link.name}_{'free' if free else 'fixed'}"
            joint_spec = JointSpec(name, JointKind.FREE if free else JointKind.FIXED, source=link.source)
            parent, placement = WORLD_NAME, identity_pose()
        else:
            joint_spec, parent, placement = joint.spec, joint.parent, joint.placement
            if joint_spec.kind is JointKind.FREE and base == "fixed" and parent == branches[0][0].name:
                parent = WORLD_NAME  # where the root is
        moving = joint_spec.kind is not JointKind.FIXED
        inertial = settle_inertia(reader, link, moving, inertia)
        spec.bodies.append(
            BodySpec(link.name, parent, joint_spec, placement, inertial, link.source, link.inertial_source)
        )
    _drop_inertia_of_static_links(spec)


def _drop_inertia_of_static_links(spec: ModelSpec) -> None:
    """A mass of zero marks a static link in many files; the token inertia beside it means nothing."""
    static = {WORLD_NAME}
    for body in spec.bodies:
        if body.parent in static and body.joint.kind is JointKind.FIXED:
            static.add(body.name)
            if body.inertial.mass == 0.0:
                body.inertial = Inertial()


def _remaining_problems(spec: ModelSpec, links: dict[str, Link], found: list[Problem]) -> list[Problem]:
    """Problems of the assembled description, except those that reading the file has already shown."""
    lines_without_inertia = {p.line for p in found if p.code.startswith("inertial.")}
    remaining = []
    for problem in problems_of(spec):
        if problem.code == "name.duplicate":
            continue
        if problem.code == "mass.zero_with_inertia" and problem.line in lines_without_inertia:
            continue
        if problem.code in ("mass.nothing_carried", "joint.singular"):
            link = next(ln for ln in links.values() if f"body {ln.name!r}" in problem.message)
            if link.inertial_source.line in lines_without_inertia:
                continue
            if link.inertial is None and problem.code == "mass.nothing_carried":
                message = f"link {link.name!r} has no <inertial>, and nothing below it has mass"
                problem = replace(problem, code="inertial.missing", message=message)
                problem = replace(problem, fix="add an <inertial>, or read the file with inertia='from_geometry'")
            else:
                fix = f"{problem.fix}; inertia='from_geometry' computes it from the collision shapes"
                problem = replace(problem, fix=fix)
        remaining.append(problem)
    return remaining


def _uniquely_named(geoms: list[GeomSpec]) -> list[GeomSpec]:
    """Shapes with distinct names; URDF lets them share one."""
    used: set[str] = set()
    repeats: dict[str, int] = {}
    for geom in geoms:
        name = geom.name
        while geom.name in used:
            repeats[name] = repeats.get(name, 0) + 1
            geom.name = f"{name}_{repeats[name]}"
        used.add(geom.name)
    return geoms
