"""Section `[data]` of a project: files of recordings."""

from dataclasses import KW_ONLY
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from hybridsim.core.specification import Fraction, NonemptyText, specification
from hybridsim.data.recording_options import RecordingOptions


def _as_tuple(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


NameList = Annotated[tuple[NonemptyText, ...], BeforeValidator(_as_tuple), Field(min_length=1)]
"""One name or several."""


@specification
class DataSection(RecordingOptions):
    """Files of recordings."""

    _: KW_ONLY
    files: Annotated[
        tuple[NonemptyText | tuple[NonemptyText, ...], ...], BeforeValidator(_as_tuple), Field(min_length=1)
    ]
    """Files of recordings, one run each, with wildcards; a nested list is one run of several files."""
    held_out: Fraction | NameList = 0.25
    """Held-out runs: their fraction, or their names, with wildcards. Of a single run, its last part."""
