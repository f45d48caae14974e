import numpy as np

from zoo.files.json_files import pack, unpack


def test_what_repeats_is_deflated_and_comes_back():
    many, few = np.arange(3000, dtype="<f4") % 7, np.random.default_rng(0).normal(size=5)
    for values, key in ((many, "deflated"), (few, "data")):
        packed = pack(values)
        assert set(packed) == {"shape", "type", key}
        np.testing.assert_array_equal(unpack(np.ndarray, packed), values)
    assert len(pack(many)["deflated"]) < 1000
