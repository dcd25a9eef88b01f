"""Model files of real robots in installed packages."""

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

SUITE = (
    "acrobot",
    "ball_in_cup",
    "cartpole",
    "cheetah",
    "finger",
    "fish",
    "hopper",
    "humanoid",
    "humanoid_CMU",
    "manipulator",
    "pendulum",
    "point_mass",
    "quadruped",
    "reacher",
    "stacker",
    "swimmer",
    "walker",
)
"""Models of dm_control's suite."""

BULLET_MJCF = (
    "ant",
    "humanoid",
    "humanoid_symmetric_no_ground",
    "inverted_double_pendulum",
    "inverted_pendulum",
    "pusher",
    "reacher",
    "striker",
    "thrower",
    "capsule",
    "cylinder",
    "hello_mjcf",
)
"""MJCF files of pybullet_data."""

URDF = {
    "a1": ("a1/a1.urdf", {"base": "free"}),
    "aliengo": ("aliengo/aliengo.urdf", {"base": "free"}),
    "laikago": ("laikago/laikago_toes.urdf", {"base": "free", "inertia": "from_geometry"}),
    "mini_cheetah": ("mini_cheetah/mini_cheetah.urdf", {"base": "free", "tolerate": ["inertia.triangle"]}),
    "panda": ("franka_panda/panda.urdf", {}),
    "kuka": ("kuka_iiwa/model.urdf", {}),
    "xarm": ("xarm/xarm6_robot.urdf", {"tolerate": "all"}),
    "racecar": ("racecar/racecar.urdf", {"base": "free"}),
    "r2d2": ("r2d2.urdf", {"base": "free"}),
    "cartpole": ("cartpole.urdf", {}),
    "pendulum5": ("pendulum5.urdf", {}),
}
"""URDF files of pybullet_data, with the load options that each requires."""

ACROBOT = Path(os.environ.get("HYBRIDSIM_DATA", "../shared/data")) / "driven_double_pendulum" / "acrobot.urdf"
"""Identified model of a real double pendulum, stored with the recordings, outside the repository."""


def suite_file(name: str) -> Path:
    """An MJCF file of dm_control's suite; skips the test where it is not installed."""
    return _package_folder("dm_control") / "suite" / f"{name}.xml"


def bullet_file(path: str) -> Path:
    """A file of pybullet_data; skips the test where it is not installed."""
    return _package_folder("pybullet_data") / path


def _package_folder(name: str) -> Path:
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        pytest.skip(f"the package {name} is not installed for this Python")
    return Path(spec.origin).parent
