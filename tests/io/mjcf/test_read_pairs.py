"""Friction of explicit pairs in MJCF: as in MuJoCo, and in round trips."""

from dataclasses import replace

import mujoco
import numpy as np
import pytest

from hybridsim.core.errors import ModelError
from hybridsim.io.mjcf.edit_mjcf import export_mjcf
from support.exported_models import changed_line, mjcf_round_trip, with_entry
from support.mjcf_files import load, write
from support.written_models import box_on_a_hinge, round_trip

SCENE = """<mujoco model="m">
{before}
<worldbody>
<geom name="f" type="plane" size="1 1 1" friction=".5"/>
<body name="b" pos="0 0 .09"><freejoint/><geom name="a" size=".1" mass="1" friction=".7" {shape}/></body>
</worldbody>
<contact>
<pair geom1="f" geom2="a" {pair}/>
</contact>
</mujoco>"""
FRICTIONLESS_CLASS = '<default><default class="s"><pair friction=".3 .3" condim="1"/></default></default>'
DEFAULT_FRICTION = '<default><pair friction=".3 .3"/></default>'


def scene(folder, pair: str = "", before: str = "", shape: str = ""):
    path = folder / "m.xml"
    path.write_bytes(SCENE.format(pair=pair, before=before, shape=shape).replace("\n", "\r\n").encode())
    return path


@pytest.mark.parametrize(
    ("pair", "before", "shape", "expected"),
    [
        ('friction=".2 .2"', "", "", 0.2),
        ("", "", "", 1.0),
        ("", "", 'condim="1"', 1.0),
        ('friction=".2 .2" condim="1"', "", "", 0.0),
        ("", DEFAULT_FRICTION, "", 0.3),
        ('class="s"', FRICTIONLESS_CLASS, "", 0.0),
        ('class="s" condim="3"', FRICTIONLESS_CLASS, "", 0.3),
    ],
)
def test_friction_is_that_of_mujoco(tmp_path, pair, before, shape, expected):
    path = scene(tmp_path, pair, before, shape)
    m = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(m)
    mujoco.mj_forward(m, data)
    assert data.ncon == 1
    theirs = data.contact.friction[0, 0] if data.contact.dim[0] > 1 else 0.0
    model, problems = load(path)
    assert model.geometry.friction_pairs == (("f", "a"),) == model.geometry.explicit_pairs
    assert model.geometry.pair_friction.tolist() == [theirs] == [expected]
    assert problems == []


@pytest.mark.parametrize(
    ("pair", "shape", "code", "part"),
    [
        (
            'friction=".2"',
            "",
            "unsupported.pair.surface",
            "pairs 'f|a' differs between the two tangents; the first value",
        ),
        ('friction=".2 .1" condim="1"', "", "", ""),
        (
            'friction=".2 .2"/><pair geom1="a" geom2="f" friction=".4 .4"',
            "",
            "unsupported.pair.surface",
            "pairs 'f|a' are defined more than once; the last definition",
        ),
        ("", 'solref=".1 1"', "unsupported.pair.surface", "those of the geoms are used; MuJoCo uses its defaults"),
        ('solref=".2 1"', 'solref=".1 1"', "unsupported.pair.contact", "solref='.2 1' of <pair>"),
        ('condim="4"', "", "unsupported.pair.condim", "torsional and rolling friction"),
    ],
)
def test_unsupported_pair_settings_are_reported(tmp_path, pair, shape, code, part):
    model, problems = load(scene(tmp_path, pair, shape=shape))
    assert [p.code for p in problems] == ([code] if code else [])
    assert not code or (part in problems[0].message and problems[0].line == 8 and problems[0].fix)
    if "once" in part:
        assert model.geometry.pair_friction.tolist() == [0.4] and len(model.geometry.explicit_pairs) == 1


