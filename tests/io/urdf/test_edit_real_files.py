"""URDF export into real files: one line changes, and every file that loads can be exported into."""

from importlib.util import find_spec
from pathlib import Path

import equinox as eqx
import numpy as np
import pytest

from hybridsim.core.errors import ModelWarning
from hybridsim.io import xml
from hybridsim.io.export import export
from hybridsim.io.load import inspect_model
from hybridsim.io.load_options import LoadOptions
from hybridsim.model.assemble import assemble
from hybridsim.model.joints import ElementaryJointType
from hybridsim.model.merge import merge_fixed_joints
from hybridsim.model.model import Model
from support.exported_models import assert_same, load, with_entry
from support.real_models import URDF, bullet_file
from support.urdf_changes import read_parsed_urdf


@pytest.mark.parametrize(("name", "body"), [("a1/a1.urdf", "FL_upper"), ("franka_panda/panda.urdf", "panda_link4")])
def test_one_mass(tmp_path, name, body):
    file = bullet_file(name)
    options = {"packages": {"meshes": file.parent / "meshes"}}
    model = load(file, **options)
    row = model.topology.body_index(body)
    mass = float(model.body.mass[row]) * 1.1
    model = with_entry(model, lambda m: m.body.mass, row, mass)
    out = tmp_path / file.name
    if "package://" in file.read_text():
        (change,) = export(file, model, out, **options)
    else:
        with pytest.warns(ModelWarning, match="refers to meshes by relative paths"):
            (change,) = export(file, model, out, **options)
    assert (change.element, change.after) == (f"link {body!r}", mass)
    assert_same(load(out, **options), model)
    before, after = file.read_bytes().splitlines(), out.read_bytes().splitlines()
    assert sum(a != b for a, b in zip(before, after, strict=True)) == 1


def test_a_body_with_merged_links(tmp_path):
    file = bullet_file("a1/a1.urdf")
    model = load(file, base="free")
    row = model.topology.body_index("FL_lower")
    model = with_entry(model, lambda m: m.body.mass, row, 0.3)
    with pytest.warns(ModelWarning, match="refers to meshes by relative paths"):
        export(file, model, tmp_path / "a1.urdf", base="free")
    again = load(tmp_path / "a1.urdf", base="free")
    assert again.body.mass[row] == 0.3
    assert_same(again, model, atol=1e-16)


def all_files() -> list[str]:
    """URDF files of pybullet_data; of its thousand random objects only the first."""
    found = find_spec("pybullet_data")
    folder = Path(found.origin).parent if found is not None and found.origin else None
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.urdf")) if folder else []
    return [name for name in names if not name.startswith("random_urdfs") or "/000." in name]


LOAD_OPTIONS = (
    {},
    {"base": "free"},
    {"tolerate": "all"},
    {"tolerate": "all", "base": "free", "inertia": "from_geometry"},
)
"""Load options to try, simplest first."""


def with_perturbed_parameters(model: Model, seed: int) -> Model:
    """The model with all masses, inertias, dampings, frictions and placements randomly perturbed by up to 5 %."""
    rng = np.random.default_rng(seed)

    def perturb(array):
        return np.asarray(array) * (1.0 + 0.05 * rng.uniform(-1.0, 1.0, np.shape(array)))

    factor = perturb(np.ones(model.nb))
    is_free = np.array([kind is ElementaryJointType.FREE for kind in model.topology.joint_types])
    # a root link has no joint in the file, and so no placement
    placement = np.where(is_free[:, None], model.joint.placement.p, perturb(model.joint.placement.p))
    return eqx.tree_at(
        lambda m: (m.body.mass, m.body.inertia, m.joint.damping, m.joint.friction, m.joint.placement.p),
        model,
        (
            model.body.mass * factor,
            model.body.inertia * factor[:, None],
            perturb(model.joint.damping),
            perturb(model.joint.friction),
            placement,
        ),
    )


def assert_exported(file: Path, options: dict, out: Path) -> None:
    """Check that the exported text, read at the path of the original file, gives the changed model."""
    model = load(file, **options)
    expected = with_perturbed_parameters(model, seed=model.nb)
    export(file, expected, out, **options)
    spec, _ = read_parsed_urdf(file, xml.read(out)[1], LoadOptions(**options))
    assert_same(assemble(merge_fixed_joints(spec)[0]), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.filterwarnings("ignore:.*refers to meshes by relative paths:hybridsim.core.errors.ModelWarning")
@pytest.mark.parametrize("name", URDF)
def test_every_parameter_of_robots(tmp_path, name):
    path, options = URDF[name]
    assert_exported(bullet_file(path), options, tmp_path / "out.urdf")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*refers to meshes by relative paths:hybridsim.core.errors.ModelWarning")
@pytest.mark.parametrize("name", all_files())
def test_every_file(tmp_path, name):
    file = bullet_file(name)
    options = next(
        (load_options for load_options in LOAD_OPTIONS if inspect_model(file, **load_options)[0] is not None), None
    )
    if options is None:
        pytest.skip("the file cannot be used")
    assert_exported(file, options, tmp_path / "out.urdf")
