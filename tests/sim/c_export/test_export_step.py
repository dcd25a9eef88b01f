"""Step exported as C: equal to XLA, bit-identical to the native kernels, accepted by any C99 compiler."""

import re
import shutil
from pathlib import Path
from typing import NamedTuple

import equinox as eqx
import jax
import numpy as np
import pytest

import hybridsim
from hybridsim import MLP, Blueprint, Graft, ModelBuilder, Simulator
from hybridsim.core.errors import HybridsimError
from hybridsim.dynamics.actuation import (
    AbstractStage,
    Actuation,
    AffineActuator,
    FirstOrderLag,
    ForceRange,
    TransportDelay,
)
from hybridsim.native.llvm import machine
from hybridsim.native.runtime.rollout import Rollout
from hybridsim.robots import acrobot, cartpole, cube, double_pendulum, pendulum, quadruped
from hybridsim.sim.c_export.export_step import ExportedFiles, export_c, split_parameters, zero_inputs
from hybridsim.sim.choices import INTEGRATORS
from support.c_library import EXACT, FUSED, IS_X86, STRICT, build, call, needs_compiler, run, same_bits
from support.compare import assert_relative
from support.slow import slow

DOCS = Path(__file__).parents[3] / "docs" / "export-c.md"


def cartpole_with_network() -> Simulator:
    """A network with a user input, and actuators with internal states."""
    net = MLP(4, 1, hidden=(6,), seed=1)
    last = np.random.default_rng(2).normal(size=net.weights[-1].shape)
    net = eqx.tree_at(lambda n: n.weights[-1], net, last)
    graft = Graft("joint.tau[hinge]", ["joint.q", "joint.qd[hinge]", "input.wind"], net)
    stages = (TransportDelay(0.015, samples=3), FirstOrderLag(0.05), AffineActuator(), ForceRange())
    blueprint = Blueprint(graft, inputs={"wind": 1})
    return Simulator(cartpole(), blueprint=blueprint, actuation=Actuation(*stages), dt=0.01)


def pendulum_with_large_network() -> Simulator:
    """A network whose layers are loops."""
    net = MLP(4, 2, hidden=(40, 40), seed=1)
    last = np.random.default_rng(2).normal(scale=0.1, size=net.weights[-1].shape)
    net = eqx.tree_at(lambda n: n.weights[-1], net, last)
    return Simulator(double_pendulum(), blueprint=Blueprint(Graft("joint.tau", ["joint.q", "joint.qd"], net)), dt=0.01)


SIMULATORS = {
    "double_pendulum": lambda: Simulator(double_pendulum(), dt=0.01),
    "cartpole_with_network": cartpole_with_network,
    "pendulum_with_large_network": pendulum_with_large_network,
    "quadruped": lambda: Simulator(quadruped(), dt=0.002),
}
SLOW = slow("quadruped")
SLOW_IN_XLA = slow("cartpole_with_network")


class ExportCase(NamedTuple):
    """An exported simulator, its library, and arguments to call it with."""

    sim: Simulator
    files: ExportedFiles
    library: Path
    native: Rollout
    params: np.ndarray
    x: np.ndarray
    u: np.ndarray
    ct: np.ndarray

    def step(self, x=None, u=None, params=None) -> np.ndarray:
        arguments = [a if b is None else b for a, b in ((self.params, params), (self.x, x), (self.u, u))]
        return call(self.library, f"{self.files.prefix}_step", arguments, [self.files.state_size])[0]

    def vjp(self) -> list[np.ndarray]:
        sizes = [self.files.gradient_size, self.files.state_size, self.files.input_size]
        return call(self.library, f"{self.files.prefix}_step_vjp", [self.params, self.x, self.u, self.ct], sizes)


