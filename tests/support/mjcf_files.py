"""Small MJCF files for tests, and functions to load them."""

from pathlib import Path

import pytest

from hybridsim.core.errors import ModelError, Problem, Severity
from hybridsim.io.mjcf.read_mjcf import read_mjcf
from hybridsim.model.assemble import assemble
from hybridsim.model.merge import merge_fixed_joints
from hybridsim.model.model import Model

UNSUPPORTED = """<mujoco>
<option density="1.2" solver="CG" iterations="5"><flag filterparent="disable"/></option>
<default><geom solmix="2" solref=".01 1" margin="0"/></default>
<worldbody>
<light/><camera name="eye"/>
<body name="a" gravcomp="1">
<joint name="j" margin=".1" damping="1 2"/>
<geom size=".1" condim="4" gap=".01"/>
</body>
<body name="b" pos="1 0 0">
<joint name="ball" type="ball" range="0 30"/>
<geom size=".1"/>
</body>
<composite type="cable" count="5 1 1" size=".2" curve="s 0 0" initial="none"><geom type="capsule"
 size=".01"/></composite>
</worldbody>
<equality>
<connect name="loop" body1="a" body2="b" anchor="0 0 0"/>
<joint joint1="j"/>
</equality>
<tendon><fixed name="t"><joint joint="j" coef="1"/></fixed></tendon>
<sensor><jointpos joint="j"/><jointvel joint="j"/></sensor>
</mujoco>"""
"""Unsupported features, one of each kind."""


def write(folder: Path, body: str, name: str = "model.xml") -> Path:
    """Write a file and return its path."""
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(body)
    return path


def world(content: str, before: str = "", after: str = "") -> str:
    """MJCF text with the given content of the world, which begins in line 4."""
    return f"<mujoco>\n{before}\n<worldbody>\n{content}\n</worldbody>\n{after}\n</mujoco>"


def load(path: Path) -> tuple[Model, list[Problem]]:
    """Merged model in a file without errors, and the warnings about it."""
    spec, problems = read_mjcf(path)
    assert not [p for p in problems if p.severity is Severity.ERROR]
    return assemble(merge_fixed_joints(spec)[0]), problems


def read_errors(path: Path) -> list[Problem]:
    """Errors of a file that is rejected."""
    with pytest.raises(ModelError) as caught:
        read_mjcf(path)
    return caught.value.problems
