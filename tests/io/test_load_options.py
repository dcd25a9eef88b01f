"""Load options: one list of names and defaults, and their spelling in messages."""

import pytest

from hybridsim.core.errors import SpecificationError
from hybridsim.io.load_options import LoadKwargs, LoadOptions, option_hint


def test_options_and_keyword_arguments_agree():
    assert set(LoadKwargs.__annotations__) == set(LoadOptions.__dataclass_fields__)


@pytest.mark.parametrize("wrong", [{"base": "floating"}, {"inertia": "geometry"}])
def test_invalid_values_are_rejected(wrong):
    with pytest.raises(SpecificationError, match=f"{next(iter(wrong))} of LoadOptions has the invalid value"):
        LoadOptions(**wrong)


def test_spelling_of_options():
    assert option_hint("base", "free") == "base='free' (--base free)"
    assert option_hint("allowed_folders", ["a", "b"]) == "allowed_folders=['a', 'b'] (--allowed-folders a b)"
    assert option_hint("packages", {"arm": "x/arm"}) == "packages={'arm': 'x/arm'} (--packages arm x/arm)"
