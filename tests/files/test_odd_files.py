"""Files as other programs write them: read as they are meant, or refused in a sentence."""

import tracemalloc

import ml_dtypes
import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import save_file

from zoo.errors import InputError
from zoo.files.decoding import decoded, fit
from zoo.files.tables import read_table
from zoo.files.vector_files import read_vectors


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"image,caption\na,nan\nb,NULL\nc,<NA>\nd, none \n", [None] * 4),
        (b"image,caption\na,Nan bread\nb,none of them\n", ["Nan bread", "none of them"]),
        ("image,caption\na,b\n".encode("utf-16"), "found UTF-16; save it as UTF-8"),
        (b"image;caption\na;b\n", "found .'image;caption'. between ','; is that the `separator`"),
        (b"caption,image,caption\na,b,c\n", "expected one column 'caption', found 2"),
    ],
)
def test_tables_of_other_programs(tmp_path, content, found):
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    if isinstance(found, str):
        with pytest.raises(InputError, match=found):
            list(read_table(path, ["caption"]))
    else:
        assert [value for _, (value,) in read_table(path, ["caption"])] == found


def test_numbers_that_numpy_has_not_are_named(tmp_path):
    save_file({"images": np.ones((3, 4), ml_dtypes.bfloat16)}, tmp_path / "v.safetensors")
    with pytest.raises(InputError, match="expected F16, F32 or F64, found BF16; convert it"):
        read_vectors(tmp_path / "v.safetensors", "images")


@pytest.mark.parametrize(
    ("start", "kind"),
    [
        (b"\0\0\0\x18ftyphevc", "HEIC"),
        (b"\0\0\0\x18ftypmsf1", "HEIC"),
        (b"%PDF-1.4", "PDF"),
    ],
)
def test_formats_that_people_have_are_named(start, kind):
    with pytest.raises(InputError, match=f"found {kind}"):
        decoded(start + bytes(99))


def test_a_picture_that_is_far_too_long_is_refused_and_a_long_one_takes_little(tmp_path):
    """To resize a side took memory of its length times the new one's."""
    with pytest.raises(InputError, match="1 x 40000 pixels, more than 32,767 on a side"):
        decoded(np.zeros((40_000, 1), "uint8"))
    tracemalloc.start()
    assert fit(np.zeros((32_767, 1, 3), "uint8"), 240, "stretch").shape == (240, 240, 3)
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    tracemalloc.stop()


def _saved(tmp_path, kind, **how):
    Image.new("RGB", (40, 30)).save(tmp_path / "a", kind, **how)
    return (tmp_path / "a").read_bytes()


@pytest.mark.parametrize(
    ("kind", "make", "said"),
    [
        ("JPEG", lambda b: b[:-2] + b[b.rindex(b"\xff\xda") : -2] * 100 + b"\xff\xd9", "100 scans"),
        ("JPEG", lambda b: b[:2] + b"\xff\xfe\0\2" * 20_000 + b[2:], "20,000 parts"),
        ("JPEG", lambda b: b[:2] + b"\xff" * 8_000_000 + b[2:], "20,000 parts"),
        ("JPEG", lambda b: b[:2] + b"\xff\xe1\0\x08Exif\0\0" * 3 + b[2:], "2 EXIF blocks"),
        ("PNG", lambda b: b[:33] + (bytes(4) + b"teSt" + bytes(4)) * 20_001 + b[33:], "parts"),
        ("GIF", lambda b: b[:10] + bytes(3) + b"!\xfe" + b"\1a" * 5_000, "2,000 parts"),
        ("BMP", lambda b: b[:30] + b"\1" + b[31:] + bytes(2**20), "compressed BMP"),
    ],
)
def test_a_picture_of_far_too_many_parts_is_refused_by_counting(tmp_path, kind, make, said):
    how = {"progressive": True} if kind == "JPEG" else {}
    picture = _saved(tmp_path, kind, **how)
    with pytest.raises(InputError, match=f"more than .*{said}|{said} of more than"):
        decoded(make(picture))
    assert decoded(picture).shape == (30, 40, 3)
    if kind == "JPEG":  # a video behind a picture, as telephones write it, is no part of it
        video = np.random.default_rng(0).integers(0, 256, 2**24, dtype="u1").tobytes()
        assert decoded(picture + video).shape == (30, 40, 3)
