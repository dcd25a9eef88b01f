"""What to do about URDF links whose mass properties are missing, zero or implausible."""

from collections.abc import Iterable
from typing import Literal

from hybridsim.io.numbers import Reader
from hybridsim.io.solids import MeshError, solid, volume
from hybridsim.io.urdf_elements import Link
from hybridsim.model.geometry import Shape
from hybridsim.model.inertial import Inertial
from hybridsim.model.validate import NEGLIGIBLE_MASS

InertiaPolicy = Literal["file", "from_geometry", "error"]
"""`file` takes what is there, `from_geometry` fills gaps from the collision shapes, `error` refuses gaps."""

DEFAULT_DENSITY = 1000.0
"""Density [kg/m³] of links for which the file gives no mass."""
PLAUSIBLE_DENSITY = (50.0, 25_000.0)
"""[kg/m³]: foam to gold. Outside, mass or size are more likely in other units."""


def settle_inertia(reader: Reader, link: Link, moving: bool, policy: InertiaPolicy) -> Inertial:
    """Mass properties of a link under the policy.

    Args:
        reader: collects the problems.
        link: the link.
        moving: whether it has a moving joint of its own. A link fixed to another needs no mass of its own;
            it is filled in only if the file says that it has mass and no inertia.
        policy: what to do where the file gives none.
    """
    given = link.inertial or Inertial()
    has_mass, has_inertia = given.mass != 0.0, bool(given.inertia.any())
    if not link.readable or (has_mass and has_inertia) or not (moving or has_mass):
        return given
    element = link.element.child("inertial") or link.element
    what = "no <inertial>" if link.inertial is None else "zero inertia" if has_mass else "zero mass"
    match policy:
        case "from_geometry":
            return _from_shapes(reader, link, given, what)
        case "error" if moving:
            reader.report(
                element,
                "inertial.missing",
                f"link {link.name!r} has {what}",
                "write its mass and inertia, or read the file with inertia='from_geometry'",
            )
        case "file" if moving and has_mass:
            reader.warn(
                element,
                "inertia.zero",
                f"link {link.name!r} has mass but zero inertia: it is a point mass",
                "write its inertia, or read the file with inertia='from_geometry'",
            )
    return given


def _from_shapes(reader: Reader, link: Link, given: Inertial, what: str) -> Inertial:
    element = link.element.child("inertial") or link.element
    total = Inertial()
    for geom in link.shapes:
        try:
            part, closed = solid(geom, DEFAULT_DENSITY)
        except MeshError as error:
            reader.warn(link.element, "mesh.solid", f"shape {geom.name!r} does not count for the inertia: {error}")
            continue
        if not closed:
            reader.warn(
                link.element,
                "mesh.open",
                f"mesh of {geom.name!r} is not closed; link {link.name!r} gets its convex hull's inertia",
                "close the mesh, or write the inertia into the file",
            )
        total = total + part
    if total.mass <= 0.0:
        reader.report(
            element,
            "inertial.no_geometry",
            f"link {link.name!r} has {what}, and no collision shape to compute the inertia from",
            "add an <inertial>, or a <collision> with a box, sphere, cylinder, capsule or closed mesh",
        )
        return given
    mass = given.mass if given.mass > 0.0 else total.mass
    inertial_element = link.element.child("inertial")
    has_origin = inertial_element is not None and inertial_element.child("origin") is not None
    return Inertial(mass, given.com if has_origin else total.com, total.inertia * (mass / total.mass))


def check_density(reader: Reader, links: Iterable[Link]) -> None:
    """Warn about links whose mass does not fit their size: they look like grams or millimetres."""
    low, high = PLAUSIBLE_DENSITY
    weighed = [link for link in links if link.inertial is not None and link.readable and link.inertial.mass > 0.0]
    total = sum(_mass(link) for link in weighed)
    for link in weighed:
        if _mass(link) < NEGLIGIBLE_MASS * total:
            continue  # a sensor frame with a token mass
        if any(geom.shape in (Shape.MESH, Shape.PLANE) for geom in link.shapes):
            continue  # its volume is not known without reading the mesh
        space = sum(volume(geom) for geom in link.shapes)
        density = _mass(link) / space if space > 0.0 else low
        if not low <= density <= high:
            reader.warn(
                link.element.child("inertial") or link.element,
                "units.density",
                f"link {link.name!r} has {_mass(link):g} kg in {space:.3g} m³, {density:.3g} kg/m³: "
                "this looks like grams or millimetres",
                "masses are in kg and lengths in m; check both",
            )


def _mass(link: Link) -> float:
    return link.inertial.mass if link.inertial is not None else 0.0
