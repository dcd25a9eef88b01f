"""Damaged recordings: columns of numbers, or errors; never another exception."""

import random

import h5py
import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from hybridsim.core.errors import HybridsimError
from hybridsim.data.read import read_tables
from support.mutations import mutate, seeds
from support.small_projects import write_columns

T = np.arange(60) * 0.01
COLUMNS = {"time": T, "q": np.cos(3.0 * T), "u": 0.1 * np.sin(5.0 * T)}


def write_hdf5(file):
    with h5py.File(file, "w") as stream:
        for name, values in COLUMNS.items():
            stream[name] = values


WRITERS = {
    "run.csv": lambda file: write_columns(file, COLUMNS),
    "run.npz": lambda file: np.savez(file, **COLUMNS),
    "run.npy": lambda file: np.save(file, np.stack(list(COLUMNS.values()), axis=1)),
    "run.h5": write_hdf5,
    "run.parquet": lambda file: pyarrow.parquet.write_table(pyarrow.table(COLUMNS), file),
}


@pytest.mark.parametrize("seed", seeds(200))
def test_damaged_recordings(seed, tmp_path, monkeypatch):
    monkeypatch.setenv("HYBRIDSIM_MAX_GIB", "0.5")
    rng = random.Random(seed)
    file = tmp_path / rng.choice(sorted(WRITERS))
    WRITERS[file.name](file)
    file.write_bytes(mutate(file.read_bytes(), rng))
    try:
        tables = read_tables(file)
    except HybridsimError as error:
        assert str(file) in str(error)
        return
    for table in tables:
        assert all(column.dtype == float and column.ndim == 1 for column in table.columns.values())
        assert table.sha256
