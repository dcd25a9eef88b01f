"""From a list of URDF links and joints to a tree, with everything that keeps them from being one."""

from collections.abc import Iterable, Sequence

from hybridsim.core.messages import did_you_mean, pluralize
from hybridsim.io.attributes import Reader
from hybridsim.io.urdf.read_elements import Joint, Link
from hybridsim.io.xml import Element
from hybridsim.model.specs import WORLD_NAME

Branch = tuple[Link, Joint | None]
"""A link and the joint that carries it; None for a root."""


def unique(reader: Reader, parts: Iterable[Link | Joint], what: str) -> dict:
    """Links or joints by name; a name that is already taken is a problem and its bearer is left out."""
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


def tree(reader: Reader, robot: Element, links: dict[str, Link], joints: Sequence[Joint]) -> list[Branch]:
    """Links in an order that puts parents first and siblings in the file's order of joints, the root first.

    Several roots, loops and broken joints are reported; every link still appears once, so that the rest of
    the description can be checked in the same pass.
    """
    if WORLD_NAME not in links and any(joint.parent == WORLD_NAME for joint in joints):
        links[WORLD_NAME] = Link(WORLD_NAME, robot)
    sound = [joint for joint in joints if _has_sound_ends(reader, joint, links)]
    carrier: dict[str, Joint] = {}
    surplus = []
    for joint in sound:
        if carrier.setdefault(joint.child, joint) is not joint:
            surplus.append(joint)
    for joint in surplus:
        _report_second_parent(reader, joint, carrier)

    children: dict[str, list[Joint]] = {}
    for joint in carrier.values():
        children.setdefault(joint.parent, []).append(joint)
    # a link whose joint is broken is not a root: its joint has been reported already
    orphans = {joint.child for joint in joints} - carrier.keys()
    roots = [name for name in links if name not in carrier and name not in orphans]
    subtrees = {name: _below(name, links, children, set()) for name in roots}
    main = max(roots, key=lambda name: (name == WORLD_NAME, len(subtrees[name])), default="")
    for name in roots:
        if name != main:
            _report_second_root(reader, links[name], links[main], len(subtrees[name]))

    branches = subtrees.get(main, [])
    seen = {link.name for link, _ in branches}
    for start in [*roots, *(name for name in links if name in orphans)]:
        branches = branches + _below(start, links, children, seen)
    for name in links:  # what is still left hangs on itself
        if name not in seen:
            cycle = _cycle(name, carrier)
            _report_loop(reader, cycle)
            branches = branches + _below(cycle[0].child, links, children, seen)
    return branches


def _has_sound_ends(reader: Reader, joint: Joint, links: dict[str, Link]) -> bool:
    sound = True
    for end, name in (("parent", joint.parent), ("child", joint.child)):
        if name and name not in links:
            child = joint.element.child(end)
            reader.report(
                child if child is not None else joint.element,
                "joint.link",
                f"{end} of joint {joint.name!r} is {name!r}, but there is no such link",
                did_you_mean(name, links) or f'add <link name="{name}"> or name one of the links',
            )
        sound = sound and name in links
    if sound and joint.parent == joint.child:
        reader.report(
            joint.element,
            "tree.loop",
            f"joint {joint.name!r} connects link {joint.child!r} with itself",
            "name two different links",
        )
        sound = False
    return sound


def _below(start: str, links: dict[str, Link], children: dict[str, list[Joint]], seen: set[str]) -> list[Branch]:
    """Depth first, without recursion, since a file can be arbitrarily deep; `seen` grows."""
    branches: list[Branch] = []
    if start in seen:
        return branches
    seen.add(start)
    branches.append((links[start], None))
    waiting = children.get(start, [])[::-1]
    while waiting:
        joint = waiting.pop()
        if joint.child not in seen:
            seen.add(joint.child)
            branches.append((links[joint.child], joint))
            waiting += children.get(joint.child, [])[::-1]
    return branches


def _cycle(name: str, carrier: dict[str, Joint]) -> list[Joint]:
    """Joints of the loop above a link that has no root, the first one in the file first."""
    visited: dict[str, None] = {}
    while name not in visited:
        visited[name] = None
        name = carrier[name].parent
    loop, link = [], name
    while not loop or link != name:
        loop.append(carrier[link])
        link = carrier[link].parent
    loop.reverse()
    first = min(range(len(loop)), key=lambda k: loop[k].element.start)
    return loop[first:] + loop[:first]


def _report_loop(reader: Reader, cycle: list[Joint]) -> None:
    path = _path([*(joint.parent for joint in cycle), cycle[0].parent], " → ")
    reader.report(
        cycle[0].element,
        "tree.loop",
        f"the links {path} form a loop (joints {_path([j.name for j in cycle])}) that hangs on nothing",
        "a model is a tree: remove one of these joints; closed loops are not supported",
    )


def _report_second_parent(reader: Reader, joint: Joint, carrier: dict[str, Joint]) -> None:
    first = carrier[joint.child]
    chain, link = [joint.parent], joint.parent
    while link in carrier and link != joint.child and len(chain) <= len(carrier):
        link = carrier[link].parent
        chain.append(link)
    if link == joint.child:
        message = f"joint {joint.name!r} closes a loop: {_path([*chain[::-1], joint.child], ' → ')}"
        code = "tree.loop"
    else:
        message = (
            f"link {joint.child!r} hangs on two parents: on {first.parent!r} by joint {first.name!r} "
            f"(line {first.element.line}) and on {joint.parent!r} by joint {joint.name!r}"
        )
        code = "tree.two_parents"
    reader.report(
        joint.element,
        code,
        message,
        "a model is a tree: remove one of the joints; closed loops are not supported",
    )


def _report_second_root(reader: Reader, link: Link, main: Link, size: int) -> None:
    what = f"link {link.name!r}" if size == 1 else f"link {link.name!r}, with {pluralize(size - 1, 'link')} below it,"
    reader.report(
        link.element,
        "tree.roots",
        f"{what} is not connected to the root {main.name!r} (line {main.element.line})",
        f'add a <joint> with <child link="{link.name}"/>, or remove it; a model has one root',
    )


def _path(names: Sequence[str], separator: str = ", ") -> str:
    """Names in quotes, of many the first and the last ones."""
    shown = [repr(name) for name in names]
    return separator.join(shown if len(shown) <= 8 else [*shown[:4], "…", *shown[-3:]])
