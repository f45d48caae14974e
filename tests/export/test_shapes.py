"""A signature takes the shapes that it declares and no others, also when it has been saved."""

import numpy as np
import pytest
import tensorflow as tf

from export import requests

DECLARED = [
    ((None, 4, 3), [(1, 4, 3), (5, 4, 3)], [(1, 4, 4), (1, 5, 3), (4, 3), (1, 4, 3, 1), ()]),
    ((None,), [(1,), (3,)], [(), (1, 1), (2, 2)]),
    ((2, 3), [(2, 3)], [(1, 3), (2, 4), (2,), (2, 3, 1), (3, 2)]),  # all is known beforehand
]


@pytest.mark.parametrize(("shape", "right", "wrong"), DECLARED)
def test_other_shapes_are_refused(tmp_path, shape, right, wrong):
    spec = tf.TensorSpec(shape, tf.float32, name="values")
    module = tf.Module()
    module.double = tf.function(
        lambda values: {"doubled": 2 * requests.declared([values], [spec])[0]},
        input_signature=[spec],
        autograph=False,
    )
    signatures = {"double": module.double.get_concrete_function()}
    tf.saved_model.save(module, str(tmp_path), signatures=signatures)
    served = tf.saved_model.load(str(tmp_path)).signatures["double"]
    for one in right:
        np.testing.assert_array_equal(served(values=tf.ones(one))["doubled"], np.full(one, 2.0))
    for one in wrong:
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            served(values=tf.ones(one))
        said = ", ".join("N" if size is None else str(size) for size in shape)
        assert f"`values` must have shape ({said}" in str(caught.value)
        assert f"received] [{', '.join(map(str, one))}]" in str(caught.value)
