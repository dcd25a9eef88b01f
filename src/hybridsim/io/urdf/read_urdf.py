"""Reading URDF: robot files of ROS, checked completely and turned into a model description."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from hybridsim.core.errors import ModelError, Problem, Severity
from hybridsim.io.attributes import Reader
from hybridsim.io.load_options import InertiaPolicy, Options, setting
from hybridsim.io.paths import resolve_mesh
from hybridsim.io.urdf.read_elements import Joint, Link, read_joint, read_link
from hybridsim.io.urdf.read_geometry import read_shapes
from hybridsim.io.urdf.read_ignored import refuse_xacro, report_ignored
from hybridsim.io.urdf.read_inertia import FROM_GEOMETRY, settle_inertia
from hybridsim.io.urdf.read_lint import lint
from hybridsim.io.urdf.read_mimic import settle_mimics
from hybridsim.io.urdf.read_tree import Branch, tree, unique
from hybridsim.io.urdf.read_units import check_units
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
from hybridsim.model.validate import model_problems

MAX_LINKS = 2000

_PLACES = {
    "axis.": "axis",
    "limit.": "limit",
    "effort_limit.": "limit",
    "damping.": "dynamics",
    "friction.": "dynamics",
}
"""Where in a joint the values stand that a problem with such a code is about."""


def read_urdf(path: str | Path, robot: Element, options: Options) -> tuple[ModelSpec, list[Problem]]:
    """Description of a robot and everything that is wrong or doubtful about its file.

    Links and joints keep their names. The description can be assembled if no problem is an error.

    Args:
        path: the URDF file; meshes are looked for around it.
        robot: its root element.
        options: how to read it; merging and leniency are left to the caller.

    Raises:
        ModelError: the file is not URDF at all, or not yet.
    """
    path, reader = Path(path), Reader()
    _check_root(reader, robot)

    @cache  # links often share meshes
    def resolve(uri: str) -> Path | Problem:
        return resolve_mesh(uri, path, options.packages, options.allowed)

    links = unique(reader, [read_link(reader, element) for element in robot.all("link")], "link")
    for link in links.values():
        link.shapes = read_shapes(reader, link.element, link.name, resolve)
    joints = [read_joint(reader, element) for element in robot.all("joint")]
    by_name = unique(reader, joints, "joint")
    settle_mimics(reader, by_name)
    branches = tree(reader, robot, links, joints)

    spec = ModelSpec(robot.get("name") or path.stem)
    _add_bodies(reader, spec, branches, options)
    spec.geoms = _uniquely_named([geom for link, _ in branches for geom in link.shapes])
    static = _static_bodies(spec)
    _drop_token_inertias(spec, static)
    report_ignored(reader, robot, joints)
    check_units(reader, branches, static)
    _check_mobility(reader, robot, spec, options)
    reader.problems += _remaining_problems(spec, links, by_name, reader.problems, options.inertia)
    return spec, sorted(reader.problems, key=lambda p: (p.line, [*Severity].index(p.severity)))


def _check_root(reader: Reader, robot: Element) -> None:
    if sum(1 for _ in robot.all("link")) > MAX_LINKS or sum(1 for _ in robot.all("joint")) > MAX_LINKS:
        message = f"the robot has more than {MAX_LINKS} links or joints"
        raise ModelError([Problem(message, "split the model", robot.file, robot.line, code="urdf.size")])
    refuse_xacro(robot)
    lint(reader, robot)
    if not robot.get("name"):
        reader.warn(robot, "name.missing", "the robot has no name", '<robot name="...">')


def _add_bodies(reader: Reader, spec: ModelSpec, branches: list[Branch], options: Options) -> None:
    taken = {joint.name for _, joint in branches if joint is not None}
    for k, (link, joint) in enumerate(branches):
        if link.name == WORLD_NAME and joint is None:
            if options.base == "free":
                reader.report(
                    link.element,
                    "base.world",
                    f"the root link is {WORLD_NAME!r}, which cannot move freely",
                    f"read the file with {setting('base', 'fixed')}, or rename the link",
                )
            continue
        if joint is None:
            free = options.base == "free" and k == 0
            name = "root" if "root" not in taken else f"{link.name}_{'free' if free else 'fixed'}"
            joint_spec = JointSpec(name, JointKind.FREE if free else JointKind.FIXED, source=link.source)
            parent, placement = WORLD_NAME, identity_pose()
        else:
            joint_spec, parent, placement = joint.spec, joint.parent, joint.placement
            if joint_spec.kind is JointKind.FREE and options.base == "fixed" and parent == branches[0][0].name:
                parent = WORLD_NAME  # where the root is
        moving = joint_spec.kind is not JointKind.FIXED
        inertial = settle_inertia(reader, link, moving, options.inertia)
        spec.bodies.append(
            BodySpec(link.name, parent, joint_spec, placement, inertial, link.source, link.inertial_source)
        )


def _static_bodies(spec: ModelSpec) -> set[str]:
    """The world and everything that is fixed to it."""
    static = {WORLD_NAME}
    for body in spec.bodies:
        if body.parent in static and body.joint.kind is JointKind.FIXED:
            static.add(body.name)
    return static


def _drop_token_inertias(spec: ModelSpec, static: set[str]) -> None:
    """A mass of zero marks a static link in many files; the token inertia beside it means nothing."""
    for body in spec.bodies:
        if body.name in static and body.inertial.mass == 0.0:
            body.inertial = Inertial()


def _check_mobility(reader: Reader, robot: Element, spec: ModelSpec, options: Options) -> None:
    if any(body.joint.kind is not JointKind.FIXED for body in spec.bodies):
        return
    if any(problem.severity is Severity.ERROR for problem in reader.problems):
        return  # a joint that cannot be read may be the one that moves
    if not spec.bodies:
        reader.report(robot, "tree.empty", f"robot {spec.name!r} has no link that could move", "add a <link>")
        return
    fix = "give it a joint that moves"
    rooted_in_world = spec.bodies[0].joint.name in {element.get("name") for element in robot.all("joint")}
    if options.base == "fixed" and not rooted_in_world:
        fix = f"to let it move as a whole, read the file with {setting('base', 'free')}; or {fix}"
    reader.report(robot, "tree.static", f"nothing in robot {spec.name!r} can move: it has no moving joint", fix)


def _remaining_problems(
    spec: ModelSpec,
    links: Mapping[str, Link],
    joints: Mapping[str, Joint],
    found: list[Problem],
    policy: InertiaPolicy,
) -> list[Problem]:
    """Problems of the description that reading the file has not shown yet, with what URDF calls things."""
    without_inertia = {problem.element for problem in found if problem.code.startswith("inertial.")}
    told = {"name.duplicate", "tree.static"} | ({p.code for p in found} & {"units.length"})
    remaining = []
    for problem in model_problems(spec) if spec.bodies else ():
        about_mass = problem.code in ("mass.zero_with_inertia", "mass.nothing_carried", "joint.singular")
        if problem.code in told or (about_mass and problem.element in without_inertia):
            continue
        if problem.code in ("mass.nothing_carried", "joint.singular"):
            problem = _with_a_way_out(problem, links[problem.element], policy)
        remaining.append(_at_its_element(problem, joints))
    return remaining


def _with_a_way_out(problem: Problem, link: Link, policy: InertiaPolicy) -> Problem:
    """A problem of a link that nothing can be accelerated with, as URDF calls it, and what would help."""
    inertial = link.inertial
    if inertial is None and problem.code == "mass.nothing_carried":
        message = f"link {link.name!r} has no <inertial>, and nothing below it has mass"
        return replace(problem, code="inertial.missing", message=message, fix=f"add an <inertial>, or {FROM_GEOMETRY}")
    is_missing = inertial is None or inertial.mass == 0.0 or not inertial.inertia.any()
    return replace(problem, fix=f"{problem.fix}; or {FROM_GEOMETRY}") if is_missing and policy == "file" else problem


def _at_its_element(problem: Problem, joints: Mapping[str, Joint]) -> Problem:
    """The problem at the line of the element that holds the value, not at that of the whole joint."""
    tag = next((tag for begin, tag in _PLACES.items() if problem.code.startswith(begin)), "")
    joint = joints.get(problem.element) if tag else None
    element = joint.element.child(tag) if joint is not None else None
    if joint is None or element is None:
        return problem
    fix = problem.fix
    if problem.code == "limit.order":
        without = 'is type="continuous"' if joint.spec.kind is JointKind.REVOLUTE else "leaves both out"
        fix += f"; a joint without limits {without}"
    return replace(problem, line=element.line, fix=fix)


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