def test_pairs_of_unsupported_shapes_are_omitted(tmp_path):
    """Signed distance fields and meshes without a file are not supported, nor are their pairs."""
    body = '<asset><mesh name="t" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset><worldbody><geom name="m" type="mesh" '
    body += 'mesh="t"/><body><freejoint/><geom name="a" size=".1"/></body></worldbody>'
    model, _ = load(write(tmp_path, f'<mujoco>{body}<contact><pair geom1="m" geom2="a"/></contact></mujoco>'))
    assert model.geometry.friction_pairs == () and model.geometry.pair_friction.shape == (0,)


@pytest.mark.parametrize(
    ("pair", "before", "parts"),
    [
        ("", "", ['friction="0.4 0.4"']),
        ('friction=".2 .2 .01"', "", ['friction="0.4 0.4 .01"']),
        ('friction=".2 .1"', "", ['friction="0.4 .1"']),
        ("", DEFAULT_FRICTION, ['friction="0.4 0.4"']),
        ('friction=".2 .2" condim="1"', "", ['friction="0.4 0.4"', 'condim="3"']),
        ('class="s"', FRICTIONLESS_CLASS, ['friction="0.4 0.4"', 'condim="3"']),
    ],
)
def test_changed_friction_is_written_back(tmp_path, pair, before, parts):
    path = scene(tmp_path, pair, before)
    model = load(path)[0]
    old = float(model.geometry.pair_friction[0])
    changes, *lines = mjcf_round_trip(path, with_entry(model, lambda m: m.geometry.pair_friction, 0, 0.4))
    assert all(part in changed_line(*lines)[1] for part in parts)
    assert [(c.element, c.parameter, c.before, c.after) for c in changes] == [("pair 'f|a'", "friction", old, 0.4)]


def test_a_model_with_other_pairs_is_rejected(tmp_path):
    path = scene(tmp_path)
    model = load(path)[0]
    other = replace(model, geometry=replace(model.geometry, friction_pairs=(), pair_friction=np.zeros(0)))
    with pytest.raises(ModelError, match="pairs of shapes with their own friction differ"):
        export_mjcf(path, other, tmp_path / "out.xml")


def two_shapes():
    builder = box_on_a_hinge().add_geom("box", "sphere", (0.1,), name="ball", friction=0.3)
    return builder.add_geom("world", "sphere", (0.1,), name="marble", friction=0.6)


@pytest.mark.parametrize("own", [0.2, 0.0, 1.0])
@pytest.mark.parametrize("order", [1, -1])
def test_pair_friction_is_written(tmp_path, own, order):
    builder = two_shapes()
    builder.spec.explicit_pairs = [("marble", "ball")]
    builder.spec.pair_friction = {("marble", "ball")[::order]: own}
    read, notes = round_trip(builder.build(), tmp_path / "m.xml")
    assert notes == [] and read.geometry.pair_friction.tolist() == [own]
    assert read.geometry.friction_pairs == (("marble", "ball"),)


@pytest.mark.parametrize(("priority", "friction"), [(0, 0.6), (1, 0.3)])
def test_a_pair_without_friction_is_written_with_that_of_its_shapes(tmp_path, priority, friction):
    builder = two_shapes()
    builder.spec.geoms[0].priority = priority
    builder.spec.explicit_pairs = [("ball", "marble")]
    read, notes = round_trip(builder.build(), tmp_path / "m.xml")
    assert read.geometry.pair_friction.tolist() == [friction]
    assert notes == ["pairs without friction get that of their shapes, which MuJoCo would ignore: 'ball and marble'"]


def test_friction_of_a_pair_that_is_not_explicit_is_noted(tmp_path):
    builder = two_shapes()
    builder.spec.pair_friction = {("ball", "marble"): 0.2}
    read, notes = round_trip(builder.build(), tmp_path / "m.xml")
    assert read.geometry.friction_pairs == ()
    assert notes == ["friction of pairs that are not explicit collision pairs is omitted: 'ball and marble'"]
