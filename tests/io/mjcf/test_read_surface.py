"""MJCF surface parameters (solref, solimp, priority) and height fields."""

import jax
import mujoco
import numpy as np
import pytest

from hybridsim.contact.collision.contact_points import PlacedShape
from hybridsim.contact.collision.terrain import terrain_height
from hybridsim.io.mjcf.read_surface import MAX_SOFTNESS, MIN_SOFTNESS, recovery_time, softness, solimp, solref
from hybridsim.model.geometry import DEFAULT_RECOVERY_TIME, DEFAULT_SOFTNESS, Shape
from support.mjcf_files import load, world, write

HFIELD = """<asset><hfield name="h" nrow="3" ncol="4" size="1.5 2 .5 .1"
  elevation="0 1 2 1  3 4 7 2  5 3 1 8"/></asset>"""
TERRAIN = '<geom name="t" type="hfield" hfield="h" pos=".3 -.2 .4" euler="0 0 30"/>'
BALL = '<body name="b"><freejoint/><geom name="g" size=".1" {}/></body>'


def surface(folder, attributes: str, before: str = "") -> tuple[float, float, int, list[str]]:
    model, problems = load(write(folder, world(BALL.format(attributes), before)))
    geometry = model.geometry
    return geometry.recovery_time[0], geometry.softness[0], geometry.infos[0].priority, [p.code for p in problems]


def test_a_geom_without_attributes_has_the_default_surface(tmp_path):
    assert surface(tmp_path, "") == (DEFAULT_RECOVERY_TIME, DEFAULT_SOFTNESS, 0, [])


def test_surface_of_a_geom_and_of_its_class(tmp_path):
    expected = 0.2 * (0.2 / 0.8) / (0.075 / 0.925)
    attributes = 'solref=".05 1" solimp=".7 .9 .01" priority="3"'
    for own, before in ((attributes, ""), ("", f"<default><geom {attributes}/></default>")):
        time, soft, priority, codes = surface(tmp_path, own, before)
        assert (time, priority, codes) == (0.05, 3, [])
        assert soft == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize(
    ("text", "time", "codes"),
    [
        ("-100 -10", 0.05, []),
        ("-100 0", 0.0, []),
        (".1", 0.1, []),
        (".1 .5", 0.1, ["unsupported.geom.solref"]),
        ("-1 1", DEFAULT_RECOVERY_TIME, ["unsupported.geom.solref"]),
        ("0 0", DEFAULT_RECOVERY_TIME, ["unsupported.geom.solref"]),
    ],
)
def test_forms_of_solref(tmp_path, text, time, codes):
    assert surface(tmp_path, f'solref="{text}"')[::3] == (time, codes)


def test_one_report_with_all_names_for_unsupported_solref(tmp_path):
    balls = "\n".join(f'<body><joint/><geom name="g{k}" size=".1" solref=".1 {k}"/></body>' for k in (1, 2, 3))
    _, (problem,) = load(write(tmp_path, world(balls)))
    assert problem.line == 5 and problem.message.startswith("solref of geoms 'g2', 'g3' has a damping ratio")
    assert problem.fix


def test_softness_is_clipped(tmp_path):
    assert surface(tmp_path, 'solimp="0 .1"')[1] == MAX_SOFTNESS
    assert surface(tmp_path, 'solimp="1 1"')[1] == MIN_SOFTNESS


def friction(folder, attributes: str, before: str = "") -> tuple[float, list[str]]:
    model, problems = load(write(folder, world(BALL.format(attributes), before)))
    return model.geometry.friction[0], [p.message for p in problems]


def test_condim_1_has_no_friction(tmp_path):
    assert friction(tmp_path, 'condim="1" friction=".7"') == (0.0, [])
    assert friction(tmp_path, 'friction=".7"', '<default><geom condim="1"/></default>') == (0.0, [])
    assert friction(tmp_path, 'condim="3" friction=".7"', '<default><geom condim="1"/></default>') == (0.7, [])


