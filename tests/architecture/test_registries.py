"""Each kind of component is registered once: names are found, unknown ones are errors, and no second table exists."""

import ast
import re
from collections import Counter
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import get_args, get_type_hints

import jax
import pytest

import hybridsim
from hybridsim.cli.blueprint import blueprint
from hybridsim.cli.export_c import export_c
from hybridsim.cli.main import COMMANDS, run
from hybridsim.cli.simulate import simulate
from hybridsim.contact.choices import CONTACTS, FRICTION_LAWS, STABILIZATIONS
from hybridsim.contact.compliant.compliant_contact import CompliantContact
from hybridsim.contact.compliant.friction_laws import FrictionLaw
from hybridsim.contact.contact import AbstractContact
from hybridsim.contact.impulse.stabilization import Stabilization
from hybridsim.core.derived_table import derived_fields
from hybridsim.core.errors import DataError, ModelError, SpecificationError
from hybridsim.core.parameter_field import parameter_field
from hybridsim.data.file_format import FileFormat
from hybridsim.data.read import FORMATS, UNSUPPORTED_FORMATS, read_table
from hybridsim.dynamics.actuation import AbstractStage
from hybridsim.dynamics.choices import ACTUATION_STAGES
from hybridsim.identify.robust_loss import LOSSES
from hybridsim.identify.solvers.levenberg_marquardt import CalibrationSolver
from hybridsim.identify.solvers.registry import SOLVERS
from hybridsim.identify.solvers.solver import Solver
from hybridsim.identify.stage import Stage
from hybridsim.io.compare import PARAMETERS
from hybridsim.io.convert import WRITERS, convert
from hybridsim.io.mjcf.edit_mjcf import MJCF_PARAMETERS
from hybridsim.io.urdf.edit_urdf import URDF_PARAMETERS
from hybridsim.model.builder import ModelBuilder
from hybridsim.model.compound_joints import COMPOUND_JOINTS
from hybridsim.model.joints import ElementaryJoint, ElementaryJointType
from hybridsim.model.specs import JointKind
from hybridsim.native.graph.elementary import FUNCTIONS
from hybridsim.native.graph.functions import EXPANSIONS
from hybridsim.native.lowering import lower
from hybridsim.networks.choices import NETWORKS
from hybridsim.robots import cube, pendulum
from hybridsim.sim.choices import BACKENDS, INTEGRATORS
from hybridsim.sim.simulation_settings import SimulationSettings
from hybridsim.sim.simulator import Simulator
from hybridsim.sim.step import step

SOURCE = Path(hybridsim.__file__).parent
ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/extending.md"
TREES = {file.relative_to(SOURCE).as_posix(): ast.parse(file.read_text()) for file in SOURCE.rglob("*.py")}


def classes_of_hybridsim(base: type) -> set[type]:
    """Concrete subclasses that are defined in the package."""
    found = {sub for cls in base.__subclasses__() for sub in (cls, *classes_of_hybridsim(cls))}
    return {cls for cls in found if cls.__module__.startswith("hybridsim.")}


# names are found


def test_registered_names_stand_for_components():
    assert all(isinstance(CONTACTS[name](), AbstractContact) for name in CONTACTS)
    assert all(isinstance(FRICTION_LAWS[name](), FrictionLaw) for name in FRICTION_LAWS)
    assert {CONTACTS[name] for name in CONTACTS} == classes_of_hybridsim(AbstractContact)
    assert {STABILIZATIONS[name] for name in STABILIZATIONS} == classes_of_hybridsim(Stabilization)
    assert {ACTUATION_STAGES[name] for name in ACTUATION_STAGES} == classes_of_hybridsim(AbstractStage)
    assert set(SOLVERS.values()) == classes_of_hybridsim(Solver) - {CalibrationSolver}
    assert all(NETWORKS[name].sizes(24, 12) is None or NETWORKS[name].wiring for name in NETWORKS)
    assert {FRICTION_LAWS[name] for name in FRICTION_LAWS} == classes_of_hybridsim(FrictionLaw)
    assert {type(kind.joint) for kind in ElementaryJointType} == classes_of_hybridsim(ElementaryJoint)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_every_integrator_steps(integrator):
    sim = Simulator(pendulum(), integrator=integrator)
    after = jax.eval_shape(step, sim, sim.initial_state([1.0]))
    assert after.q.shape == (1,)


@pytest.mark.parametrize("contact", CONTACTS)
def test_every_contact_model_is_accepted_by_name(contact):
    assert type(Simulator(cube(), contact=contact).contact) is CONTACTS[contact]


