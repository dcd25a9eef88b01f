"""What to do about URDF links whose mass properties are missing, zero or implausible."""

from hybridsim.io.attributes import Reader
from hybridsim.io.load_options import InertiaPolicy, setting
from hybridsim.io.solids import MeshError, solid
from hybridsim.io.urdf.read_elements import Link
from hybridsim.model.inertial import Inertial

FROM_GEOMETRY = f"read the file with {setting('inertia', 'from_geometry')}"
DEFAULT_DENSITY = 1000.0
"""Density [kg/m³] of links for which the file gives no mass."""
PLAUSIBLE_MASS = 5000.0
"""Mass computed for one link [kg] beyond which its shapes are more likely in millimetres."""


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
    if given.mass < 0.0:
        return given  # impossible whatever the policy; nothing else need be said about it
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
                f"write its mass and inertia, or {FROM_GEOMETRY}",
            )
        case "file" if moving and has_mass:
            reader.warn(
                element,
                "inertia.zero",
                f"link {link.name!r} has mass but zero inertia: it is a point mass",
                f"write its inertia, or {FROM_GEOMETRY}",
            )
    return given


def _from_shapes(reader: Reader, link: Link, given: Inertial, what: str) -> Inertial:
    element = link.element.child("inertial") or link.element
    total = Inertial()
    for geom in link.shapes:
        try:
            part, closed = solid(geom, DEFAULT_DENSITY)
        except MeshError as error:
            message = f"shape {geom.name!r} does not count for the inertia: {error}"
            reader.warn(link.element, "mesh.solid", message, "replace the mesh, or write the inertia into the file")
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
    if not given.mass and total.mass > PLAUSIBLE_MASS:
        reader.warn(
            element,
            "units.mass",
            f"link {link.name!r} gets {total.mass:.3g} kg from its shapes: this looks like millimetres",
            "sizes are in metres; scale the shapes, or write the mass and inertia into the file",
        )
    mass = given.mass or total.mass
    inertial_element = link.element.child("inertial")
    has_origin = inertial_element is not None and inertial_element.child("origin") is not None
    return Inertial(mass, given.com if has_origin else total.com, total.inertia * (mass / total.mass))
