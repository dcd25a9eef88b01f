"""Choices that the user makes by name: tables whose objects are imported on first use, and errors for unknown names."""

from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any


class ImportTable(Mapping[str, Any]):
    """Objects by name, each imported when it is looked up: listing the names loads no other module."""

    def __init__(self, paths: Mapping[str, str]):
        """Create a table.

        Args:
            paths: module and attribute of each object by its name, such as `{"rk4": "hybridsim.sim.integrate:rk4"}`.
        """
        self._paths = dict(paths)

    def __getitem__(self, name: str) -> Any:
        module, _, attribute = self._paths[name].partition(":")
        return getattr(import_module(module), attribute)

    def __contains__(self, name: object) -> bool:
        return name in self._paths

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)


def check_choice(what: str, name: object, choices: Iterable[str]) -> None:
    """Raise a `ValueError` that lists the valid names if `name` is not one of them.

    Args:
        what: what is chosen, such as `integrator`.
        name: the name given by the user.
        choices: the valid names.
    """
    names = tuple(choices)
    if name not in names:
        raise ValueError(f"unknown {what} {name!r}; choose one of {', '.join(names)}")
