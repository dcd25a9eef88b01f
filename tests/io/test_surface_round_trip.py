"""Round trip of surface parameters and less common shapes through written files."""

from dataclasses import fields

import numpy as np
import pytest

from hybridsim.core.errors import ModelError
from hybridsim.io.convert import convert
from hybridsim.io.model_to_spec import spec_of
from hybridsim.io.write_document import Notes
from hybridsim.model.assemble import assemble
from hybridsim.model.model import Model
from hybridsim.model.specs import GeomSpec
from support.written_models import box_on_a_hinge, round_trip

SURFACE = ("friction", "restitution", "recovery_time", "softness", "stiffness", "damping")
SQUARE = [(0, 0), (1, 0), (1, 1), (0, 1)]
HEIGHTS = np.array([[0.1, 0.2, -0.3], [0.4, 0.0, 0.1], [0.2, 0.2, 0.3], [0.5, -0.1, 0.0]])


def ball(**surface) -> Model:
    return box_on_a_hinge().add_geom("box", "sphere", (0.1,), name="ball", **surface).build()


def surface(model: Model) -> tuple[float, ...]:
    return (*(float(getattr(model.geometry, field)[0]) for field in SURFACE), model.geometry.infos[0].priority)


@pytest.mark.parametrize("extension", ["urdf", "xml"])
def test_default_surface_parameters_are_not_written(tmp_path, extension):
    model = ball()
    read, notes = round_trip(model, tmp_path / f"m.{extension}")
    text = (tmp_path / f"m.{extension}").read_text()
    assert notes == [] and surface(read) == surface(model)
    assert not any(word in text for word in ("contact", "solref", "solimp", "priority", "restitution"))


def test_urdf_supports_friction_and_restitution(tmp_path):
    model = ball(friction=0.3, restitution=0.4, recovery_time=0.1, softness=0.05, priority=2)
    read, notes = round_trip(model, tmp_path / "m.urdf")
    assert surface(read) == (0.3, 0.4, 0.02, 0.2, np.inf, np.inf, 0)
    assert notes == [
        "URDF does not support surface priorities: 'ball'",
        "URDF does not support contact recovery times: 'ball'",
        "URDF does not support contact softness: 'ball'",
    ]
    alone, notes = round_trip(ball(restitution=0.4), tmp_path / "n.urdf")
    assert surface(alone) == surface(ball(restitution=0.4)) and notes == []
    spring = ball(stiffness=1e4, damping=50.0, recovery_time=0.005)
    read, notes = round_trip(spring, tmp_path / "o.urdf")
    assert surface(read) == surface(spring) and notes == []


@pytest.mark.parametrize("specified", [True, False])
def test_urdf_preserves_whether_friction_is_specified(tmp_path, specified):
    model = ball(friction=1.0) if specified else ball()
    read, _ = round_trip(model, tmp_path / "m.urdf")
    assert read.geometry.infos[0].is_friction_specified is specified


def test_mjcf_supports_all_but_restitution(tmp_path):
    model = ball(friction=0.3, restitution=0.4, recovery_time=0.1, softness=0.05, priority=2)
    read, notes = round_trip(model, tmp_path / "m.xml")
    assert surface(read) == pytest.approx((0.3, 0.0, 0.1, 0.05, np.inf, np.inf, 2), rel=1e-12)
    assert notes == ["MJCF does not support restitution: 'ball'"]
    _, notes = round_trip(ball(stiffness=1e4), tmp_path / "n.xml")
    assert notes == ["MJCF does not support stiffness and damping of compliant contacts: 'ball'"]


def test_mjcf_values_are_clipped(tmp_path):
    read, notes = round_trip(ball(recovery_time=0.0, softness=0.0), tmp_path / "m.xml")
    assert surface(read) == pytest.approx((1.0, 0.0, 0.02, 0.00024669, np.inf, np.inf, 0), rel=1e-4)
    assert notes == [
        "MJCF requires positive recovery times ('ball'); the default is written",
        "softness is clipped to the range of MJCF, 0.00025 to 2.5: 'ball'",
    ]


