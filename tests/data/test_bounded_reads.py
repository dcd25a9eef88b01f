"""Reads of recordings are bounded, and values come from the file itself only."""

import io
import zipfile

import h5py
import numpy as np
import pytest

from hybridsim.core.errors import DataError
from hybridsim.data.memory_limit import VARIABLE
from hybridsim.data.read import read_table


def npy_header(shape, dtype="<f8") -> bytes:
    content = io.BytesIO()
    header = {"shape": shape, "fortran_order": False, "descr": dtype}
    np.lib.format.write_array_header_1_0(content, header)  # type: ignore[arg-type]
    return content.getvalue()


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, "1")
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("time.npy", npy_header((2**29,)) + bytes(2**20))
    raw = bytearray((tmp_path / "bomb.npz").read_bytes())
    with zipfile.ZipFile(tmp_path / "bomb.npz") as file:
        size = file.infolist()[0].file_size
    # the directory claims 4 GiB
    index = raw.rindex(size.to_bytes(4, "little"))
    raw[index : index + 4] = (2**32 - 2).to_bytes(4, "little")
    (tmp_path / "bomb.npz").write_bytes(bytes(raw))
    with pytest.raises(DataError, match="claims 4 GiB, more than the 1 GiB") as caught:
        read_table(tmp_path / "bomb.npz")
    assert caught.value.problems[0].code == "data.size" and VARIABLE in caught.value.problems[0].fix


def test_a_claimed_array_of_64_gb_is_refused(tmp_path):
    with h5py.File(tmp_path / "large.h5", "w") as file:
        file.create_dataset("time", shape=(2**33,), dtype="f8", chunks=(2**16,))
    with pytest.raises(DataError, match=r"claims 64 GiB, more than the 4 GiB allowed"):
        read_table(tmp_path / "large.h5")


def test_arrays_that_are_not_read_do_not_count(tmp_path):
    with h5py.File(tmp_path / "video.h5", "w") as file:
        file["time"] = np.arange(10.0)
        file.create_dataset("images", shape=(10**5, 480, 640, 3), dtype="u1", chunks=(1, 480, 640, 3))
    assert list(read_table(tmp_path / "video.h5").columns) == ["time"]


def test_the_limit_can_be_raised_and_lowered(tmp_path, monkeypatch):
    np.savez(tmp_path / "run.npz", time=np.arange(1000.0))
    assert len(read_table(tmp_path / "run.npz").columns["time"]) == 1000
    monkeypatch.setenv(VARIABLE, "1e-6")
    with pytest.raises(DataError, match="more than the 1e-06 GiB allowed"):
        read_table(tmp_path / "run.npz")


@pytest.mark.parametrize("kind", ["external", "virtual"])
def test_values_in_other_files_are_not_read(tmp_path, kind):
    secret = tmp_path / "secret"
    with h5py.File(tmp_path / "run.h5", "w") as file:
        file["time"] = np.arange(8.0)
        if kind == "external":
            np.arange(8.0).tofile(secret)
            file.create_dataset("values", (8,), "f8", external=[(str(secret), 0, 64)])
        else:
            with h5py.File(secret, "w") as other:
                other["values"] = np.arange(8.0)
            layout = h5py.VirtualLayout((8,), "f8")
            layout[:] = h5py.VirtualSource(str(secret), "values", (8,))
            file.create_virtual_dataset("values", layout)
    with pytest.raises(DataError, match=r"array 'values' has its values in another file, .*secret") as caught:
        read_table(tmp_path / "run.h5")
    assert caught.value.problems[0].code == "data.link"


def test_external_links_are_not_followed(tmp_path):
    with h5py.File(tmp_path / "other.h5", "w") as other:
        other["values"] = np.arange(8.0)
    with h5py.File(tmp_path / "run.h5", "w") as file:
        file["time"] = np.arange(8.0)
        file["link"] = h5py.ExternalLink("other.h5", "/values")
    assert list(read_table(tmp_path / "run.h5").columns) == ["time"]


def test_virtual_datasets_within_the_file_are_read(tmp_path):
    with h5py.File(tmp_path / "run.h5", "w") as file:
        file["time"] = np.arange(8.0)
        layout = h5py.VirtualLayout((8,), "f8")
        layout[:] = h5py.VirtualSource(".", "time", (8,))
        file.create_virtual_dataset("copy", layout)
    np.testing.assert_array_equal(read_table(tmp_path / "run.h5").columns["copy"], np.arange(8.0))
