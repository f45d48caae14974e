"""Dataclasses as JSON values: the same again, and each kind of damage is one clear error."""

import base64
import dataclasses
import json

import numpy as np
import pytest

from json_values import changed
from zoo.files.json_files import pack, unpack


@dataclasses.dataclass(frozen=True, eq=False)
class Inner:
    values: np.ndarray
    scale: float

    def __post_init__(self):
        if not self.scale > 0:
            raise ValueError("'scale' must be positive")
        object.__setattr__(self, "twice", 2 * self.scale)


@dataclasses.dataclass(frozen=True, eq=False)
class Other:
    seen: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class Outer:
    name: str
    count: int
    inner: Inner | None
    either: Inner | Other
    parts: tuple[Inner, ...]
    by_name: dict[str, Inner]
    plain: dict
    names: tuple
    is_it: bool


def outer(**change):
    inner = Inner(np.arange(6.0).reshape(2, 3), 0.5)
    fields = {
        "name": "wörd",
        "count": 3,
        "inner": inner,
        "either": Other(np.array([True, False])),
        "parts": (inner, Inner(np.zeros((0, 4), np.float16), 2.0)),
        "by_name": {"t2i": inner},
        "plain": {"dim": 4, "norm": 0.25},
        "names": ("a", "b"),
        "is_it": True,
    }
    return Outer(**fields | change)


def stored(value):
    """As it is read from a file."""
    return json.loads(json.dumps(pack(value), allow_nan=False))


def test_it_is_the_same_again():
    value = outer()
    again = unpack(Outer, stored(value))
    for name in ("name", "count", "plain", "names", "is_it"):
        assert getattr(again, name) == getattr(value, name)
    np.testing.assert_array_equal(again.inner.values, value.inner.values)
    assert again.inner.twice == 1.0
    assert isinstance(again.either, Other)
    assert again.either.seen.dtype == bool
    assert again.parts[1].values.shape == (0, 4)
    assert again.parts[1].values.dtype == np.float16
    np.testing.assert_array_equal(again.by_name["t2i"].values, value.inner.values)
    again.inner.values[0, 0] = 9  # its own memory, not the text's
    assert unpack(Outer, stored(outer(inner=None))).inner is None
    assert isinstance(unpack(Outer, stored(outer(either=value.inner))).either, Inner)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", ">f8", "i4", "i8", "u1", "u8", "?"])
def test_arrays_keep_every_bit(dtype):
    values = np.random.default_rng(0).normal(0, 40, (3, 2)).astype("f8")
    values = np.abs(values).astype(dtype).T  # not in the order of rows
    again = unpack(np.ndarray, stored(values))
    np.testing.assert_array_equal(again, values)
    assert again.dtype == values.dtype.newbyteorder("<")


def test_numbers_of_numpy_are_numbers_and_texts_of_arrays_are_refused():
    assert stored({"a": np.float32(0.5), "b": np.int64(3), "c": np.bool_(True)}) == {
        "a": 0.5,
        "b": 3,
        "c": True,
    }
    with pytest.raises(TypeError, match="cannot store an array of <U1"):
        pack(np.array(["a"]))


NAN = base64.b64encode(np.array([np.nan, 0, 0, 0, 0, 0]).tobytes()).decode()


@pytest.mark.parametrize(
    ("path", "new", "message"),
    [
        (["count"], ..., "'found' has no 'count'"),
        (["extra"], 1, "'found' has 'extra', which is not known"),
        (["count"], "3", "'count' must be of type int; found '3'"),
        (["count"], True, "'count' must be of type int; found True"),
        (["count"], 1.0, "'count' must be of type int; found 1.0"),
        (["name"], 3, "'name' must be of type str; found 3"),
        (["is_it"], 1, "'is_it' must be of type bool; found 1"),
        (["inner", "scale"], None, "'scale' must be a number; found None"),
        (["inner", "scale"], True, "'scale' must be a number; found True"),
        (["inner", "scale"], float("inf"), "'scale' must be a finite number; found inf"),
        (["inner", "scale"], float("nan"), "'scale' must be a finite number; found nan"),
        (["inner", "scale"], 0, "'scale' must be positive"),
        (["inner"], [], "'inner' must be an object; found list"),
        (["either"], {"what": 1}, "'either' has no"),
        (["either"], 7, "'either' must be an object; found int"),
        (["parts"], {}, "'parts' must be a list; found dict"),
        (["parts", 0], None, "'parts' must be an object; found NoneType"),
        (["by_name"], [], "'by_name' must be an object; found list"),
        (["by_name", "t2i", "scale"], ..., "'by_name.t2i' has no 'scale'"),
        (["plain"], 1, "'plain' must be an object; found int"),
        (["names"], "ab", "'names' must be a list; found str"),
        (["inner", "values"], [1.0], "'values' must be an array; found list"),
        (["inner", "values", "data"], ..., "'values' must be an array; found dict"),
        (["inner", "values", "type"], "|O", "must be an array of one of <f2, <f4"),
        (["inner", "values", "type"], ["<f8"], "must be an array of one of <f2, <f4"),
        (["inner", "values", "shape"], 6, "'values' must have a shape of whole numbers; found 6"),
        (["inner", "values", "shape"], [-2, -3], "must have a shape of whole numbers"),
        (["inner", "values", "shape"], [2.0, 3], "must have a shape of whole numbers"),
        (["inner", "values", "shape"], [True, 6], "must have a shape of whole numbers"),
        (["inner", "values", "shape"], [2, 2], "'values' must hold 4 numbers; found 6"),
        (["inner", "values", "shape"], [2**30, 2**30], "must hold 1152921504606846976 numbers"),
        (["inner", "values", "data"], "é", "'values' must hold an array in base64"),
        (["inner", "values", "data"], "AAA", "'values' must hold an array in base64"),
        (["inner", "values", "data"], "AAAA", "'values' must hold an array in base64"),
        (["inner", "values", "data"], 3, "'values' must hold an array in base64"),
        (["inner", "values", "data"], NAN, "'values' must hold finite numbers"),
    ],
)
def test_damage_is_one_clear_error(path, new, message):
    with pytest.raises(ValueError, match=message) as caught:
        unpack(Outer, changed(stored(outer()), path, new), "found")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [None, 3, "text", [], True])
def test_what_is_no_object_is_no_dataclass(value):
    with pytest.raises(ValueError, match="'found' must be an object; found"):
        unpack(Outer, value, "found")