@pytest.mark.parametrize("kind", JointKind)
def test_every_joint_type_is_accepted_by_the_builder(kind):
    builder = ModelBuilder("one").declare_unactuated()
    builder.add_body("base", mass=1.0, inertia=(1, 1, 1))
    parent = "world" if kind is JointKind.FREE else "base"
    builder.add_body("body", parent=parent, kind=str(kind), mass=1.0, inertia=(1, 1, 1))
    compound = COMPOUND_JOINTS.get(kind)
    assert kind.is_compound == (compound is not None)
    types = [part.elementary_type for part in (compound.kinds if compound else (kind,))]
    assert list(builder.build(merge=False).topology.joint_types[1:]) == types


def test_elementary_types_and_kinds_have_the_same_names():
    assert {kind.value for kind in JointKind if not kind.is_compound} == {*ElementaryJointType, JointKind.CONTINUOUS}


def test_the_command_line_accepts_the_registered_names():
    for command in (simulate, export_c):
        assert get_args(get_type_hints(command)["integrator"]) == tuple(INTEGRATORS)
    for command in (simulate, blueprint):
        assert get_args(get_type_hints(command)["contact"]) == tuple(CONTACTS)


def test_projects_accept_the_registered_names():
    for name in INTEGRATORS:
        assert SimulationSettings(integrator=name).integrator == name
    for name in BACKENDS:
        assert SimulationSettings(backend=name).backend == name
    for name in CONTACTS:
        assert type(SimulationSettings(contact=name).contact) is CONTACTS[name]
    for name in FRICTION_LAWS:
        contact = SimulationSettings(contact={"kind": "compliant", "law": name}).contact
        assert type(contact.law) is FRICTION_LAWS[name]
    for name in STABILIZATIONS:
        contact = SimulationSettings(contact={"kind": "impulse", "stabilization": name}).contact
        assert type(contact.stabilization) is STABILIZATIONS[name]
    for name in SOLVERS:
        assert type(Stage(solver=name).solver) is SOLVERS[name]
    unknown = {"integrator": "leapfrog", "backend": "gpu", "contact": "sticky", "actuation": [{"kind": "gear"}]}
    for key, value in unknown.items():
        with pytest.raises(SpecificationError, match="valid values are"):
            SimulationSettings(**{key: value})
    for key, value in (("law", "dry"), ("stabilization", "spring")):
        kind = "compliant" if key == "law" else "impulse"
        with pytest.raises(SpecificationError, match="valid values are"):
            SimulationSettings(contact={"kind": kind, key: value})
    with pytest.raises(SpecificationError, match=f"valid values are {', '.join(SOLVERS)}"):
        Stage(solver="newton")


def test_names_are_documented():
    tables = (INTEGRATORS, CONTACTS, FRICTION_LAWS, STABILIZATIONS, ACTUATION_STAGES, SOLVERS, LOSSES, NETWORKS)
    text = (ROOT / "docs/projects.md").read_text()
    missing = [name for table in tables for name in table if not re.search(rf"[`\"]{name}[`\"]", text)]
    titles = {title for file_format in FORMATS for title in file_format.title.split(", ")}
    missing += [title for title in titles if title not in text or title not in (ROOT / "README.md").read_text()]
    assert not missing


def test_functions_of_graphs_have_a_definition():
    assert not [name for name, function in FUNCTIONS.items() if not function.is_in_c and name not in EXPANSIONS]


def test_every_file_of_a_reader_defines_a_registered_format():
    modules = [import_module(f"hybridsim.data.{file.stem}") for file in (SOURCE / "data").glob("read_*.py")]
    defined = [value for module in modules for value in vars(module).values() if isinstance(value, FileFormat)]
    assert len(defined) == len(modules) and {id(value) for value in defined} == {id(value) for value in FORMATS}
    extensions = Counter(extension for value in FORMATS for extension in value.extensions)
    assert max(extensions.values()) == 1
    assert extensions.keys().isdisjoint(extension for group in UNSUPPORTED_FORMATS for extension in group)


def test_every_file_of_a_command_is_registered():
    files = {
        Path(file).stem
        for file, tree in TREES.items()
        if file.startswith("cli/") and re.match(r"`hybridsim [a-z][a-z-]*`", ast.get_docstring(tree) or "")
    }
    assert files == set(COMMANDS) and len(COMMANDS) == len(files)
    listed = next(line for line in (ROOT / "README.md").read_text().splitlines() if line.startswith("| command line |"))
    assert set(COMMANDS) <= {name.replace("-", "_") for name in re.findall(r"`([a-z-]+)`", listed)}


def test_every_file_of_native_rules_is_collected_and_no_primitive_has_two_rules():
    files = {file.stem for file in (SOURCE / "native/lowering").glob("rules_*.py")} - {"rules_arrays"}
    tables = [import_module(f"hybridsim.native.lowering.{name}").RULES for name in files]
    names = Counter(name for table in tables for name in table)
    assert max(names.values()) == 1
    assert lower._rules() == {name: rule for table in tables for name, rule in table.items()}