def export_case(sim: Simulator, folder: Path, options=EXACT, *, fma: bool = machine.host().fma) -> ExportCase:
    files = export_c(sim, folder / "step.c", fma=fma)
    library = build(files.source, *options)
    rng = np.random.default_rng(0)
    parts, state, inputs = split_parameters(sim), sim.initial_state(qd=rng.normal(size=sim.model.nv)), zero_inputs(sim)
    native = Rollout(parts.step, parts.fixed, parts.free, state, inputs)
    # the C derivative has no forward sweep, so the kernel must not save values for its reverse sweep either
    native.graphs.__dict__["sweeps"] = (native.graphs.step_graph, native.graphs.vjp_graph, 0)
    x = native.layouts.carry.pack(state)
    u, ct = rng.normal(size=files.input_size), rng.normal(size=files.state_size)
    return ExportCase(sim, files, library, native, defaults(files, "params"), x, u, ct)


def defaults(files: ExportedFiles, name: str) -> np.ndarray:
    """Values of an array in the source."""
    text = files.source.read_text().split(f"{files.prefix}_{name}[", 1)[1].split("{", 1)[1].split("}", 1)[0]
    values = re.sub(r"/\*.*?\*/", "", text).replace("INFINITY", "inf")
    return np.array([float(value) for value in values.split(",") if value.strip()])


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    cached: dict[str, ExportCase] = {}

    def case(name: str) -> ExportCase:
        if name not in cached:
            cached[name] = export_case(SIMULATORS[name](), tmp_path_factory.mktemp(name))
        return cached[name]

    return case


@pytest.fixture(scope="module")
def xla_results():
    """Next state and cotangents of parameters, state and inputs by XLA; compiled once per case."""
    compiled = {}

    def results(case: ExportCase, sim: Simulator) -> tuple[np.ndarray, list[np.ndarray]]:
        layouts, parts = case.native.layouts, split_parameters(sim)

        def value_and_cotangents(free, fixed, state, inputs, ct):
            new, pullback = jax.vjp(lambda *arguments: parts.step(fixed, *arguments)[0], free, state, inputs)
            return new, pullback(ct)

        function = compiled.setdefault(case.library, jax.jit(value_and_cotangents))
        rows = layouts.carry.unpack(case.x), layouts.inputs.unpack(case.u), layouts.carry.unpack(case.ct)
        new, cotangents = function(parts.free, parts.fixed, *rows)
        groups = (layouts.free, layouts.carry, layouts.inputs)
        return layouts.carry.pack(new), [layout.pack(tree) for layout, tree in zip(groups, cotangents, strict=True)]

    return results


def assert_equals_xla(case: ExportCase, expected: tuple[np.ndarray, list[np.ndarray]]) -> None:
    # the same formulas in another order of summation
    new, cotangents = expected
    assert_relative(case.step(), new, 1e-12, "x_next")
    for name, actual, reference in zip(("ct_params", "ct_x", "ct_u"), case.vjp(), cotangents, strict=True):
        assert_relative(actual, reference, 1e-11, name)


def assert_bits_of_native(case: ExportCase, *, steps: int) -> None:
    layouts, parts = case.native.layouts, split_parameters(case.sim)
    fixed, free = layouts.fixed.pack(parts.fixed), layouts.free.pack(parts.free)
    rows = np.random.default_rng(1).normal(size=(steps, len(case.u)))
    x = case.x
    for u in rows:
        x = case.step(x, u)
    end = case.native.forward(fixed, free, case.x[None], rows[None]).end[0]
    assert same_bits(x, end) and not np.array_equal(x, case.x)
    gradient = case.native.gradient(fixed, free, case.x[None], case.u[None, None], case.ct[None], np.zeros((1, 1, 0)))
    references = (gradient.free[0], gradient.initial[0], gradient.inputs[0, 0])
    for actual, expected in zip(case.vjp(), references, strict=True):
        # the kernel accumulates the contributions of all steps from zero, which turns −0 into 0
        assert same_bits(actual + 0.0, expected + 0.0)


@needs_compiler
@pytest.mark.parametrize("name", ["double_pendulum", "pendulum_with_large_network", SLOW_IN_XLA, SLOW])
def test_values_and_derivatives_equal_xla(name, cases, xla_results):
    case = cases(name)
    assert_equals_xla(case, xla_results(case, case.sim))


@needs_compiler
@pytest.mark.parametrize("name", ["double_pendulum", "cartpole_with_network", "pendulum_with_large_network", SLOW])
def test_results_are_bit_identical_to_the_native_kernels(name, cases):
    assert_bits_of_native(cases(name), steps=100)


