"""Fits that are killed repeatedly at random times end bitwise identical, and files are never damaged."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked here")
@pytest.mark.parametrize("kills", [6, pytest.param(60, marks=pytest.mark.slow)])
def test_killed_fits_are_bitwise_identical(kills, tmp_path):
    program = [sys.executable, str(TESTS / "support" / "killed_fits.py"), str(tmp_path), str(kills), "0"]
    done = subprocess.run(program, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(TESTS)})
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("killed after these steps:")
