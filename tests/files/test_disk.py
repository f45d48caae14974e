import errno
import os

import numpy as np
import pytest

from zoo.files.array_files import open_memmap


def test_the_array_is_there_with_all_its_room(tmp_path):
    array = open_memmap(tmp_path / "a.npy", "float32", (1000, 300))
    assert not array.any()
    assert (tmp_path / "a.npy").stat().st_blocks * 512 >= array.nbytes
    array[3] = 7
    array.flush()
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy")[3], 7)
    assert open_memmap(tmp_path / "empty.npy", "float32", (0, 3)).shape == (0, 3)


def test_no_room_is_an_error_that_leaves_nothing(tmp_path, monkeypatch):
    def full(descriptor, start, size):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match=r"No space left on device \(4 MiB are needed\)"):
        open_memmap(tmp_path / "a.npy", "float32", (1 << 20,))
    assert not list(tmp_path.iterdir())
