"""The options of reading: one list of names and defaults, and how messages spell them."""

import pytest

from hybridsim.io.load_options import Options, Reading, setting


def test_options_are_those_of_a_reading():
    assert set(Reading.__annotations__) == set(Options.__dataclass_fields__)


@pytest.mark.parametrize("wrong", [{"base": "floating"}, {"inertia": "geometry"}])
def test_only_known_values(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Options(**wrong)


def test_how_to_set_an_option():
    assert setting("base", "free") == "base='free' (--base free)"
    assert setting("allowed", ["a", "b"]) == "allowed=['a', 'b'] (--allowed a b)"
    assert setting("packages", {"arm": "x/arm"}) == "packages={'arm': 'x/arm'} (--packages arm x/arm)"
