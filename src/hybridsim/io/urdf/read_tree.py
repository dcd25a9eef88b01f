"""Kinematic tree of URDF links and joints, with reports of loops, multiple roots and invalid joints."""

from collections.abc import Iterable, Sequence

from hybridsim.core.messages import pluralize, spelling_suggestion
from hybridsim.io.attributes import Reader
from hybridsim.io.urdf.read_elements import Joint, Link
from hybridsim.io.xml import Element
from hybridsim.model.specs import WORLD_NAME

TreeLink = tuple[Link, Joint | None]
"""A link of the tree and its joint to the parent; None for a root."""


def index_by_name(reader: Reader, parts: Iterable[Link | Joint], what: str) -> dict:
    """Links or joints by name; those with a duplicate name are reported and omitted."""
    named: dict[str, Link | Joint] = {}
    for part in parts:
        first = named.setdefault(part.name, part)
        if first is not part:
            reader.report(
                part.element,
                "name.duplicate",
                f"two {what}s are named {part.name!r} (first at line {first.element.line})",
                f"rename one {what}",
            )
    return named


def build_tree(reader: Reader, robot: Element, links: dict[str, Link], joints: Sequence[Joint]) -> list[TreeLink]:
    """Links in depth-first order, starting with the root; siblings are in the file order of their joints.

    Multiple roots, loops and invalid joints are reported; every link still occurs once, so that the rest of the
    description can be validated in the same pass.
    """
    if WORLD_NAME not in links and any(joint.parent == WORLD_NAME for joint in joints):
        links[WORLD_NAME] = Link(WORLD_NAME, robot)
    valid = [joint for joint in joints if _check_links(reader, joint, links)]
    parent_joints: dict[str, Joint] = {}
    extra_joints = []
    for joint in valid:
        if parent_joints.setdefault(joint.child, joint) is not joint:
            extra_joints.append(joint)
    for joint in extra_joints:
        _report_second_parent(reader, joint, parent_joints)

    children: dict[str, list[Joint]] = {}
    for joint in parent_joints.values():
        children.setdefault(joint.parent, []).append(joint)
    # a link whose joint is invalid is not a root: its joint has already been reported
    orphans = {joint.child for joint in joints} - parent_joints.keys()
    roots = [name for name in links if name not in parent_joints and name not in orphans]
    subtrees = {name: _subtree(name, links, children, set()) for name in roots}
    main = max(roots, key=lambda name: (name == WORLD_NAME, len(subtrees[name])), default="")
    for name in roots:
        if name != main:
            _report_second_root(reader, links[name], links[main], len(subtrees[name]))

    tree_links = subtrees.get(main, [])
    seen = {link.name for link, _ in tree_links}
    for start in [*roots, *(name for name in links if name in orphans)]:
        tree_links = tree_links + _subtree(start, links, children, seen)
    for name in links:  # the remaining links form loops
        if name not in seen:
            cycle = _cycle(name, parent_joints)
            _report_loop(reader, cycle)
            tree_links = tree_links + _subtree(cycle[0].child, links, children, seen)
    return tree_links


def _check_links(reader: Reader, joint: Joint, links: dict[str, Link]) -> bool:
    """Report links of a joint that do not exist or coincide; returns whether both are valid."""
    valid = True
    for end, name in (("parent", joint.parent), ("child", joint.child)):
        if name and name not in links:
            child = joint.element.child(end)
            reader.report(
                child if child is not None else joint.element,
                "joint.link",
                f"{end} link {name!r} of joint {joint.name!r} does not exist",
                spelling_suggestion(name, links) or f'add <link name="{name}">, or use the name of an existing link',
            )
        valid = valid and name in links
    if valid and joint.parent == joint.child:
        reader.report(
            joint.element,
            "tree.loop",
            f"joint {joint.name!r} connects link {joint.child!r} to itself",
            "specify two different links",
        )
        valid = False
    return valid


def _subtree(start: str, links: dict[str, Link], children: dict[str, list[Joint]], seen: set[str]) -> list[TreeLink]:
    """Links of a subtree depth first, added to `seen`; iterative, since a file can be arbitrarily deep."""
    tree_links: list[TreeLink] = []
    if start in seen:
        return tree_links
    seen.add(start)
    tree_links.append((links[start], None))
    stack = children.get(start, [])[::-1]
    while stack:
        joint = stack.pop()
        if joint.child not in seen:
            seen.add(joint.child)
            tree_links.append((links[joint.child], joint))
            stack += children.get(joint.child, [])[::-1]
    return tree_links


def _cycle(name: str, parent_joints: dict[str, Joint]) -> list[Joint]:
    """Joints of the loop that the ancestors of a link form, starting with the first joint in the file."""
    visited: dict[str, None] = {}
    while name not in visited:
        visited[name] = None
        name = parent_joints[name].parent
    loop, link = [], name
    while not loop or link != name:
        loop.append(parent_joints[link])
        link = parent_joints[link].parent
    loop.reverse()
    first = min(range(len(loop)), key=lambda k: loop[k].element.start)
    return loop[first:] + loop[:first]


def _report_loop(reader: Reader, cycle: list[Joint]) -> None:
    path = _path([*(joint.parent for joint in cycle), cycle[0].parent], " → ")
    reader.report(
        cycle[0].element,
        "tree.loop",
        f"links {path} form a loop (joints {_path([j.name for j in cycle])}) that is not attached to the root",
        "remove one of these joints; kinematic loops are not supported",
    )


def _report_second_parent(reader: Reader, joint: Joint, parent_joints: dict[str, Joint]) -> None:
    first = parent_joints[joint.child]
    chain, link = [joint.parent], joint.parent
    while link in parent_joints and link != joint.child and len(chain) <= len(parent_joints):
        link = parent_joints[link].parent
        chain.append(link)
    if link == joint.child:
        message = f"joint {joint.name!r} closes a loop: {_path([*chain[::-1], joint.child], ' → ')}"
        code = "tree.loop"
    else:
        message = (
            f"link {joint.child!r} has two parents: {first.parent!r} by joint {first.name!r} "
            f"(line {first.element.line}) and {joint.parent!r} by joint {joint.name!r}"
        )
        code = "tree.two_parents"
    reader.report(
        joint.element,
        code,
        message,
        "remove one of the joints; kinematic loops are not supported",
    )


def _report_second_root(reader: Reader, link: Link, main: Link, size: int) -> None:
    subject = f"link {link.name!r}"
    if size > 1:
        subject += f" with {pluralize(size - 1, 'descendant')}"
    reader.report(
        link.element,
        "tree.roots",
        f"{subject} is not connected to the root {main.name!r} (line {main.element.line})",
        f'add a <joint> with <child link="{link.name}"/>, or remove it; a model must have exactly one root',
    )


def _path(names: Sequence[str], separator: str = ", ") -> str:
    """Quoted names; long lists are abbreviated to the first and last ones."""
    shown = [repr(name) for name in names]
    return separator.join(shown if len(shown) <= 8 else [*shown[:4], "…", *shown[-3:]])
