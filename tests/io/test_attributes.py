"""Numeric attributes are parsed exactly, or give one problem with a fix."""

import numpy as np
import pytest

from hybridsim.core.errors import Severity
from hybridsim.io.attributes import Reader
from hybridsim.io.xml import parse


def element_with(text):
    return (
        parse(f'<r name="r">\n<link name="a"><mass value="{text}"/></link></r>'.encode(), "f").children[0].children[0]
    )


def number_in(text, **options):
    reader = Reader()
    return reader.number(element_with(text), "value", 7.0, **options), reader.problems


@pytest.mark.parametrize(
    ("text", "number"),
    [("1.5", 1.5), (" -2 ", -2.0), ("+.5e-3", 5e-4), ("3.", 3.0), ("1E5", 1e5), ("0.1", 0.1)],
)
def test_numbers(text, number):
    assert number_in(text) == (number, [])


@pytest.mark.parametrize(
    ("text", "code", "fix"),
    [
        ("heavy", "number.invalid", "write one numeric value in SI units"),
        ("1,5", "number.invalid", "write 1.5 with a decimal point"),
        ("1.5kg", "number.invalid", "write only the value, 1.5"),
        ("1_5", "number.invalid", "value"),
        ("0x10", "number.invalid", "value"),
        ("١٢", "number.invalid", "value"),
        ("1 2", "number.count", "one numeric value"),
        ("", "number.count", "one numeric value"),
        ("nan", "number.nonfinite", "finite"),
        ("-inf", "number.nonfinite", "finite"),
        ("1e999", "number.nonfinite", "finite"),
    ],
)
def test_invalid_numbers_give_one_problem_and_the_default(text, code, fix):
    value, (problem,) = number_in(text)
    assert value == 7.0
    assert (problem.code, problem.file, problem.line) == (code, "f", 2)
    assert fix in problem.fix
    assert "'value' of <mass> of link 'a'" in problem.message


def test_infinity_where_it_is_valid():
    assert number_in("-inf", allow_infinite=True) == (-np.inf, [])
    assert number_in("nan", allow_infinite=True)[1][0].code == "number.nonfinite"


def test_absent_attributes():
    element, reader = element_with("1"), Reader()
    assert reader.number(element, "other", 2.0) == 2.0
    assert reader.number(None, "other", 3.0) == 3.0
    assert not reader.problems
    assert reader.number(element, "other") == 0.0
    assert reader.problems[0].code == "attribute.missing"


def test_vectors():
    reader = Reader()
    np.testing.assert_array_equal(reader.vector(element_with("1  2\t3"), "value", 3), [1, 2, 3])
    np.testing.assert_array_equal(reader.vector(None, "value", 3, (4, 5, 6)), [4, 5, 6])
    assert not reader.problems
    np.testing.assert_array_equal(reader.vector(element_with("1 2"), "value", 3, (4, 5, 6)), [4, 5, 6])
    reader.vector(element_with("1 2 3 4"), "value", 3)
    reader.vector(element_with("1, 2, 3"), "value", 3)
    assert [p.code for p in reader.problems] == ["number.count", "number.count", "number.invalid"]
    assert "spaces" in reader.problems[2].fix


def test_long_values_are_abbreviated_in_messages():
    _, (problem,) = number_in("9x" * 10_000)
    assert len(problem.message) < 200


def test_warnings():
    reader = Reader()
    reader.warn(element_with("1"), "some.code", "odd", "look")
    assert reader.problems[0].severity is Severity.WARNING