def test_every_parameter_of_a_component_has_a_unit_and_bounds():
    for base in (AbstractStage, AbstractContact, FrictionLaw, Stabilization):
        for component in classes_of_hybridsim(base):
            for field in fields(component):
                # settings that are not numbers, and fields that a component derives, are no parameters
                is_parameter = not field.metadata.get("static") and field.name not in derived_fields(component)
                if is_parameter and "Choice" not in str(field.type):
                    assert parameter_field(component, field.name), f"{component.__name__}.{field.name}"


def test_exported_parameters_exist():
    paths = [parameter.path for parameter in PARAMETERS]
    assert len(set(paths)) == len(paths)
    assert len(set(URDF_PARAMETERS)) == len(URDF_PARAMETERS)
    assert {*URDF_PARAMETERS, *MJCF_PARAMETERS} <= set(paths)


# unknown names are errors that list the valid ones

UNKNOWN = {
    "integrator": (lambda: Simulator(pendulum(), integrator="leapfrog"), INTEGRATORS),
    "contact model": (lambda: Simulator(pendulum(), contact="sticky"), CONTACTS),
    "backend": (lambda: Simulator(pendulum(), backend="fortran"), BACKENDS),
    "friction law": (lambda: CompliantContact(law="dry"), FRICTION_LAWS),
    "joint type": (lambda: ModelBuilder("arm").add_body("upper", kind="helical"), JointKind),
}


@pytest.mark.parametrize("what", UNKNOWN)
def test_unknown_names_are_errors_that_list_the_valid_ones(what):
    choose, names = UNKNOWN[what]
    with pytest.raises(ValueError, match=f"unknown {what} '[a-z]+'; choose one of {', '.join(names)}$"):
        choose()


def test_unknown_extensions_are_errors_that_list_the_valid_ones(tmp_path):
    file = tmp_path / "run.foo"
    file.write_text("")
    with pytest.raises(DataError) as caught:
        read_table(file)
    assert all(extension in str(caught.value) for value in FORMATS for extension in value.extensions)
    with pytest.raises(ModelError) as caught:
        convert(pendulum(), tmp_path / "robot.foo")
    assert all(extension in str(caught.value) for extension in WRITERS)


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["nonsense"], [name.replace("_", "-") for name in COMMANDS]),
        (["simulate", "pendulum", "--integrator", "leapfrog"], INTEGRATORS),
        (["simulate", "pendulum", "--contact", "sticky"], CONTACTS),
        (["export-c", "pendulum", "--integrator", "leapfrog"], INTEGRATORS),
    ],
)
def test_unknown_names_on_the_command_line_list_the_valid_ones(arguments, names, capsys):
    with pytest.raises(SystemExit) as exit:
        run(arguments)
    shown = capsys.readouterr()
    assert exit.value.code == 2 and all(name in shown.out + shown.err for name in names)


def test_joint_types_that_a_file_format_lacks_are_refused(tmp_path, monkeypatch):
    from hybridsim.io.mjcf import write_mjcf
    from hybridsim.io.urdf import write_urdf

    for module, suffix in ((write_urdf, ".urdf"), (write_mjcf, ".xml")):
        types = {kind: name for kind, name in module._TYPES.items() if kind is not JointKind.REVOLUTE}
        monkeypatch.setattr(module, "_TYPES", types)
        with pytest.raises(ModelError, match=r"is revolute, which [A-Z]+ does not support"):
            convert(pendulum(), tmp_path / f"robot{suffix}")


# no second table


def string_constants(file: str) -> set[str]:
    """Strings of a file."""
    constants = [node.value for node in ast.walk(TREES[file]) if isinstance(node, ast.Constant)]
    return {value for value in constants if isinstance(value, str)}


def strings_of_the_command_line(file: str) -> set[str]:
    """Strings of a file of the command line; elsewhere, the names of commands are ordinary words."""
    return string_constants(file) if file.startswith("cli/") else set()


def identifiers(file: str) -> set[str]:
    """Variables, attributes and classes of a file; names that it only imports, for others to import, are no table."""
    nodes = list(ast.walk(TREES[file]))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    names |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    return names | {node.name for node in nodes if isinstance(node, ast.ClassDef)}


EXTENSIONS = [extension for value in FORMATS for extension in value.extensions]
STAGES = [cls.__name__ for cls in classes_of_hybridsim(AbstractStage)]
JOINTS = [type(kind.joint).__name__ for kind in ElementaryJointType]
READERS = {file for file in TREES if file.startswith("data/read_")}