@needs_compiler
def test_other_compiler_options_change_at_most_the_last_digits(cases, tmp_path):
    case = cases("double_pendulum")
    new, cotangents = case.step(), case.vjp()
    contracting = [("-O2", *FUSED, "-ffp-contract=fast")]
    # without the instruction the library computes the same fused multiply-add
    exact = [("-O0",), ("-O3", *FUSED, "-ffp-contract=off"), ("-O2", "-ffp-contract=off")]
    for k, options in enumerate([*exact, *contracting]):
        folder = tmp_path / str(k)
        shutil.copytree(case.files.source.parent, folder)
        other = case._replace(library=build(folder / "step.c", *STRICT, *options))
        if options in exact:
            assert same_bits(other.step(), new)
        assert_relative(other.step(), new, 1e-14)
        for actual, expected in zip(other.vjp(), cotangents, strict=True):
            assert_relative(actual, expected, 1e-14)


@needs_compiler
def test_without_fused_multiply_add(tmp_path):
    case = export_case(Simulator(pendulum(), dt=0.01), tmp_path, (*STRICT, "-O2", "-ffp-contract=off"), fma=False)
    assert "fma(" not in case.files.source.read_text() and "-mfma" not in case.files.header.read_text()
    # a rod of 1 m and 1 kg has an inertia of 1/3 kg·m² about its end
    q, qd, u = 0.7, -0.4, 0.3
    qd_next = qd + 0.01 * 3.0 * (u - 9.81 * 0.5 * np.sin(q))
    np.testing.assert_allclose(
        case.step(np.array([q, qd, 1.0]), np.array([u])), [q + 0.01 * qd_next, qd_next, 1.01], 1e-14
    )


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("integrator", [name for name in INTEGRATORS if name != "euler"])
def test_every_other_integrator(integrator, tmp_path, xla_results):
    case = export_case(Simulator(acrobot(), integrator=integrator, dt=0.01), tmp_path)
    assert_bits_of_native(case, steps=100)
    assert_equals_xla(case, xla_results(case, case.sim))


@needs_compiler
def test_parameters_can_be_changed(cases, xla_results):
    """Including parameters that are zero in the model, and the time step."""
    case = cases("double_pendulum")
    sim, header = case.sim, case.files.header.read_text()
    offset = {name: int(first) for name, first in re.findall(r"#define DOUBLE_PENDULUM_(\w+) (\d+)", header)}
    params = case.params.copy()
    params[offset["BODY_MASS"] + 1] = 2.5
    params[offset["BODY_COM"] : offset["BODY_COM"] + 3] = 0.1, 0.2, -0.3
    params[offset["JOINT_FRICTION"]] = 0.4
    params[offset["JOINT_ARMATURE"] + 1] = 0.05
    params[offset["GRAVITY"]] = 3.0
    params[offset["DT"]] = 0.02
    body, joint = sim.model.body, sim.model.joint
    body = eqx.tree_at(lambda b: b.mass, body, np.array([1.0, 2.5]))
    body = eqx.tree_at(lambda b: b.com, body, np.array([[0.1, 0.2, -0.3], body.com[1]]))
    joint = eqx.tree_at(lambda j: j.friction, joint, np.array([0.4, 0.0]))
    joint = eqx.tree_at(lambda j: j.armature, joint, np.array([0.0, 0.05]))
    gravity = np.array([3.0, 0.0, -9.81])
    model = eqx.tree_at(lambda m: (m.body, m.joint, m.gravity), sim.model, (body, joint, gravity))
    assert_equals_xla(case._replace(params=params), xla_results(case, Simulator(model, dt=0.02)))


@needs_compiler
@pytest.mark.slow
def test_a_free_body_without_actuators(tmp_path):
    case = export_case(Simulator(cube()), tmp_path)
    assert case.files.input_size == 0 and case.u.shape == (0,)
    assert_bits_of_native(case, steps=10)
    header = case.files.header.read_text()
    assert "#define CUBE_NU 0" in header and re.search(r"x\[3\] +q\[\w+\.qw\]\n", header)
    assert re.search(r"x\[7\] +qd\[\w+\.wx\]  \[rad/s\]", header) and re.search(r"x\[0\] +q\[\w+\.x\]  \[m\]", header)


