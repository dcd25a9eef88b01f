"""House rules that a machine can check."""

import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import hybridsim

SOURCE = Path(hybridsim.__file__).parent
ROOT = Path(__file__).parents[2]
MAX_LINES = 400


def _imported_packages(code: str) -> set[str]:
    program = f"import sys; {code}; print('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in done.stdout.split()}


def test_import_is_light():
    assert not _imported_packages("import hybridsim") & {
        "jax",
        "numpy",
        "scipy",
        "mujoco",
        "matplotlib",
        "equinox",
        "rich",
        "jinja2",
    }


def test_importing_fit_does_not_load_scipy():
    """Importing scipy would add a tenth of a second to every first fit."""
    code = "import hybridsim.identify.solve; from hybridsim.robots import double_pendulum; double_pendulum()"
    assert "scipy" not in _imported_packages(code)


def test_help_loads_neither_jax_nor_jinja():
    code = "from hybridsim.cli.main import run\ntry: run(['--help'])\nexcept SystemExit: pass"
    program = (
        f"import sys, io\nsys.stdout = io.StringIO()\n{code}\nsys.stdout = sys.__stdout__\n"
        "print([name for name in ('jax', 'jinja2') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_files_stay_short():
    files = [*SOURCE.rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
    long = {str(f): n for f in files if (n := len(f.read_text().splitlines())) > MAX_LINES}
    assert not long, f"more than {MAX_LINES} lines: {long}"


def test_the_architecture_page_lists_the_layers():
    (contract,) = (
        contract
        for contract in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
        if contract.get("containers") == ["hybridsim"]
    )
    depths = {name.strip(): k for k, layer in enumerate(contract["layers"]) for name in layer.split("|")}
    section = (ROOT / "ARCHITECTURE.md").read_text().partition("## Layers")[2].split("```")[1]
    listed = [line.split()[0] for line in section.strip().splitlines()]
    assert sorted(listed) == sorted(depths) == sorted(d.name for d in SOURCE.iterdir() if (d / "__init__.py").exists())
    assert [depths[name] for name in listed] == sorted(depths.values())


def test_no_pickle_anywhere():
    words = ("import pickle", "import dill", "import cloudpickle", "allow_pickle=True")
    guilty = [str(f) for f in SOURCE.rglob("*.py") if any(word in f.read_text() for word in words)]
    assert not guilty


def test_engine_refuses_single_precision_with_advice():
    code = """
import jax, numpy as np
from hybridsim import Simulator, simulate, step
from hybridsim.errors import PrecisionError
from hybridsim.robots import pendulum
sim = Simulator(pendulum())
state = sim.initial_state([1.0])
try:
    jax.jit(step)(sim, state)
except PrecisionError as error:
    assert "jax_enable_x64" in str(error)
else:
    raise SystemExit("single precision was accepted")
trajectory = simulate(sim, state, steps=10)
assert trajectory.q.dtype == np.float64 and not jax.config.jax_enable_x64
"""
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_every_dependency_has_a_lower_bound():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *(r for extra in project["optional-dependencies"].values() for r in extra)]
    loose = [
        requirement for requirement in wanted if ">=" not in requirement and not requirement.startswith("hybridsim")
    ]
    assert not loose and project["requires-python"] == ">=3.11"


def test_no_folder_of_tests_is_skipped(pytestconfig):
    """Pytest does not look into folders with some names, such as build, unless it is configured."""
    skipped = pytestconfig.getini("norecursedirs")
    folders = {path.parent for path in (ROOT / "tests").rglob("test_*.py")}
    assert not [folder for folder in folders for pattern in skipped if fnmatch(folder.name, pattern)]
