"""A full disk is one sentence, also where a file is written through a memory map."""

import errno
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

from zoo.files.array_files import open_memmap

FULL_DISK = """
import os
import sys
import keras
import numpy as np
from zoo.cli import run
from zoo.data import features
from zoo.metrics import cider

class Source:
    count = 8

    def in_order(self, batch_size):
        yield np.ones((8, 4), "float32")

class Split:
    image_paths = [str(number) for number in range(8)]
    num_images = 8

def of_features(folder):
    inputs = keras.Input((4,))
    backbone = keras.Model(inputs, keras.ops.tile(inputs, (1, 100_000)))
    features.cached(folder, backbone, Split, Source(), batch_size=8, verbose=False)

def of_cider(folder):
    captions = [f"a bird number {number}" for number in range(900)]
    cider([[caption] for caption in captions], captions, out=f"{folder}/scores.npy")

for what, main in (("features", of_features), ("cider", of_cider)):
    try:
        run(main, sys.argv[1])
    except SystemExit as end:
        print(what, end.code, os.listdir(sys.argv[1]))
        print("after", what, file=sys.stderr)
"""


def test_the_array_is_there_with_all_its_room(tmp_path):
    array = open_memmap(tmp_path / "a.npy", "float32", (1000, 300))
    assert not array.any()
    assert (tmp_path / "a.npy").stat().st_blocks * 512 >= array.nbytes
    array[3] = 7
    array.flush()
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy")[3], 7)
    assert open_memmap(tmp_path / "empty.npy", "float32", (0, 3)).shape == (0, 3)


def test_a_system_without_fallocate_gets_zeros(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "posix_fallocate")
    array = open_memmap(tmp_path / "a.npy", "float16", (3_000_000,))
    assert not array.any()
    assert (tmp_path / "a.npy").stat().st_blocks * 512 >= array.nbytes


def test_no_room_is_an_error_that_leaves_nothing(tmp_path, monkeypatch):
    def full(descriptor, start, size):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match=r"No space left on device \(4 MiB are needed\)"):
        open_memmap(tmp_path / "a.npy", "float32", (1 << 20,))
    assert not list(tmp_path.iterdir())


@pytest.mark.very_slow  # a process of its own with Keras; the error is raised above
def test_a_full_disk_kills_no_process(tmp_path):
    script, folder = tmp_path / "script.py", tmp_path / "disk"
    script.write_text(FULL_DISK)
    folder.mkdir()
    mount = f"mount -t tmpfs -o size=1m tmpfs {folder} && "
    own_space = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    able = shutil.which("unshare") and not subprocess.run([*own_space, mount + "true"]).returncode
    if not able:
        pytest.skip("no file system can be mounted here")
    command = f"{mount}{sys.executable} {script} {folder}"
    done = subprocess.run([*own_space, command], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    # Each ends with 2 and leaves nothing in the folder.
    assert done.stdout.splitlines() == ["features 2 []", "cider 2 []"], done.stderr
    features, _, rest = done.stderr.partition("after features\n")
    for said in (features, rest.partition("after cider\n")[0]):
        (line,) = [line for line in said.splitlines() if line.startswith("error:")]
        assert f"cannot write {folder}" in line
        assert "No space left on device" in line
    assert "Traceback" not in done.stderr
