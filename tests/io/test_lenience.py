"""Passing over problems: only such as leave a model, and only under names that problems really have."""

import pytest

from hybridsim.core.errors import Problem, Severity
from hybridsim.io.lenience import is_forgiven, judged


@pytest.mark.parametrize("lenient", ["all", "inertia.triangle", ["inertia.triangle"], {"all", "mass.negative"}])
def test_what_leaves_a_model_becomes_a_warning(lenient):
    doubtful, impossible = Problem("odd", code="inertia.triangle"), Problem("bad", code="mass.negative")
    first, second = judged([doubtful, impossible], lenient, "f")
    assert (first.severity, second.severity) == (Severity.WARNING, Severity.ERROR)
    assert is_forgiven("inertia.triangle", lenient) and not is_forgiven("mass.negative", lenient)


def test_nothing_is_forgiven_unasked():
    problem = Problem("odd", code="inertia.triangle")
    assert judged([problem], (), "f") == [problem]
    assert judged([problem], ["limit.order"], "f") == [problem]


def test_a_misspelt_code_is_refused_with_the_real_one():
    (problem,) = judged([], ["inertia.trianlge"], "arm.urdf")
    assert (problem.code, problem.file, problem.severity) == ("option.lenient", "arm.urdf", Severity.ERROR)
    assert "'inertia.trianlge'" in problem.message and problem.fix == "did you mean 'inertia.triangle'?"
    assert judged([], "unsupported.tendon", "arm.urdf") == []
    assert judged([], ["x"], "arm.urdf")[0].fix