def test_the_header_documents_every_array_element(cases):
    case = cases("cartpole_with_network")
    header = case.files.header.read_text()
    assert (
        header.startswith("/* cartpole: one simulation time step") and f"hybridsim {hybridsim.__version__};" in header
    )
    for line in (
        r"x\[0\] +q\[slider\]  \[m\]",
        r"x\[1\] +q\[hinge\]  \[rad\]",
        r"x\[2\] +qd\[slider\]  \[m/s\]",
        r"x\[4\] +time  \[s\]",
        r"x\[5\.\.7\] +internal state of actuation\.0 \(3 x 1, row by row\)",
        r"u\[0\] +command of slider",
        r"u\[1\] +input\.wind",
        r"params\[2\.\.4\] +body\.com\[cart\]: x, y, z  \[m\]",
        r"params\[\d+\.\.\d+\] +blueprint\.grafts\.0\.net\.weights\.0 \(6 x 4, row by row\)",
        r"params\[\d+\] +actuation\.stages\.1\.time_constant",
        r"params\[\d+\] +joint\.lower\[slider\]  \[rad or m\]",
        r"params\[\d+\] +dt  \[s\]",
        r"#define CARTPOLE_BLUEPRINT_GRAFTS_0_NET_WEIGHTS_1 \d+",
    ):
        assert re.search(line, header), line
    # the tables cover the arrays without gaps
    for array, size in (
        ("x", case.files.state_size),
        ("u", case.files.input_size),
        ("params", case.files.parameter_count),
    ):
        ranges = re.findall(rf"^ \*   {array}\[(\d+)(?:\.\.(\d+))?\]", header, re.MULTILINE)
        covered = [k for first, last in ranges for k in range(int(first), int(last or first) + 1)]
        assert covered == list(range(size))
    initial_state = case.native.layouts.carry.pack(case.sim.initial_state())
    np.testing.assert_array_equal(defaults(case.files, "home"), initial_state)
    assert f"{case.files.vjp_stack_bytes} bytes for its derivative" in header
    for file in (case.files.source, case.files.header):
        assert str(file.parent) not in file.read_text() and "/home" not in file.read_text()


HOSTILE = ("*/ int x; /*", "line\nbreak??/\\", "é" * 300 + '"')
"""Names that would end a comment, continue on the next line, or are invalid in C."""


def hostile_model(name: str):
    robot = ModelBuilder(name)
    for k, odd in enumerate(HOSTILE):
        robot.add_body(f"{odd}body{k}", parent=f"{HOSTILE[k - 1]}body{k - 1}" if k else "world", joint=f"{odd}{k}",
                       mass=1.0, inertia=(0.1, 0.1, 0.1))  # fmt: skip
    return robot.build()


@needs_compiler
def test_names_cannot_become_code(tmp_path):
    files = export_c(Simulator(hostile_model("*/ #error \\")), tmp_path / "step.c")
    build(files.source, *STRICT, "-O0", suffix=".o")
    header = files.header.read_text()
    assert files.prefix == "error" and header.isascii() and "??" not in header and "\\" not in header
    assert "q[_/ int x; /_0]" in header and "line_break" in header and "é" not in header


@pytest.mark.parametrize(
    ("name", "prefix"),
    [("7dof arm", "model_7dof_arm"), ("", "model"), ("Über-Roboter__2", "ber_roboter_2"), ("x" * 90, "x" * 24)],
)
def test_prefixes_are_derived_from_the_models_name(name, prefix):
    from hybridsim.sim.c_export.layout import is_valid_prefix, prefix_from_name

    assert prefix_from_name(name) == prefix and is_valid_prefix(prefix)