def all_unsupported_shapes() -> Model:
    builder = box_on_a_hinge()
    builder.add_geom("box", "points", (0.01,), name="points", data=[[0, 0, 0], [1, 0, 0]])
    builder.add_geom("box", "polygon", (0, 0, 0.1), name="polygon", data=SQUARE)
    builder.add_geom("box", "ellipse", (0.2, 0.1, 0.1), name="ellipse", softness=0.1)
    builder.add_geom("world", "heightfield", (1, 2), name="terrain", data=HEIGHTS, at=(1, 2, 3), rpy=(0.1, 0.2, 0.3))
    return builder.add_geom("box", "sphere", (0.1,), name="ball").build()


@pytest.mark.parametrize(("extension", "format"), [("urdf", "URDF"), ("xml", "MJCF")])
def test_unsupported_shapes_are_omitted(tmp_path, extension, format):
    read, notes = round_trip(all_unsupported_shapes(), tmp_path / f"m.{extension}")
    for name, what in (("points", "contact points"), ("polygon", "polygons"), ("ellipse", "ellipses")):
        assert f"{what} are omitted, since {format} does not support them: {name!r}" in notes
    written = {info.name for info in read.geometry.infos}
    assert written == ({"ball"} if extension == "urdf" else {"ball", "terrain"})
    terrain = "height fields are omitted, since URDF does not support them: 'terrain'"
    assert (terrain in notes) == (extension == "urdf") and len(notes) == 4


@pytest.mark.parametrize("heights", [HEIGHTS, np.full((2, 3), 0.7)], ids=["hills", "flat"])
def test_height_fields_are_written_as_mjcf(tmp_path, heights):
    builder = box_on_a_hinge().add_geom("box", "sphere", (0.1,), name="ball")
    builder.add_geom("world", "heightfield", (1, 2), name="terrain", data=heights, at=(1, 2, 3), rpy=(0.1, 0.2, 0.3))
    model = builder.build()
    read, notes = round_trip(model, tmp_path / "m.xml")
    assert notes == ["heights are rounded to single precision and relative to the minimum in MuJoCo: 'terrain'"]
    corners = []
    for each in (model, read):
        (k,) = [k for k, info in enumerate(each.geometry.infos) if info.name == "terrain"]
        X, half = each.geometry.placement, each.geometry.size[k]
        z = each.geometry.data[each.geometry.infos[k].data_index]
        x, y = np.meshgrid(*(np.linspace(-h, h, n) for h, n in zip(half, z.shape, strict=False)), indexing="ij")
        corners.append(np.stack([x, y, z], axis=-1) @ X.R[k].T + X.p[k])
    np.testing.assert_allclose(*corners, atol=1e-7)


@pytest.mark.parametrize(("size", "data"), [((1, 0), HEIGHTS), ((1, 1), HEIGHTS[:1]), ((1, 1), None)])
def test_height_fields_without_extent_are_omitted(tmp_path, size, data):
    builder = box_on_a_hinge().add_geom("world", "heightfield", size, name="terrain", data=data)
    read, notes = round_trip(builder.build(), tmp_path / "m.xml")
    assert read.geometry.infos == ()
    assert notes == ["height fields are omitted, since they have no extent: 'terrain'"]


def test_heights_with_nan_are_rejected(tmp_path):
    builder = box_on_a_hinge().add_geom("world", "heightfield", (1, 1), name="terrain", data=[[0, np.nan], [0, 1]])
    with pytest.raises(ModelError, match="terrain"):
        convert(builder.build(), tmp_path / "m.xml")


def test_a_description_has_every_field_of_a_shape():
    model = all_unsupported_shapes()
    numbers = {"friction": 0.1, "restitution": 0.2, "recovery_time": 0.3, "softness": 0.4, "priority": 5}
    numbers |= {"stiffness": 6.0, "damping": 7.0, "is_friction_specified": False}
    faces = ((0, 1, 2),)
    full = GeomSpec("hull", "box", model.geometry.infos[0].shape, np.ones(3), data=np.eye(3), faces=faces, **numbers)
    full.group, full.mask, full.mesh_file, full.link = 3, 5, "hull.stl", "tip"
    spec = spec_of(model, Notes())
    spec.geoms.insert(1, full)
    again = spec_of(assemble(spec), Notes())
    for one, other in zip(spec.geoms, again.geoms, strict=True):
        for field in fields(GeomSpec):
            a, b = getattr(one, field.name), getattr(other, field.name)
            same = np.array_equal(a.R, b.R) and np.array_equal(a.p, b.p) if field.name == "placement" else None
            assert np.array_equal(a, b) if same is None else same, (one.name, field.name)
