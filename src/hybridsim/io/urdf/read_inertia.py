"""Treatment of URDF links with missing or zero mass properties."""

from hybridsim.io.attributes import Reader
from hybridsim.io.load_options import InertiaPolicy, option_hint
from hybridsim.io.solids import MeshError, solid_inertial
from hybridsim.io.urdf.read_elements import Link
from hybridsim.model.inertial import Inertial

FROM_GEOMETRY = f"load the file with {option_hint('inertia', 'from_geometry')}"
DEFAULT_DENSITY = 1000.0
"""Density [kg/m³] of links without specified mass."""
MAX_PLAUSIBLE_MASS = 5000.0
"""Mass computed for a link [kg] above which its shapes are more likely in millimetres."""


def resolve_inertia(reader: Reader, link: Link, moving: bool, policy: InertiaPolicy) -> Inertial:
    """Mass properties of a link under the inertia policy.

    Args:
        reader: collects the problems.
        link: the link.
        moving: whether its joint moves. A link fixed to another one needs no mass; its inertia is computed only if
            the file specifies a mass without inertia.
        policy: treatment of missing mass properties.
    """
    specified = link.inertial or Inertial()
    if specified.mass < 0.0:
        return specified  # invalid under any policy; reported elsewhere
    has_mass, has_inertia = specified.mass != 0.0, bool(specified.inertia.any())
    if not link.is_inertial_valid or (has_mass and has_inertia) or not (moving or has_mass):
        return specified
    element = link.element.child("inertial") or link.element
    defect = "no <inertial>" if link.inertial is None else "zero inertia" if has_mass else "zero mass"
    match policy:
        case "from_geometry":
            return _inertial_from_shapes(reader, link, specified, defect)
        case "error" if moving:
            reader.report(
                element,
                "inertial.missing",
                f"link {link.name!r} has {defect}",
                f"specify its mass and inertia, or {FROM_GEOMETRY}",
            )
        case "file" if moving and has_mass:
            reader.warn(
                element,
                "inertia.zero",
                f"link {link.name!r} has mass but zero inertia; it is a point mass",
                f"specify its inertia, or {FROM_GEOMETRY}",
            )
    return specified


def _inertial_from_shapes(reader: Reader, link: Link, specified: Inertial, defect: str) -> Inertial:
    element = link.element.child("inertial") or link.element
    total = Inertial()
    for geom in link.shapes:
        try:
            part, closed = solid_inertial(geom, DEFAULT_DENSITY)
        except MeshError as error:
            message = f"shape {geom.name!r} is ignored when computing the inertia: {error}"
            reader.warn(link.element, "mesh.unusable", message, "replace the mesh, or specify the inertia in the file")
            continue
        if not closed:
            reader.warn(
                link.element,
                "mesh.open",
                f"mesh of {geom.name!r} is not watertight; link {link.name!r} gets the inertia of its convex hull",
                "close the mesh, or specify the inertia in the file",
            )
        total = total + part
    if total.mass <= 0.0:
        reader.report(
            element,
            "inertial.no_geometry",
            f"link {link.name!r} has {defect} and no collision shape to compute the inertia from",
            "add an <inertial>, or a <collision> with a box, sphere, cylinder, capsule or closed mesh",
        )
        return specified
    if not specified.mass and total.mass > MAX_PLAUSIBLE_MASS:
        reader.warn(
            element,
            "units.mass",
            f"mass of link {link.name!r} computed from its shapes is {total.mass:.3g} kg: this looks like millimetres",
            "sizes are in metres; scale the shapes, or specify mass and inertia in the file",
        )
    mass = specified.mass or total.mass
    inertial_element = link.element.child("inertial")
    has_origin = inertial_element is not None and inertial_element.child("origin") is not None
    return Inertial(mass, specified.com if has_origin else total.com, total.inertia * (mass / total.mass))