TABLES = {
    "integrators": (string_constants, tuple(INTEGRATORS), {"sim/choices.py"}),
    "contact models": (string_constants, tuple(CONTACTS), {"contact/choices.py"}),
    "stabilizations": (
        string_constants,
        tuple(STABILIZATIONS),
        {"contact/choices.py", "contact/impulse/stabilization.py"},
    ),
    "stages of actuation": (string_constants, tuple(ACTUATION_STAGES), {"dynamics/choices.py"}),
    "solvers": (
        identifiers,
        [cls.__name__ for cls in SOLVERS.values()],
        {"identify/solvers/registry.py", "identify/solvers/levenberg_marquardt.py"},
    ),
    "networks": (string_constants, tuple(NETWORKS), {"networks/choices.py"}),
    "friction laws": (string_constants, tuple(FRICTION_LAWS), {"contact/choices.py"}),
    "data formats": (string_constants, EXTENSIONS, READERS),
    "commands": (strings_of_the_command_line, COMMANDS, {"cli/main.py", "cli/demo.py"}),
    "actuators": (identifiers, STAGES, {"dynamics/actuation.py"}),
    "classes of joints": (identifiers, JOINTS, {"model/joints.py"}),
    "classes of friction laws": (
        identifiers,
        [cls.__name__ for cls in classes_of_hybridsim(FrictionLaw)],
        {"contact/compliant/friction_laws.py"},
    ),
    "compound joints": (
        identifiers,
        [kind.name for kind in COMPOUND_JOINTS],
        {"model/specs.py", "model/compound_joints.py", "io/urdf/read_elements.py"},
    ),
}
"""How a file mentions the members of a registry, their names, and the only files that may mention two or more."""


@pytest.mark.parametrize("registry", TABLES)
def test_no_second_file_lists_the_members_of_a_registry(registry):
    mentions, names, allowed = TABLES[registry]
    found = {file for file in TREES if len(mentions(file) & set(names)) > 1}
    assert found <= allowed, f"{registry} are also listed in {', '.join(sorted(found - allowed))}"
    assert found, "the registry itself is not found: how its members are mentioned has changed"


def test_the_engine_asks_joints_for_properties_instead_of_comparing_types():
    """Only descriptions and files compare types: what the engine compares, it would not know of a new type."""
    engine = ("contact/", "dynamics/", "sim/", "params/", "identify/", "viz/", "native/", "taps/")
    names = {f"{table}.{kind.name}" for kind in ElementaryJointType for table in ("ElementaryJointType", "JointKind")}
    assert names & qualified_names("model/specs.py")
    guilty = {file for file in TREES if file.startswith(engine) and qualified_names(file) & names}
    assert not guilty


def qualified_names(file: str) -> set[str]:
    """Attributes of variables in a file, such as `JointKind.FREE`."""
    nodes = [node for node in ast.walk(TREES[file]) if isinstance(node, ast.Attribute)]
    return {f"{node.value.id}.{node.attr}" for node in nodes if isinstance(node.value, ast.Name)}


# the page


def sections() -> dict[str, str]:
    """Sections of the page by title."""
    parts = re.split(r"^## (.+)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_files_on_the_page_exist():
    named = re.findall(r"`((?:src|tests|docs)/[\w./]+)`", PAGE.read_text(encoding="utf-8"))
    assert len(named) > 30
    missing = [name for name in named if not (ROOT / name).exists()]
    assert not missing


@pytest.mark.parametrize("title", sections())
def test_a_component_touches_few_files(title):
    """One file per numbered step; alternatives, and files at which a step only points, are introduced by words."""
    steps = re.findall(r"^\d\. (.*(?:\n   .*)*)", sections()[title], flags=re.MULTILINE)
    assert 1 <= len(steps) <= (4 if title == "Joint type" else 3)
    for text in steps:
        is_choice = text.startswith(("One of", "The class that has", "The code that uses", "The file of the step"))
        assert is_choice or len(re.findall(r"`src/[\w./]+`", text)) <= 1, text


@pytest.mark.parametrize("title", sections())
def test_every_section_lists_tests_and_pages(title):
    text = sections()[title]
    assert re.search(r"^Tests: (none|.*`tests/|a new file|beside|the rule)", text, flags=re.MULTILINE)
    assert re.search(r"\bPages:\s(none|`)", text)


def test_every_linked_kind_of_component_has_a_section():
    anchors = re.findall(r"^\| \[.*\]\(#([a-z-]+)\)", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert anchors == [title.lower().replace(" ", "-") for title in sections()]


def test_registered_classes_are_public():
    public = {
        hybridsim.contact: (CONTACTS, FRICTION_LAWS, STABILIZATIONS),
        hybridsim.actuators: (ACTUATION_STAGES,),
        hybridsim.identify: (SOLVERS,),
        hybridsim.networks: (NETWORKS,),
    }
    for package, tables in public.items():
        missing = [cls for table in tables for cls in table.values() if getattr(package, cls.__name__, None) is not cls]
        assert not missing, package.__name__
