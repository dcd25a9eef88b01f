"""Identity of the user's code: equal in another process, different after any change that matters."""

import subprocess
import sys
from functools import partial

import equinox as eqx
import jax
import numpy as np
import pytest
from scipy.interpolate import CubicSpline

from hybridsim.project.run_folder.code_identity import CodeIdentity
from hybridsim.sim.cache_key import UnidentifiedError

GAIN = 2.0


def identity(x) -> str:
    return CodeIdentity().value(x)


def closure(gain):
    return lambda state: gain * state


def with_default(gain):
    def scale(state, gain=gain):
        return gain * state

    return scale


def recursive(n):
    return 1 if n == 0 else n * recursive(n - 1)


class Gain:
    def __init__(self, value):
        self.value = value

    def __call__(self, x):
        return self.value * x


class Module(eqx.Module):
    gain: float
    power: int = eqx.field(static=True, default=1)

    def __call__(self, x):
        return self.gain * x**self.power


def spline(height):
    return CubicSpline([0.0, 1.0, 2.0], [0.0, height, 0.0])


PAIRS = {
    "constants": (lambda x: 2.0 * x, lambda x: 3.0 * x),
    "operations": (lambda x: 2.0 * x, lambda x: 2.0 + x),
    "closures": (closure(1.0), closure(2.0)),
    "functions in closures": (closure(closure(1.0)), closure(closure(2.0))),
    "defaults": (with_default(1.0), with_default(2.0)),
    "nested constants": (lambda x: [2.0 * y for y in x], lambda x: [3.0 * y for y in x]),
    "partials": (partial(pow, 2), partial(pow, 3)),
    "keywords of partials": (partial(int, base=8), partial(int, base=16)),
    "arrays in closures": (closure(np.ones(3)), closure(np.arange(3.0))),
    "jax arrays": (closure(jax.numpy.ones(3)), closure(jax.numpy.zeros(3))),
    "objects": (Gain(1.0), Gain(2.0)),
    "bound methods": (Gain(1.0).__call__, Gain(2.0).__call__),
    "modules": (Module(1.0), Module(2.0)),
    "static fields": (Module(1.0, 1), Module(1.0, 3)),
    "classes": (Gain, Module),
    "compiled functions": (jax.jit(closure(1.0)), jax.jit(closure(2.0))),
    "objects of installed packages": (closure(spline(1.0)), closure(spline(2.0))),
}


@pytest.mark.parametrize("pair", PAIRS)
def test_other_code_has_another_identity(pair):
    one, other = PAIRS[pair]
    assert identity(one) == identity(one) != identity(other)


def test_equal_code_has_the_same_identity():
    for make in (closure, with_default, Gain, Module, lambda gain: partial(closure, gain), spline):
        assert identity(make(1.5)) == identity(make(1.5))


def test_global_variables_count(monkeypatch):
    def scale(x):
        return GAIN * x

    def call(x):
        return scale(x)

    before = identity(call)
    monkeypatch.setitem(globals(), "GAIN", 3.0)
    assert identity(call) != before


def test_recursive_functions_and_objects_have_an_identity():
    one = Gain(1.0)
    one.value = [one]
    assert identity(recursive) and identity(one)


def test_what_cannot_be_identified_is_an_error(tmp_path):
    with (tmp_path / "log").open("w") as file, pytest.raises(UnidentifiedError, match="TextIOWrapper"):
        identity(closure(file))


@pytest.mark.parametrize("how", ["-c", "-"])
def test_identities_are_equal_in_another_process(how):
    program = """
from dataclasses import dataclass
from hybridsim.project.run_folder.code_identity import CodeIdentity
@dataclass
class Gain:
    value: float = 2.0
    def __call__(self, x):
        return {entry: self.value for entry in {"a", "b", "c"} if entry in x}
def channel(sim, state, inputs, gain=Gain()):
    return [gain(x) for x in state if x in {"p", "q", "r"}] + [(lambda: state)()]
print(CodeIdentity().value(channel))
"""
    command = [sys.executable, "-c", program] if how == "-c" else [sys.executable, "-"]
    found = [
        subprocess.run(command, input=program, capture_output=True, text=True, check=True).stdout for _ in range(2)
    ]
    assert found[0] == found[1] and len(found[0]) > 100
