"""Collision shapes of URDF links."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from hybridsim.core.errors import Problem, Severity
from hybridsim.core.messages import spelling_suggestion
from hybridsim.io.attributes import Reader
from hybridsim.io.urdf.read_contact import read_surface
from hybridsim.io.urdf.read_elements import read_origin
from hybridsim.io.xml import Element
from hybridsim.model.compound_joints import plane_axes
from hybridsim.model.geometry import Shape
from hybridsim.model.specs import GeomSpec, Source, identity_pose
from hybridsim.spatial.transform import Pose

MeshResolver = Callable[[str], Path | Problem]
"""Resolves a mesh reference to a path or a problem."""


def read_shapes(reader: Reader, link: Element, name: str, resolve: MeshResolver) -> list[GeomSpec]:
    """Collision shapes of a link; also warns about missing meshes of its visuals."""
    link_surface = read_surface(reader, link)
    shapes = []
    for k, collision in enumerate(link.children_with_tag("collision")):
        shape_name = collision.get("name") or f"{name}_collision{k}"
        spec = _shape(reader, collision, shape_name, resolve)
        if spec is not None:
            surface = link_surface | read_surface(reader, collision)
            shapes.append(replace(spec, body=name, **surface))
    for visual in link.children_with_tag("visual"):
        _check_visual(reader, visual, resolve)
    return shapes


def _shape(reader: Reader, collision: Element, name: str, resolve: MeshResolver) -> GeomSpec | None:
    geometry = collision.child("geometry")
    if geometry is None or not geometry.children:
        reader.report(
            geometry or collision,
            "geometry.missing",
            f"{collision.title} has no shape",
            'add <geometry><box size="..."/></geometry>',
        )
        return None
    element = geometry.children[0]
    before = len(reader.problems)
    placement, mesh_file = read_origin(reader, collision), ""
    match element.tag:
        case "box":
            shape, size = Shape.BOX, 0.5 * reader.vector(element, "size", 3)
        case "sphere":
            shape, size = Shape.SPHERE, np.array([reader.number(element, "radius"), 0.0, 0.0])
        case "cylinder" | "capsule":
            radius, length = reader.number(element, "radius"), reader.number(element, "length")
            shape, size = Shape(element.tag), np.array([radius, 0.5 * length, 0.0])
        case "plane":
            normal = reader.vector(element, "normal", 3, (0, 0, 1))
            shape, size, placement = Shape.PLANE, np.zeros(3), placement @ _pose_with_z_axis(normal)
        case "mesh":
            shape, size = Shape.MESH, reader.vector(element, "scale", 3, (1, 1, 1))
            mesh_file = _mesh(reader, element, resolve, Severity.ERROR)
        case _:
            reader.warn(
                element,
                "geometry.unknown",
                f"shape <{element.tag}> of {collision.title} is not supported and is omitted",
                spelling_suggestion(element.tag, [*Shape]) or "use box, sphere, cylinder, capsule or mesh",
            )
            return None
    if len(reader.problems) > before:
        return None
    if shape is not Shape.PLANE and not size.any():
        reader.warn(element, "geometry.empty", f"{element.title} has zero size", "specify its size in metres")
    source = Source(element.file, element.line)
    return GeomSpec(name, "", shape, size, placement, mesh_file=mesh_file, source=source, is_friction_specified=False)


def _check_visual(reader: Reader, visual: Element, resolve: MeshResolver) -> None:
    geometry = visual.child("geometry")
    for mesh in geometry.children_with_tag("mesh") if geometry is not None else ():
        _mesh(reader, mesh, resolve, Severity.WARNING)


def _mesh(reader: Reader, element: Element, resolve: MeshResolver, severity: Severity) -> str:
    uri = reader.required_text(element, "filename")
    path = resolve(uri) if uri else None
    if isinstance(path, Problem):
        kind = "collision" if severity is Severity.ERROR else "visual"
        message = f"{kind} {element.title}: {path.message}"
        reader.report(element, path.code, message, path.fix, severity)
    return str(path) if isinstance(path, Path) else ""


def _pose_with_z_axis(normal: np.ndarray) -> Pose:
    if np.linalg.norm(normal) < 1e-9:
        return identity_pose()
    e1, e2 = plane_axes(normal)
    return Pose(np.column_stack([e1, e2, np.cross(e1, e2)]), np.zeros(3))
