"""URDF files in millimetres or grams: numbers that no robot has are pointed out."""

from collections.abc import Iterable

from hybridsim.core.messages import name_list
from hybridsim.io.attributes import Reader
from hybridsim.io.mesh_extent import extent_at_least
from hybridsim.io.solids import volume
from hybridsim.io.urdf.read_elements import Link
from hybridsim.io.urdf.read_tree import Branch
from hybridsim.model.geometry import Shape
from hybridsim.model.specs import WORLD_NAME
from hybridsim.model.validate import NEGLIGIBLE_MASS

PLAUSIBLE_DENSITY = (50.0, 25_000.0)
"""[kg/m³]: foam to gold. Outside, mass or size are more likely in other units."""
PLAUSIBLE_REACH = 10.0
"""Distance between joints, or size of a moving part [m], beyond which the file is more likely in millimetres."""


def check_units(reader: Reader, branches: Iterable[Branch], static: set[str]) -> None:
    """Warn about lengths and masses that are more likely in other units.

    Args:
        reader: collects the problems.
        branches: links and the joints that carry them.
        static: names of the links that cannot move; scenery may be large and far away.
    """
    branches = list(branches)
    _check_distances(reader, branches, static)
    _check_meshes(reader, [link for link, _ in branches if link.name not in static])
    _check_densities(reader, [link for link, _ in branches])


def _check_distances(reader: Reader, branches: list[Branch], static: set[str]) -> None:
    far = []
    for link, joint in branches:
        if joint is not None and link.name not in static and joint.parent != WORLD_NAME:
            distance = float(abs(joint.placement.p).max())
            if distance > PLAUSIBLE_REACH:
                far.append((joint.element.child("origin") or joint.element, joint.name, distance))
    if far:
        farthest, names = max(distance for _, _, distance in far), name_list([name for _, name, _ in far])
        message = f"joints are up to {farthest:g} m away from their parents, which looks like millimetres: {names}"
        reader.warn(far[0][0], "units.length", message, "lengths are in metres; divide by 1000")


def _check_meshes(reader: Reader, links: list[Link]) -> None:
    large = []
    for link in links:
        for geom in link.shapes:
            if geom.shape is Shape.MESH and geom.mesh_file:
                extent = extent_at_least(geom.mesh_file, geom.size)
                if extent > PLAUSIBLE_REACH:
                    large.append((link, extent))
    if large:
        largest = max(extent for _, extent in large)
        names = name_list(list(dict.fromkeys(link.name for link, _ in large)))
        message = f"collision meshes are {largest:.3g} m or more across, which looks like millimetres: {names}"
        fix = 'lengths are in metres; write scale="0.001 0.001 0.001" into <mesh>'
        reader.warn(large[0][0].element, "units.mesh", message, fix)


def _check_densities(reader: Reader, links: list[Link]) -> None:
    low, high = PLAUSIBLE_DENSITY
    weighed = [(link, link.inertial.mass) for link in links if link.inertial is not None and link.readable]
    total = sum(mass for _, mass in weighed if mass > 0.0)
    for link, mass in weighed:
        if mass <= NEGLIGIBLE_MASS * total:
            continue  # a sensor frame with a token mass
        if any(geom.shape in (Shape.MESH, Shape.PLANE) for geom in link.shapes):
            continue  # its volume is not known without reading the whole mesh
        space = sum(volume(geom) for geom in link.shapes)
        density = mass / space if space > 0.0 else low
        if not low <= density <= high:
            reader.warn(
                link.element.child("inertial") or link.element,
                "units.density",
                f"link {link.name!r} has {mass:g} kg in {space:.3g} m³, {density:.3g} kg/m³: "
                "this looks like grams or millimetres",
                "masses are in kg and lengths in m; check both",
            )
