"""The example of docs/blueprints.md runs as printed."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "blueprints.md"


def test_the_example_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    exec(compile(code, str(PAGE), "exec"), {})
    assert (tmp_path / "friction.toml").exists() and capsys.readouterr().out
