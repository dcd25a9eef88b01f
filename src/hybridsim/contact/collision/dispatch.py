"""Collision routines by kinds of shapes, with the size of their manifolds."""

from collections.abc import Callable
from typing import NamedTuple

from hybridsim.contact.collision import box, box_box, hull, planar, plane, sphere_capsule, terrain
from hybridsim.contact.collision.contact_points import ContactPoints, PlacedShape
from hybridsim.model.geometry import Shape


class Routine(NamedTuple):
    """Collision routine of two kinds of shapes."""

    contacts: Callable[[PlacedShape, PlacedShape], ContactPoints]
    max_points: int
    """Number of contact points that it returns; 0 stands for one per point of the first shape."""
    is_expensive: bool = False
    """Whether it takes thousands of operations."""


ROUTINES: dict[tuple[Shape, Shape], Routine] = {
    (Shape.SPHERE, Shape.PLANE): Routine(plane.sphere_plane, 1),
    (Shape.CAPSULE, Shape.PLANE): Routine(plane.capsule_plane, 2),
    (Shape.BOX, Shape.PLANE): Routine(plane.box_plane, 4),
    (Shape.CYLINDER, Shape.PLANE): Routine(plane.cylinder_plane, 4),
    (Shape.ELLIPSOID, Shape.PLANE): Routine(plane.ellipsoid_plane, 1),
    (Shape.POINTS, Shape.PLANE): Routine(plane.points_plane, 0),
    (Shape.MESH, Shape.PLANE): Routine(plane.hull_plane, 4),
    (Shape.SPHERE, Shape.SPHERE): Routine(sphere_capsule.sphere_sphere, 1),
    (Shape.SPHERE, Shape.CAPSULE): Routine(sphere_capsule.sphere_capsule, 1),
    (Shape.CAPSULE, Shape.CAPSULE): Routine(sphere_capsule.capsule_capsule, 1),
    (Shape.SPHERE, Shape.BOX): Routine(box.sphere_box, 1),
    (Shape.CAPSULE, Shape.BOX): Routine(box.capsule_box, 2),
    (Shape.BOX, Shape.BOX): Routine(box_box.box_box, 4, is_expensive=True),
    (Shape.MESH, Shape.SPHERE): Routine(hull.hull_sphere, 1, is_expensive=True),
    (Shape.MESH, Shape.BOX): Routine(hull.hull_box, 4, is_expensive=True),
    (Shape.SPHERE, Shape.HEIGHTFIELD): Routine(terrain.sphere_terrain, 1),
    (Shape.CAPSULE, Shape.HEIGHTFIELD): Routine(terrain.capsule_terrain, 2),
    (Shape.BOX, Shape.HEIGHTFIELD): Routine(terrain.box_terrain, 8),
    (Shape.POINTS, Shape.HEIGHTFIELD): Routine(terrain.points_terrain, 0),
    (Shape.MESH, Shape.HEIGHTFIELD): Routine(terrain.hull_terrain, 0),
    (Shape.POLYGON, Shape.CYLINDER): Routine(planar.polygon_cylinder, 1),
    (Shape.ELLIPSE, Shape.CYLINDER): Routine(planar.ellipse_cylinder, 1),
}
"""Routines by kinds of the first and second shape; `find_candidates` orders the shapes of a pair accordingly."""
