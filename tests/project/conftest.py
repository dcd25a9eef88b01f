"""Files that the tests of fits share."""

from pathlib import Path

import pytest

from support.arm_recordings import write_arm


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Folder with a model file and recordings."""
    path = tmp_path_factory.mktemp("arm")
    write_arm(path)
    return path
