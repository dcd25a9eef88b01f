"""The code blocks of docs/fitting.md run as they are."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "fitting.md"


def test_the_documented_fit(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first, second = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    names: dict = {}
    exec(compile(first, str(PAGE), "exec"), names)
    shown, result = capsys.readouterr().out, names["result"]
    assert "±" in shown and "RMS error" in shown and (tmp_path / "fit.png").exists()
    assert result.has_converged
    errors = result.predict(names["runs"][3:]).errors
    assert all(error["after"] < 2e-2 for error in errors.values())
    assert names["fitted"].model.joint.damping == pytest.approx(0.03, rel=0.02)
    assert (
        abs(result.parameters["joint.damping[joint0]"] - 0.03) < 4.0 * result.standard_errors["joint.damping[joint0]"]
    )
    exec(compile(second, str(PAGE), "exec"), names)
    assert names["free"].names == ("graft[0].quadratic",) and len(names["experiment"].simulator.blueprint.grafts) == 1
