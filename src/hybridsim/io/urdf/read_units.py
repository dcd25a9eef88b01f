"""Plausibility checks of URDF values, to detect files in millimetres or grams."""

from collections.abc import Iterable

from hybridsim.core.messages import name_list
from hybridsim.io.attributes import Reader
from hybridsim.io.mesh_extent import extent_lower_bound
from hybridsim.io.solids import volume
from hybridsim.io.urdf.read_elements import Link
from hybridsim.io.urdf.read_tree import TreeLink
from hybridsim.model.geometry import Shape
from hybridsim.model.specs import WORLD_NAME
from hybridsim.model.validate import NEGLIGIBLE_MASS

PLAUSIBLE_DENSITY = (50.0, 25_000.0)
"""Density range [kg/m³] from foam to gold; outside it, masses or sizes are more likely in other units."""
MAX_PLAUSIBLE_DISTANCE = 10.0
"""Distance between joints or mesh extent [m] above which the file is more likely in millimetres."""


def check_units(reader: Reader, tree_links: Iterable[TreeLink], static: set[str]) -> None:
    """Warn about lengths and masses that are probably in other units.

    Args:
        reader: collects the problems.
        tree_links: links and their joints.
        static: names of the links that cannot move; scenery may be large and distant.
    """
    tree_links = list(tree_links)
    _check_distances(reader, tree_links, static)
    _check_meshes(reader, [link for link, _ in tree_links if link.name not in static])
    _check_densities(reader, [link for link, _ in tree_links])


def _check_distances(reader: Reader, tree_links: list[TreeLink], static: set[str]) -> None:
    far = []
    for link, joint in tree_links:
        if joint is not None and link.name not in static and joint.parent != WORLD_NAME:
            distance = float(abs(joint.placement.p).max())
            if distance > MAX_PLAUSIBLE_DISTANCE:
                far.append((joint.element.child("origin") or joint.element, joint.name, distance))
    if far:
        farthest, names = max(distance for _, _, distance in far), name_list([name for _, name, _ in far])
        message = f"joints are up to {farthest:g} m from their parents, which looks like millimetres: {names}"
        reader.warn(far[0][0], "units.length", message, "lengths are in metres; divide by 1000")


def _check_meshes(reader: Reader, links: list[Link]) -> None:
    large = []
    for link in links:
        for geom in link.shapes:
            if geom.shape is Shape.MESH and geom.mesh_file:
                extent = extent_lower_bound(geom.mesh_file, geom.size)
                if extent > MAX_PLAUSIBLE_DISTANCE:
                    large.append((link, extent))
    if large:
        largest = max(extent for _, extent in large)
        names = name_list(list(dict.fromkeys(link.name for link, _ in large)))
        message = f"collision meshes have an extent of at least {largest:.3g} m, which looks like millimetres: {names}"
        fix = 'lengths are in metres; add scale="0.001 0.001 0.001" to <mesh>'
        reader.warn(large[0][0].element, "units.mesh", message, fix)


def _check_densities(reader: Reader, links: list[Link]) -> None:
    low, high = PLAUSIBLE_DENSITY
    links_with_mass = [
        (link, link.inertial.mass) for link in links if link.inertial is not None and link.is_inertial_valid
    ]
    total = sum(mass for _, mass in links_with_mass if mass > 0.0)
    for link, mass in links_with_mass:
        if mass <= NEGLIGIBLE_MASS * total:
            continue  # a sensor frame with a placeholder mass
        if any(geom.shape in (Shape.MESH, Shape.PLANE) for geom in link.shapes):
            continue  # unknown volume
        total_volume = sum(volume(geom) for geom in link.shapes)
        density = mass / total_volume if total_volume > 0.0 else low
        if not low <= density <= high:
            reader.warn(
                link.element.child("inertial") or link.element,
                "units.density",
                f"link {link.name!r} has a density of {density:.3g} kg/m³ ({mass:g} kg in {total_volume:.3g} m³): "
                "this looks like grams or millimetres",
                "masses are in kg and lengths in m; check both",
            )
