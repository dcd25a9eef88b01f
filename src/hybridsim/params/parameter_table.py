"""Table of all parameters of a setup that can be free."""

from collections.abc import Iterator
from dataclasses import dataclass

from hybridsim.core.errors import ParameterError
from hybridsim.params.address import PLUGIN_ARRAYS, scalar_parameters
from hybridsim.params.catalogue import CATALOGUE, INERTIAL, RowKind
from hybridsim.params.rows import row_names
from hybridsim.params.scalar_parameter import current_values
from hybridsim.params.setup import Setup


@dataclass(frozen=True)
class ListedParameter:
    """One row of the table."""

    address: str
    value: float | None
    """Current value; None where the address selects many parameters."""
    unit: str
    description: str


def parameter_table(setup: Setup) -> list[ListedParameter]:
    """All named scalar parameters; each array of a network and each body's inertial parameters are a single row."""
    return [*_catalogue_rows(setup), *_inertial_rows(setup), *_plugin_rows(setup)]


def _catalogue_rows(setup: Setup) -> Iterator[ListedParameter]:
    for kind in CATALOGUE:
        if not row_names(kind.row_kind, setup):
            continue
        try:
            scalars = scalar_parameters(kind.name, setup)
        except ParameterError:
            continue  # zero gravity has no magnitude parameter
        for scalar, value in zip(scalars, current_values(setup, scalars).tolist(), strict=True):
            yield ListedParameter(scalar.name, value, scalar.unit, kind.description)


def _inertial_rows(setup: Setup) -> Iterator[ListedParameter]:
    for row in row_names(RowKind.BODY, setup):
        address = f"{INERTIAL.name}[{row.name}]"
        try:
            count = len(scalar_parameters(address, setup))
        except ParameterError:
            continue  # a body without mass, or a physically inconsistent one
        yield ListedParameter(address, None, INERTIAL.unit, f"{INERTIAL.description} {count} parameters.")


def _plugin_rows(setup: Setup) -> Iterator[ListedParameter]:
    for list_arrays in PLUGIN_ARRAYS.values():
        for array in list_arrays(setup):
            kind = array.kind
            if kind.is_weight:
                shape = "×".join(map(str, array.shape)) or "scalar"
                yield ListedParameter(array.name, None, kind.unit, f"{kind.description} Shape: {shape}.")
                continue
            scalars = scalar_parameters(array.name, setup)
            for scalar, value in zip(scalars, current_values(setup, scalars).tolist(), strict=True):
                yield ListedParameter(scalar.name, value, scalar.unit, kind.description)