@pytest.mark.parametrize("condim", [4, 6])
def test_torsional_friction_is_reported(tmp_path, condim):
    mu, (message,) = friction(tmp_path, f'condim="{condim}" friction=".7"')
    assert (
        mu == 0.7 and f"condim='{condim}'" in message and "torsional and rolling friction are not simulated" in message
    )


def test_other_elements_and_condim_are_still_reported(tmp_path):
    ball = BALL.format('condim="4"') + '<geom name="f" type="plane" size="1 1 1"/>'
    pair = '<contact><pair geom1="g" geom2="f" solref=".1 1" solimp=".9 .9"/></contact>'
    _, problems = load(write(tmp_path, world(ball, '<default><joint solreflimit=".1 1"/></default>', pair)))
    codes = [p.code for p in problems]
    assert codes == ["unsupported.joint.contact", "unsupported.geom.condim", "unsupported.pair.contact"]
    assert "condim" in problems[1].message and "solimp" in problems[2].message


@pytest.mark.parametrize("value", [MIN_SOFTNESS, 0.001, 0.05, DEFAULT_SOFTNESS, 1.0, MAX_SOFTNESS])
def test_solimp_round_trip(value):
    numbers = solimp(value)
    assert numbers is not None and softness(numbers) == pytest.approx(value, rel=1e-12)
    assert 0.0 < numbers[0] <= numbers[1] <= 0.9999


def test_values_that_mujoco_cannot_represent():
    assert solimp(0.0) is None and solimp(3.0) is None
    assert solref(0.0) is None and solref(-1.0, (-100.0, -5.0)) is None
    assert solref(0.1, (-100.0, -5.0)) == (-100.0, -20.0)
    assert solref(0.1, (0.02, 0.7)) == (0.1, 0.7)
    assert recovery_time((0.1, -1.0)) is None


def test_height_field_heights(tmp_path):
    path = write(tmp_path, world(TERRAIN + BALL.format('pos="9 9 9"'), HFIELD))
    model, problems = load(path)
    assert not problems
    geometry = model.geometry
    assert geometry.infos[0].shape is Shape.HEIGHTFIELD
    np.testing.assert_array_equal(geometry.size[0], [1.5, 2.0, 0.0])
    heights = geometry.data[geometry.infos[0].data_index]
    assert heights.shape == (4, 3) and (heights.min(), heights.max()) == (0.0, 0.5)
    m = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(m)
    mujoco.mj_forward(m, data)
    X_WG = jax.tree.map(lambda a: a[0], geometry.placement)
    terrain = PlacedShape(X_WG, geometry.size[0], heights)
    # on the grid lines, MuJoCo's triangles and bilinear patches coincide
    xs, ys = np.linspace(-1.5, 1.5, 7), np.linspace(-2.0, 2.0, 5)
    points = [(x, y) for i, x in enumerate(xs) for j, y in enumerate(ys) if i % 2 == 0 or j % 2 == 0]
    for x, y in points:
        x, y = 0.999999 * x, 0.999999 * y
        with jax.enable_x64(True):
            height = float(terrain_height(terrain, x, y)[0])
        above = np.asarray(X_WG.p + X_WG.R @ np.array([x, y, 2.0]))
        distance = mujoco.mj_ray(m, data, above, np.array([0.0, 0.0, -1.0]), None, 1, -1, np.zeros(1, dtype=np.int32))
        assert 2.0 - distance == pytest.approx(height, abs=1e-5)  # MuJoCo stores heights in single precision


def test_a_single_row_of_heights_cannot_collide(tmp_path):
    asset = '<asset><hfield name="h" nrow="1" ncol="3" size="1 1 1 1" elevation="0 1 2"/></asset>'
    model, problems = load(write(tmp_path, world(TERRAIN + BALL.format(""), asset)))
    assert [info.name for info in model.geometry.infos] == ["g"]
    assert [p.code for p in problems] == ["unsupported.geom.type"]
