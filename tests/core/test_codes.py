"""The list of problem codes is complete, and contains no unused codes."""

import ast
import fnmatch
import re
from collections.abc import Iterator
from pathlib import Path

import hybridsim
from hybridsim.core.codes import CODES, OPEN_TOPICS
from hybridsim.io.compare import PARAMETERS

SOURCE = Path(hybridsim.__file__).parent
CHECKED = ("core", "model", "data", "io", "project", "cli")
"""Packages that report problems."""
CHECKED_FILES = [f"identify/{name}.py" for name in ("assembly", "command_actuators", "experiment", "task")]
CHECKED_FILES += ["params/resolve.py"]
"""Files of other packages that report problems."""
FILES = "package.xml run.csv step.c project.toml *.toml manifest.json history.jsonl result.json scores.json "
FILES += "results.json summary.html weights.safetensors prediction.csv identified.* "
FILES += "progress.png windows.png window_typical.png window_worst.png "
FILES += "networks.toml networks.safetensors *.npz "
FILES += "discovery.json blueprint.toml blueprint.safetensors wiring.svg weights.svg"
QUANTITIES = "joint.q joint.qd step.time input.* topology.* sensor.bias sensor.delay *.*"
OTHERS = {*FILES.split(), *QUANTITIES.split(), *(parameter.path for parameter in PARAMETERS)}
"""Strings that look like problem codes but are not."""


def words() -> Iterator[str]:
    """Strings in the source code that look like problem codes; formatted values are replaced by a star."""
    pattern = re.compile(r"([a-z_]+|\*)\.([a-z_]+|\*)")
    paths = [path for package in CHECKED for path in sorted((SOURCE / package).rglob("*.py"))]
    for path in (*paths, *(SOURCE / name for name in CHECKED_FILES)):
        tree = ast.parse(path.read_text())
        parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                word = "".join(str(part.value) if isinstance(part, ast.Constant) else "*" for part in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
                word = node.value
            else:
                continue
            if pattern.fullmatch(word) and path.name != "codes.py":
                yield word


def test_every_code_in_use_is_listed():
    used = [word for word in words() if word not in OTHERS and not word.startswith(OPEN_TOPICS)]
    assert len(used) > 100
    assert {word for word in used if not fnmatch.filter(CODES, word)} == set()


def test_every_listed_code_is_in_use():
    used = set(words()) - OTHERS
    assert {code for code in CODES if not any(fnmatch.filter([code], word) for word in used)} == set()
