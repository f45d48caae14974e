import numpy as np
import pytest
import tensorflow as tf

from zoo.training import distribute
from zoo.training.execution import in_parts


def stream(rows, each=2):
    batches = {
        "images": np.arange(3 * rows).reshape(3, rows),
        "captions": np.arange(3 * rows * each).reshape(3, rows * each),
        "matches": np.arange(3 * rows * rows * each).reshape(3, rows, rows * each),
    }
    return lambda start: tf.data.Dataset.from_tensor_slices(batches).skip(start)


@pytest.mark.parametrize(("rows", "count"), [(8, 4), (7, 3), (1, 2), (5, 5)])
def test_the_pieces_of_a_batch_make_the_batch(rows, count):
    batches = list(stream(rows)(0))
    pieces = list(in_parts(stream(rows)(0), count))
    assert len(pieces) == 3 * count
    for number, batch in enumerate(batches):
        own = pieces[number * count : (number + 1) * count]
        for name, whole in batch.items():
            np.testing.assert_array_equal(np.concatenate([p[name] for p in own]), whole)
            sizes = [len(p[name]) for p in own]
            assert max(sizes) - min(sizes) <= 1


def test_equal_pieces_have_fixed_shapes_and_others_cannot():
    shapes = {n: s.shape for n, s in in_parts(stream(8)(0), 4).element_spec.items()}
    assert shapes == {"images": (2,), "captions": (4,), "matches": (2, 16)}
    assert in_parts(stream(7)(0), 4).element_spec["images"].shape.rank == 1


def test_on_one_replica_a_stream_is_itself():
    whole = list(distribute(tf.distribute.get_strategy(), stream(4), 1))
    np.testing.assert_array_equal(whole[0]["images"], [4, 5, 6, 7])
    assert len(whole) == 2
