"""The pages on fitting say what works: their programs are run as they stand."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "fitting.md"


def test_the_documented_fit(capsys):
    first, second = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    names: dict = {}
    exec(compile(first, str(PAGE), "exec"), names)
    explained, predicted = (float(line) for line in capsys.readouterr().out.splitlines()[1:])
    assert names["found"].converged and explained == pytest.approx(1e-3, rel=0.2) and predicted < 1e-2
    assert names["fitted"].model.joint.damping == pytest.approx(0.03, rel=0.02)
    exec(compile(second, str(PAGE), "exec"), names)
    assert names["free"].names == ("graft[0].quadratic",)
