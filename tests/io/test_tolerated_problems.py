"""Only errors that leave a usable model are downgraded, and only existing codes are accepted."""

import pytest

from hybridsim.core.errors import Problem, Severity
from hybridsim.io.tolerated_problems import downgrade_tolerated, is_tolerated


@pytest.mark.parametrize("tolerate", ["all", "inertia.triangle", ["inertia.triangle"], {"all", "mass.negative"}])
def test_errors_that_leave_a_usable_model_become_warnings(tolerate):
    inconsistent, negative = Problem("odd", code="inertia.triangle"), Problem("bad", code="mass.negative")
    first, second = downgrade_tolerated([inconsistent, negative], tolerate, "f")
    assert (first.severity, second.severity) == (Severity.WARNING, Severity.ERROR)
    assert is_tolerated("inertia.triangle", tolerate) and not is_tolerated("mass.negative", tolerate)


def test_nothing_is_downgraded_by_default():
    problem = Problem("odd", code="inertia.triangle")
    assert downgrade_tolerated([problem], (), "f") == [problem]
    assert downgrade_tolerated([problem], ["limit.order"], "f") == [problem]


def test_a_misspelt_code_is_rejected_with_a_suggestion():
    (problem,) = downgrade_tolerated([], ["inertia.trianlge"], "arm.urdf")
    assert (problem.code, problem.file, problem.severity) == ("option.tolerate", "arm.urdf", Severity.ERROR)
    assert "'inertia.trianlge'" in problem.message and problem.fix == "did you mean 'inertia.triangle'?"
    assert downgrade_tolerated([], "unsupported.tendon", "arm.urdf") == []
    assert downgrade_tolerated([], ["x"], "arm.urdf")[0].fix
