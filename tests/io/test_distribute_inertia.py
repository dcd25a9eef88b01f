"""Changed mass properties of a merged body: the parts add up to them and remain physically consistent."""

from functools import reduce

import numpy as np
import pytest

from hybridsim.io.distribute_inertia import Part, distribute_inertia
from hybridsim.model.builder import pose
from hybridsim.model.inertial import Inertial, solid_box
from hybridsim.model.specs import Source, identity_pose
from hybridsim.model.validate import inertial_problems

LEG = Part(Inertial(0.2, np.array([0.0, 0.01, -0.1]), solid_box(0.2, (0.01, 0.02, 0.12)).inertia), identity_pose())
TOE = Part(solid_box(0.1, (0.02, 0.02, 0.02)), pose((0.0, 0.0, -0.25), (0.3, 0.2, 0.1)))
FRAME = Part(Inertial(), pose((0.1, 0.0, 0.0), (0.0, 0.0, 0.0)))
PARTS = [LEG, TOE, FRAME]


def total(inertials: list[Inertial], parts: list[Part]) -> Inertial:
    transformed = [inertial.transform(part.X_BP) for inertial, part in zip(inertials, parts, strict=True)]
    return reduce(Inertial.__add__, transformed, Inertial())


BEFORE = total([part.inertial for part in PARTS], PARTS)


def is_consistent(_: int, inertial: Inertial) -> bool:
    return inertial.mass >= 0.0 and not list(inertial_problems("", inertial, Source()))


def assert_equal(actual: Inertial, expected: Inertial) -> None:
    np.testing.assert_allclose(actual.mass, expected.mass, rtol=1e-14)
    np.testing.assert_allclose(actual.com, expected.com, rtol=0, atol=1e-15)
    np.testing.assert_allclose(actual.inertia, expected.inertia, rtol=0, atol=1e-13 * np.abs(expected.inertia).max())


def test_the_first_part_absorbs_a_feasible_change():
    after = BEFORE + Inertial(0.05, np.array([0.0, 0.0, -0.1]), 1e-4 * np.eye(3))
    leg, toe, frame = distribute_inertia(PARTS, BEFORE, after, is_consistent)
    assert toe is TOE.inertial and frame is FRAME.inertial
    assert_equal(total([leg, toe, frame], PARTS), after)


def test_another_part_absorbs_the_change_if_the_first_cannot():
    after = BEFORE + Inertial(0.05, np.array([0.0, 0.0, -0.1]), 1e-4 * np.eye(3))
    parts = distribute_inertia(PARTS, BEFORE, after, lambda k, inertial: k != 0 and is_consistent(k, inertial))
    leg, toe, frame = parts
    assert leg is LEG.inertial and frame is FRAME.inertial
    assert_equal(total([leg, toe, frame], PARTS), after)


@pytest.mark.parametrize(
    "after",
    [
        Inertial(0.5 * BEFORE.mass, BEFORE.com, 0.5 * BEFORE.inertia),
        Inertial(0.1 * BEFORE.mass, BEFORE.com, BEFORE.inertia),
        Inertial(BEFORE.mass, BEFORE.com, 0.1 * BEFORE.inertia),
        Inertial(0.5 * BEFORE.mass, BEFORE.com + 0.05, solid_box(0.1, (0.1, 0.02, 0.03)).inertia),
    ],
    ids=["lighter", "less mass", "less inertia", "another shape"],
)
def test_all_parts_are_scaled_if_none_can_absorb_the_change(after):
    new = distribute_inertia(PARTS, BEFORE, after, is_consistent)
    assert new is not None
    assert_equal(total(new, PARTS), after)
    assert new[0].mass / new[1].mass == pytest.approx(LEG.inertial.mass / TOE.inertial.mass)
    assert all(is_consistent(0, part) for part in new)


def test_scaling_does_not_move_the_centres_of_mass():
    after = Inertial(0.25 * BEFORE.mass, BEFORE.com, 0.25 * BEFORE.inertia)
    new = distribute_inertia(PARTS, BEFORE, after, is_consistent)
    assert new is not None
    for part, scaled in zip(PARTS, new, strict=True):
        np.testing.assert_array_equal(scaled.com, part.inertial.com)
        np.testing.assert_allclose(scaled.inertia, 0.25 * part.inertial.inertia, rtol=1e-14)


@pytest.mark.parametrize(
    "after",
    [
        Inertial(0.0, BEFORE.com, np.zeros((3, 3))),
        Inertial(-1.0, BEFORE.com, BEFORE.inertia),
        Inertial(BEFORE.mass, BEFORE.com, np.diag([1.0, 1.0, 5.0])),
        Inertial(np.nan, BEFORE.com, BEFORE.inertia),
        Inertial(BEFORE.mass, BEFORE.com, np.full((3, 3), np.inf)),
    ],
    ids=["none", "negative", "impossible", "nan", "infinite"],
)
def test_inconsistent_mass_properties_are_infeasible(after):
    assert distribute_inertia(PARTS, BEFORE, after, is_consistent) is None


def test_flat_bodies_cannot_be_stretched():
    flat = [Part(Inertial(1.0, np.zeros(3), np.diag([1.0, 1.0, 2.0])), identity_pose()), FRAME]
    before = flat[0].inertial
    assert distribute_inertia(flat, before, Inertial(1.0, np.zeros(3), np.eye(3)), lambda k, _: False) is None
    larger = distribute_inertia(
        flat, before, Inertial(1.0, np.zeros(3), 2.0 * before.inertia), lambda k, i: i is not before
    )
    assert larger is not None
