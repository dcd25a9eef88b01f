"""URDF reader: parses and validates a file and returns a model description."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from hybridsim.core.errors import ModelError, Problem, Severity
from hybridsim.io.attributes import Reader
from hybridsim.io.load_options import InertiaPolicy, LoadOptions, option_hint
from hybridsim.io.paths import resolve_uri
from hybridsim.io.urdf.dof_attributes import DOF_ATTRIBUTES
from hybridsim.io.urdf.read_elements import Joint, Link, read_joint, read_link
from hybridsim.io.urdf.read_geometry import read_shapes
from hybridsim.io.urdf.read_ignored import reject_xacro, report_ignored
from hybridsim.io.urdf.read_inertia import FROM_GEOMETRY, resolve_inertia
from hybridsim.io.urdf.read_lint import lint
from hybridsim.io.urdf.read_mimic import resolve_mimics
from hybridsim.io.urdf.read_tree import TreeLink, build_tree, index_by_name
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

_ELEMENT_OF_CODE = {"axis.": "axis", "limit.": "limit"}
_ELEMENT_OF_CODE |= {f"{parameter}.": tag for parameter, (tag, _) in DOF_ATTRIBUTES.items()}
"""Child element of a joint that holds the value at fault, by prefix of the problem code."""


def read_urdf(path: str | Path, robot: Element, options: LoadOptions) -> tuple[ModelSpec, list[Problem]]:
    """Description of a robot, and all errors and warnings about its file.

    Names of links and joints are preserved. The description can be assembled if there is no error.

    Args:
        path: the URDF file; mesh paths are relative to it.
        robot: root element of the file.
        options: load options; the caller applies `merge` and `tolerate`.

    Raises:
        ModelError: the file is too large or contains unexpanded xacro.
    """
    path, reader = Path(path), Reader()
    _check_root(reader, robot)

    @cache  # meshes are often shared between links
    def resolve(uri: str) -> Path | Problem:
        return resolve_uri(uri, path, options.packages, options.allowed_folders)

    links = index_by_name(reader, [read_link(reader, element) for element in robot.children_with_tag("link")], "link")
    for link in links.values():
        link.shapes = read_shapes(reader, link.element, link.name, resolve)
    joints = [read_joint(reader, element) for element in robot.children_with_tag("joint")]
    by_name = index_by_name(reader, joints, "joint")
    resolve_mimics(reader, by_name)
    tree_links = build_tree(reader, robot, links, joints)

    spec = ModelSpec(robot.get("name") or path.stem)
    _add_bodies(reader, spec, tree_links, options)
    spec.geoms = _with_unique_names([geom for link, _ in tree_links for geom in link.shapes])
    static = _static_bodies(spec)
    _drop_placeholder_inertias(spec, static)
    report_ignored(reader, robot, joints)
    check_units(reader, tree_links, static)
    _check_mobility(reader, robot, spec, options)
    reader.problems += _remaining_problems(spec, links, by_name, reader.problems, options.inertia)
    return spec, sorted(reader.problems, key=lambda p: (p.line, [*Severity].index(p.severity)))


def _check_root(reader: Reader, robot: Element) -> None:
    if (
        sum(1 for _ in robot.children_with_tag("link")) > MAX_LINKS
        or sum(1 for _ in robot.children_with_tag("joint")) > MAX_LINKS
    ):
        message = f"the robot has more than {MAX_LINKS} links or joints"
        raise ModelError([Problem(message, "split the model", robot.file, robot.line, code="urdf.size")])
    reject_xacro(robot)
    lint(reader, robot)
    if not robot.get("name"):
        reader.warn(robot, "name.missing", "the robot has no name", '<robot name="...">')


def _add_bodies(reader: Reader, spec: ModelSpec, tree_links: list[TreeLink], options: LoadOptions) -> None:
    joint_names = {joint.name for _, joint in tree_links if joint is not None}
    for k, (link, joint) in enumerate(tree_links):
        if link.name == WORLD_NAME and joint is None:
            if options.base == "free":
                reader.report(
                    link.element,
                    "base.world",
                    f"the root link {WORLD_NAME!r} cannot be free",
                    f"load the file with {option_hint('base', 'fixed')}, or rename the link",
                )
            continue
        if joint is None:
            free = options.base == "free" and k == 0
            name = "root" if "root" not in joint_names else f"{link.name}_{'free' if free else 'fixed'}"
            joint_spec = JointSpec(name, JointKind.FREE if free else JointKind.FIXED, source=link.source)
            parent, placement = WORLD_NAME, identity_pose()
        else:
            joint_spec, parent, placement = joint.spec, joint.parent, joint.placement
            if joint_spec.kind is JointKind.FREE and options.base == "fixed" and parent == tree_links[0][0].name:
                parent = WORLD_NAME  # the root coincides with the world
        moving = joint_spec.kind is not JointKind.FIXED
        inertial = resolve_inertia(reader, link, moving, options.inertia)
        spec.bodies.append(
            BodySpec(link.name, parent, joint_spec, placement, inertial, link.source, link.inertial_source)
        )


def _static_bodies(spec: ModelSpec) -> set[str]:
    """The world and all bodies fixed to it."""
    static = {WORLD_NAME}
    for body in spec.bodies:
        if body.parent in static and body.joint.kind is JointKind.FIXED:
            static.add(body.name)
    return static


def _drop_placeholder_inertias(spec: ModelSpec, static: set[str]) -> None:
    """Remove placeholder inertias of static links without mass, which are common in files."""
    for body in spec.bodies:
        if body.name in static and body.inertial.mass == 0.0:
            body.inertial = Inertial()


def _check_mobility(reader: Reader, robot: Element, spec: ModelSpec, options: LoadOptions) -> None:
    if any(body.joint.kind is not JointKind.FIXED for body in spec.bodies):
        return
    if any(problem.severity is Severity.ERROR for problem in reader.problems):
        return  # the erroneous joint may be the one that moves
    if not spec.bodies:
        reader.report(robot, "tree.empty", f"robot {spec.name!r} has no link besides the world", "add a <link>")
        return
    fix = "add a joint that is not fixed"
    rooted_in_world = spec.bodies[0].joint.name in {element.get("name") for element in robot.children_with_tag("joint")}
    if options.base == "fixed" and not rooted_in_world:
        fix = f"load the file with {option_hint('base', 'free')} for a free-floating base, or {fix}"
    reader.report(robot, "tree.static", f"robot {spec.name!r} has no movable joint", fix)


def _remaining_problems(
    spec: ModelSpec,
    links: Mapping[str, Link],
    joints: Mapping[str, Joint],
    reported: list[Problem],
    policy: InertiaPolicy,
) -> list[Problem]:
    """Problems of the description that have not been reported while reading the file, in URDF terms."""
    without_inertia = {problem.element for problem in reported if problem.code.startswith("inertial.")}
    skipped = {"name.duplicate", "tree.static"} | ({p.code for p in reported} & {"units.length"})
    remaining = []
    for problem in model_problems(spec) if spec.bodies else ():
        about_mass = problem.code in ("mass.zero_with_inertia", "mass.massless_subtree", "joint.singular")
        if problem.code in skipped or (about_mass and problem.element in without_inertia):
            continue
        if problem.code in ("mass.massless_subtree", "joint.singular"):
            problem = _with_inertia_fix(problem, links[problem.element], policy)
        remaining.append(_with_element_line(problem, joints))
    return remaining


def _with_inertia_fix(problem: Problem, link: Link, policy: InertiaPolicy) -> Problem:
    """A problem of a link without inertia, in URDF terms, with a fix."""
    inertial = link.inertial
    if inertial is None and problem.code == "mass.massless_subtree":
        message = f"link {link.name!r} has no <inertial>, and its descendants are massless"
        return replace(problem, code="inertial.missing", message=message, fix=f"add an <inertial>, or {FROM_GEOMETRY}")
    is_missing = inertial is None or inertial.mass == 0.0 or not inertial.inertia.any()
    return replace(problem, fix=f"{problem.fix}; or {FROM_GEOMETRY}") if is_missing and policy == "file" else problem


def _with_element_line(problem: Problem, joints: Mapping[str, Joint]) -> Problem:
    """The problem at the line of the element that holds the value instead of that of its joint."""
    tag = next((tag for prefix, tag in _ELEMENT_OF_CODE.items() if problem.code.startswith(prefix)), "")
    joint = joints.get(problem.element) if tag else None
    element = joint.element.child(tag) if joint is not None else None
    if joint is None or element is None:
        return problem
    fix = problem.fix
    if problem.code == "limit.order":
        remedy = 'use type="continuous"' if joint.spec.kind is JointKind.REVOLUTE else "omit both"
        fix += f"; for a joint without limits {remedy}"
    return replace(problem, line=element.line, fix=fix)


def _with_unique_names(geoms: list[GeomSpec]) -> list[GeomSpec]:
    """Shapes with unique names; URDF allows duplicates."""
    used: set[str] = set()
    repeats: dict[str, int] = {}
    for geom in geoms:
        name = geom.name
        while geom.name in used:
            repeats[name] = repeats.get(name, 0) + 1
            geom.name = f"{name}_{repeats[name]}"
        used.add(geom.name)
    return geoms
