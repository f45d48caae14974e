import numpy as np

from zoo.data.records import sources as module
from zoo.data.records.sources import Features


def test_a_large_file_is_read_by_rows_and_the_last_batch_is_small(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_SMALL", 0)
    array = np.random.default_rng(0).normal(size=(20, 3, 4)).astype("float32")
    np.save(tmp_path / "a.npy", array)
    source = Features(np.load(tmp_path / "a.npy", mmap_mode="r"), rows=[4, 2, 2, 0, 19])
    batches = list(source.in_order(2).as_numpy_iterator())
    assert [len(batch) for batch in batches] == [2, 2, 1]
    np.testing.assert_array_equal(np.concatenate(batches), array[[4, 2, 2, 0, 19]])
