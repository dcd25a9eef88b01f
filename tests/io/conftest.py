"""Model files used as export targets by several test modules."""

from pathlib import Path

import pytest

from support.arm_files import ARM_MJCF, ARM_URDF


@pytest.fixture
def arm_urdf(tmp_path) -> Path:
    path = tmp_path / "arm.urdf"
    path.write_bytes(ARM_URDF.encode())
    return path


@pytest.fixture
def arm_mjcf(tmp_path) -> Path:
    path = tmp_path / "arm.xml"
    path.write_bytes(ARM_MJCF.replace("\n", "\r\n").encode())
    return path
