"""Quantities and units of columns, from their names and values."""

import numpy as np
import pytest

from hybridsim.model.builder import ModelBuilder
from hybridsim.model.model import Model
from hybridsim.project.starter.columns import ColumnKind, parse_column_name
from hybridsim.project.starter.match import match_columns
from hybridsim.project.starter.units import has_wraps, position_unit, time_unit, velocity_unit
from hybridsim.robots import cube, double_pendulum, pendulum

NO_LIMITS = (-np.inf, np.inf)


def two_joints(first: str, second: str) -> Model:
    builder = ModelBuilder("arm")
    builder.add_body("a", joint=first, mass=1.0, inertia=(1, 1, 1))
    return builder.add_body("b", parent="a", joint=second, mass=1.0, inertia=(1, 1, 1)).build()


@pytest.mark.parametrize(
    ("name", "kind", "unit"),
    [
        ("time", ColumnKind.TIME, ""),
        ("t_ms", ColumnKind.TIME, "ms"),
        ("Time [us]", ColumnKind.TIME, "us"),
        ("q1", ColumnKind.POSITION, ""),
        ("theta_2", ColumnKind.POSITION, ""),
        ("elbow_angle_deg", ColumnKind.POSITION, "deg"),
        ("ElbowPosition", ColumnKind.POSITION, ""),
        ("qd1", ColumnKind.VELOCITY, ""),
        ("theta_dot", ColumnKind.VELOCITY, ""),
        ("elbow_vel (deg/s)", ColumnKind.VELOCITY, "deg/s"),
        ("omega_rpm", ColumnKind.VELOCITY, "rpm"),
        ("speed_rad_s", ColumnKind.VELOCITY, "rad/s"),
        ("tau_meas1", ColumnKind.TORQUE, ""),
        ("joint_effort[0]", ColumnKind.TORQUE, ""),
        ("torque [mNm]", ColumnKind.TORQUE, "mNm"),
        ("tau_cmd", ColumnKind.TORQUE, ""),
        ("u0", ColumnKind.COMMAND, ""),
        ("q_des", None, ""),
        ("pos_cmd1", None, ""),
        ("tau_fric1", None, ""),
        ("acc_x", None, ""),
        ("temperature", None, ""),
    ],
)
def test_kind_and_unit_are_parsed_from_names(name, kind, unit):
    column = parse_column_name(name)
    assert (column.kind, column.unit) == (kind, unit)


def targets(names: list[str], model: Model) -> dict[str, tuple[str, str]]:
    return {match.column.name: (str(match.kind), match.target) for match in match_columns(names, model).best}


def test_columns_of_simulate_are_recognized():
    assert targets(["q:joint0", "qd:joint1"], double_pendulum()) == {
        "q:joint0": ("position", "joint0"),
        "qd:joint1": ("velocity", "joint1"),
    }
    assert targets(["q:root.qw", "qd:root.wx"], cube()) == {
        "q:root.qw": ("position", "root.qw"),
        "qd:root.wx": ("velocity", "root.wx"),
    }


def test_columns_match_the_joint_in_their_name():
    model = two_joints("elbow", "left_elbow")
    found = targets(["LeftElbow_pos", "elbow_pos", "elbow", "tau.left_elbow"], model)
    assert found == {
        "LeftElbow_pos": ("position", "left_elbow"),
        "elbow_pos": ("position", "elbow"),
        "tau.left_elbow": ("torque", "left_elbow"),
    }


@pytest.mark.parametrize(
    ("names", "joints"),
    [
        (("theta1", "theta2"), ("joint0", "joint1")),
        (("theta0", "theta1"), ("joint0", "joint1")),
        (("theta1",), ("", "joint1")),
        (("pos_meas1", "pos_meas2"), ("Joint1", "Joint2")),
        (("position[0]", "position[1]"), ("hip", "knee")),
        (("q1", "q2"), ("hip", "knee")),
    ],
)
def test_numbers_match_joint_names_or_indices(names, joints):
    model = two_joints(*(joint or f"joint{k}" for k, joint in enumerate(joints)))
    found = targets(list(names), model)
    expected = [joint for joint in joints if joint]
    assert [found[name][1] for name in names] == expected[-len(names) :]


def test_a_single_joint_needs_no_number():
    assert targets(["angle", "velocity", "u"], pendulum()) == {
        "angle": ("position", "joint0"),
        "velocity": ("velocity", "joint0"),
        "u": ("command", "joint0"),
    }
    assert targets(["angle", "velocity"], double_pendulum()) == {}


def test_plain_measurements_are_preferred():
    matches = match_columns(["pos_filt1", "pos_meas1", "pos_des1", "note1"], double_pendulum())
    assert [match.column.name for match in matches.best] == ["pos_meas1"]
    assert [match.column.name for match in matches.duplicates] == ["pos_filt1"]
    assert matches.unrecognized == ("pos_des1", "note1")


def test_degrees_are_recognized_by_their_range():
    swing = [np.array([-80.0, 10.0, 95.0])]
    assert position_unit("", swing, prismatic=False, limits=NO_LIMITS).unit == "deg"
    assert position_unit("", [np.array([-2.0, 9.0])], prismatic=False, limits=NO_LIMITS).unit == "rad"
    assert position_unit("rad", swing, prismatic=False, limits=NO_LIMITS).unit == "rad"
    # within the limits in degrees, far beyond them in radians
    assert position_unit("", [np.array([-12.0, 15.0])], prismatic=False, limits=(-0.5, 0.5)).unit == "deg"
    assert position_unit("", [np.array([0.0, 250.0])], prismatic=True, limits=(0.0, 0.3)).unit == "mm"


@pytest.mark.parametrize(("factor", "unit"), [(1.0, "rad/s"), (180 / np.pi, "deg/s"), (30 / np.pi, "rpm")])
def test_units_of_velocities_are_guessed_by_comparison_with_positions(factor, unit):
    t = np.arange(500) * 0.01
    position = ("deg", [np.rad2deg(np.sin(t))], [t])
    assert velocity_unit("", [factor * np.cos(t)], position, prismatic=False).unit == unit


def test_units_of_time_are_guessed_from_the_step():
    for unit, step in (("s", 0.002), ("ms", 2.0), ("us", 2000.0), ("ns", 2e6)):
        assert time_unit("", [np.arange(10) * step]).unit == unit
    assert time_unit("ms", [np.arange(10) * 0.1]).unit == "ms"


def test_wrapped_angles_are_detected():
    t = np.arange(1000) * 0.01
    wrapped = (3.0 * t + np.pi) % (2 * np.pi) - np.pi
    assert has_wraps("rad", [wrapped]) and not has_wraps("rad", [3.0 * t])
    assert has_wraps("deg", [np.rad2deg(wrapped)]) and not has_wraps("m", [wrapped])
