"""Only errors that leave a usable model are downgraded, and only existing codes are accepted."""

import pytest

from hybridsim.core.errors import Problem, Severity
from hybridsim.io.lenience import apply_lenience, is_downgraded


@pytest.mark.parametrize("lenient", ["all", "inertia.triangle", ["inertia.triangle"], {"all", "mass.negative"}])
def test_errors_that_leave_a_usable_model_become_warnings(lenient):
    inconsistent, negative = Problem("odd", code="inertia.triangle"), Problem("bad", code="mass.negative")
    first, second = apply_lenience([inconsistent, negative], lenient, "f")
    assert (first.severity, second.severity) == (Severity.WARNING, Severity.ERROR)
    assert is_downgraded("inertia.triangle", lenient) and not is_downgraded("mass.negative", lenient)


def test_nothing_is_downgraded_by_default():
    problem = Problem("odd", code="inertia.triangle")
    assert apply_lenience([problem], (), "f") == [problem]
    assert apply_lenience([problem], ["limit.order"], "f") == [problem]


def test_a_misspelt_code_is_rejected_with_a_suggestion():
    (problem,) = apply_lenience([], ["inertia.trianlge"], "arm.urdf")
    assert (problem.code, problem.file, problem.severity) == ("option.lenient", "arm.urdf", Severity.ERROR)
    assert "'inertia.trianlge'" in problem.message and problem.fix == "did you mean 'inertia.triangle'?"
    assert apply_lenience([], "unsupported.tendon", "arm.urdf") == []
    assert apply_lenience([], ["x"], "arm.urdf")[0].fix