@needs_compiler
@pytest.mark.skipif(shutil.which("nm") is None, reason="this machine has no `nm`")
def test_no_global_state_and_no_unexpected_calls(cases, tmp_path):
    case = cases("cartpole_with_network")
    for file in (case.files.source, case.files.header):
        shutil.copy(file, tmp_path)
    build(tmp_path / "step.c", *STRICT, "-O0", suffix=".o")
    symbols = [line.split()[-2:] for line in run("nm", "step.o", folder=tmp_path).splitlines()]
    assert not [name for kind, name in symbols if kind in "bBdDcC"], "mutable global state"
    allowed = set("fma sqrt fabs floor ceil rint trunc memcpy fmod erf erfc asinh acosh atanh cbrt".split())
    assert {name for kind, name in symbols if kind == "U"} <= allowed | {"__stack_chk_fail", "_GLOBAL_OFFSET_TABLE_"}
    public = {name for kind, name in symbols if kind in "TR"}
    assert public == {f"cartpole_{name}" for name in ("step", "step_vjp", "params", "home")}


@needs_compiler
@pytest.mark.skipif(shutil.which("c++") is None, reason="this machine has no C++ compiler `c++`")
def test_usable_from_cpp(cases, tmp_path):
    case = cases("double_pendulum")
    for file in (case.files.source, case.files.header):
        shutil.copy(file, tmp_path)
    (tmp_path / "main.cpp").write_text(
        '#include "step.h"\n#include "step.h"\n#include <cmath>\n'
        "int main() {\n  double x[DOUBLE_PENDULUM_NX], u[DOUBLE_PENDULUM_NU] = {};\n"
        "  double_pendulum_step(double_pendulum_params, double_pendulum_home, u, x);\n"
        "  return std::abs(x[DOUBLE_PENDULUM_TIME] - 0.01) < 1e-15 ? 0 : 1;\n}\n"
    )
    build(tmp_path / "step.c", *EXACT, suffix=".o")
    strict = ("-std=c++11", "-Wall", "-Wextra", "-Werror", "-pedantic")
    run("c++", *strict, "main.cpp", "step.o", "-lm", "-o", "main", folder=tmp_path)
    run("./main", folder=tmp_path)


@needs_compiler
@pytest.mark.skipif(IS_X86 and not machine.host().fma, reason="this processor has no fused multiply-add")
def test_the_example_of_the_documentation_runs(cases, tmp_path):
    case = cases("double_pendulum")
    for file in (case.files.source, case.files.header):
        shutil.copy(file, tmp_path)
    text = DOCS.read_text()
    program, printed = re.search(r"```c\n(.*?)```", text, re.S)[1], re.search(r"```\n(t = .*?)```", text, re.S)[1]
    assert program.count("\n") < 30
    (tmp_path / "main.c").write_text(program)
    run("cc", *STRICT, "-O2", *FUSED, "main.c", "step.c", "-lm", "-o", "main", folder=tmp_path)
    assert run("./main", folder=tmp_path) == printed


class CounterStage(AbstractStage):
    """A stage with an integer counter, which arrays of doubles in C cannot hold."""

    def initial_state(self, motion):
        return np.zeros((), dtype=np.int64)

    def output(self, model, signal, motion, aux, dt):
        return signal


def test_invalid_exports_are_refused(tmp_path):
    sim = Simulator(pendulum())
    for path, message in (
        (tmp_path / "step.txt", "the extension .c"),
        (tmp_path / 'a"b.c', "ASCII letters"),
        (tmp_path / "none" / "step.c", "there is no folder"),
    ):
        with pytest.raises(HybridsimError, match=message):
            export_c(sim, path)
    for prefix in ("3d", "a b", "_x", "a__b", "x_", "", "int;", "é"):
        with pytest.raises(HybridsimError, match="is not a valid prefix in C"):
            export_c(sim, tmp_path / "step.c", prefix=prefix)
    (tmp_path / "folder.h").mkdir()
    with pytest.raises(HybridsimError, match="it is a folder"):
        export_c(sim, tmp_path / "folder.c")
    with pytest.raises(HybridsimError, match="internal states that are not floats"):
        export_c(Simulator(pendulum(), actuation=Actuation(CounterStage())), tmp_path / "step.c")
    assert [file.name for file in tmp_path.iterdir()] == ["folder.h"]
