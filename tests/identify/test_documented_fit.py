"""The code blocks of docs/fitting.md run as they are."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "fitting.md"


def test_the_documented_fit(capsys):
    first, second = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    names: dict = {}
    exec(compile(first, str(PAGE), "exec"), names)
    window_error, prediction_error = (float(line) for line in capsys.readouterr().out.splitlines()[1:])
    assert names["result"].has_converged and window_error == pytest.approx(1e-3, rel=0.2) and prediction_error < 1e-2
    assert names["fitted"].model.joint.damping == pytest.approx(0.03, rel=0.02)
    exec(compile(second, str(PAGE), "exec"), names)
    assert names["free"].names == ("graft[0].quadratic",)
