import numpy as np
import pytest
import tensorflow as tf

from zoo.data.records import sources as module
from zoo.data.records.sources import Features, row_reader


@pytest.fixture(autouse=True)
def every_file_is_large(monkeypatch):
    monkeypatch.setattr(module, "_SMALL", 0)


def stored(path, dtype="float32", shape=(20, 3, 4)):
    array = np.random.default_rng(0).normal(size=shape).astype(dtype)
    np.save(path, array)
    return array, np.load(path, mmap_mode="r")


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_rows_are_those_of_the_array(tmp_path, dtype):
    array, mapped = stored(tmp_path / "a.npy", dtype)
    rows = [3, 19, 0, 3]
    read = row_reader(mapped)
    np.testing.assert_array_equal(read(tf.constant(rows)), array[rows])
    traced = tf.function(read)(tf.constant(rows, tf.int64))
    np.testing.assert_array_equal(traced, array[rows])


def test_an_old_header_and_bytes_behind_the_array_do_no_harm(tmp_path):
    array = np.arange(24, dtype="float32").reshape(6, 4)
    (tmp_path / "old").write_bytes(b"x" * 80 + array.tobytes() + b"tail")
    mapped = np.memmap(tmp_path / "old", "float32", "r", offset=80, shape=(6, 4))
    np.testing.assert_array_equal(row_reader(mapped)(tf.constant([5, 0])), array[[5, 0]])


def test_a_source_reads_batches_in_order_and_the_last_is_small(tmp_path):
    array, mapped = stored(tmp_path / "a.npy")
    source = Features(mapped, rows=[4, 2, 2, 0, 19])
    batches = list(source.in_order(2).as_numpy_iterator())
    assert [len(batch) for batch in batches] == [2, 2, 1]
    np.testing.assert_array_equal(np.concatenate(batches), array[[4, 2, 2, 0, 19]])


def test_rows_that_are_not_there_are_an_error(tmp_path):
    _, mapped = stored(tmp_path / "a.npy")
    read = tf.function(row_reader(mapped))
    for row in (20, -1):
        with pytest.raises(tf.errors.OpError, match="rows must be below 20"):
            read(tf.constant([row]))
    with open(tmp_path / "a.npy", "r+b") as file:
        file.truncate(500)
    with pytest.raises(tf.errors.OpError, match=r"a\.npy: ends before row 19"):
        read(tf.constant([19]))
