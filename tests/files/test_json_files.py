import numpy as np

from zoo.files.json_files import pack, unpack


def test_an_array_is_deflated_and_comes_back():
    many = np.arange(3000, dtype="<f4") % 7
    packed = pack(many)
    np.testing.assert_array_equal(unpack(np.ndarray, packed), many)
    assert len(packed["deflated"]) < 1000
