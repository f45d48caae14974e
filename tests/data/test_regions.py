"""Region features in SCAN's files: two ways of storing, selections, and everything bad."""

import pickle
import re
import struct

import numpy as np
import pytest

from zoo.data import batches, captions, regions, sources, toy_scenes
from zoo.errors import InputError


def _write(folder, split="dev", images=4, copies=1, ids=True, dtype=np.float32):
    folder.mkdir(exist_ok=True)
    array = np.arange(images * 6, dtype=dtype).reshape(images, 3, 2)
    np.save(folder / f"{split}_ims.npy", np.repeat(array, copies, axis=0))
    texts = [f"caption {index}" for index in range(5 * images)]
    (folder / f"{split}_caps.txt").write_text("\n".join(texts) + "\n")
    if ids:
        numbers = np.repeat(np.arange(images) + 70, copies)
        (folder / f"{split}_ids.txt").write_text("".join(f"{number}\n" for number in numbers))
    return array


def _load(folder, split="dev", **options):
    return regions.load(folder, split, verbose=False, **options).records


@pytest.mark.parametrize("copies", [1, 5])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_images_are_stored_once_or_five_times(tmp_path, copies, dtype):
    array = _write(tmp_path, copies=copies, dtype=dtype)
    records, dataset = regions.load(tmp_path, "dev", verbose=False)
    np.testing.assert_array_equal(records.caption_image, np.repeat(np.arange(4), 5))
    np.testing.assert_array_equal(records.image_ids, [70, 71, 72, 73])
    rows = list(dataset.as_numpy_iterator())
    assert len(rows) == 20
    for index, row in enumerate(rows):
        np.testing.assert_array_equal(row["images"], array[index // 5])
        assert row["captions"] == f"caption {index}".encode()
        assert row["image_labels"] == row["caption_labels"] == index // 5
    part = records.select([3, 1])
    shown = np.concatenate(list(regions.features(part).in_order(3).as_numpy_iterator()))
    np.testing.assert_array_equal(shown, array[[3, 1]])


def test_training_batches_read_the_map(tmp_path):
    array = _write(tmp_path, copies=5, ids=False)
    records = _load(tmp_path)
    np.testing.assert_array_equal(records.image_ids, range(4))
    tokenizer = captions.word_tokenizer(records.captions)
    dataset = batches.images_with_captions(
        records, tokenizer, regions.features(records), 2, num_steps=4
    )
    for batch in dataset.as_numpy_iterator():
        np.testing.assert_array_equal(batch["images"], array[batch["image_labels"]])
        assert batch["captions"].shape == (10, 32)


def test_old_files_are_aligned_to_sixteen_bytes_only(tmp_path):
    array = np.arange(60, dtype=np.float32).reshape(5, 4, 3)
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {array.shape}, }}"
    header = (text + " " * (80 - 10 - len(text) - 1) + "\n").encode()
    path = tmp_path / "old.npy"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header
                     + array.tobytes())  # fmt: skip
    mapped = regions.open_array(path)
    assert mapped.offset % 64
    shown = np.concatenate(list(sources.Features(mapped, [4, 0, 2]).in_order(2)))
    np.testing.assert_array_equal(shown, array[[4, 0, 2]])


def test_toy_scenes_in_both_ways(scenes_root):
    matrix = {}
    for split in regions.SPLITS:
        records = _load(scenes_root / "regions", split)
        assert records.num_captions == 5 * records.num_images
        shown = np.concatenate(list(regions.features(records).in_order(16)))
        assert shown.shape == (records.num_images, 12, 16)
        assert (shown >= 0).all()
        matrix[split] = toy_scenes.truth_matrix(scenes_root, records)
        own = matrix[split][records.caption_image, np.arange(records.num_captions)]
        assert own.all()
    assert matrix["test"].shape == (2, 10)
    np.testing.assert_array_equal(matrix["test"], matrix["testall"][:2, :10])


def test_regions_tell_birds_apart(scenes_root):
    """What a region shows is the bird: the same species' features are closer than others'."""
    records = _load(scenes_root / "regions", "train")
    shown = np.concatenate(list(regions.features(records).in_order(64))).max(1)
    truth = toy_scenes.read_truth(scenes_root)
    alone = [i for i, n in enumerate(records.image_ids) if len(truth[n].birds) == 1]
    species = np.array([truth[records.image_ids[i]].birds[0].species for i in alone])
    unit = shown[alone] / np.linalg.norm(shown[alone], axis=1, keepdims=True)
    cosine, same = unit @ unit.T, species[:, None] == species
    np.fill_diagonal(same, False)
    others = species[:, None] != species
    assert cosine[same].mean() > cosine[others].mean() + 0.05


@pytest.mark.parametrize(
    ("array", "why"),
    [
        (np.zeros((4, 6), np.float32), "expected shape (rows, regions, dim), found (4, 6)"),
        (np.zeros((0, 3, 2), np.float32), "expected shape (rows, regions, dim), found (0, 3, 2)"),
        (np.zeros((4, 3, 2), np.int32), "expected float16, float32 or float64, found int32"),
        (np.zeros((4, 3, 2), ">f4"), "expected float16, float32 or float64, found >f4"),
        (np.asfortranarray(np.zeros((4, 3, 2))), "expected shape (rows, regions, dim)"),
        (np.zeros((3, 3, 2), np.float32), "expected 3 captions, or 5 times as many"),
        (np.array([[[None]]] * 4), "Python objects in dtype"),
    ],
)  # fmt: skip
def test_bad_arrays(tmp_path, array, why):
    _write(tmp_path)
    np.save(tmp_path / "dev_ims.npy", array, allow_pickle=True)
    with pytest.raises(InputError, match=re.escape(why)) as caught:
        _load(tmp_path)
    assert "dev_" in str(caught.value)


class _Bomb:
    def __reduce__(self):
        return pytest.fail, ("the pickle was read",)


@pytest.mark.parametrize("content", ["bare", "inside", "cut", "archive", "empty"])
def test_pickles_and_damaged_files_are_refused_unread(tmp_path, content):
    _write(tmp_path)
    path = tmp_path / "dev_ims.npy"
    if content == "bare":
        path.write_bytes(pickle.dumps(_Bomb()))
    elif content == "inside":
        np.save(path, np.array([_Bomb()], object), allow_pickle=True)
    elif content == "archive":
        with open(path, "wb") as file:
            np.savez(file, a=np.zeros(3))
    else:
        path.write_bytes(path.read_bytes()[: 150 if content == "cut" else 0])
    with pytest.raises(InputError, match=re.escape(str(path))) as caught:
        _load(tmp_path)
    assert "\n" not in str(caught.value)


def test_bad_captions_and_ids(tmp_path):
    _write(tmp_path)
    path, ids = tmp_path / "dev_caps.txt", tmp_path / "dev_ids.txt"
    whole = path.read_text().splitlines()
    path.write_text("\n".join([*whole[:2], "  ", *whole[3:]]))
    with pytest.raises(InputError, match=re.escape(f"{path}:3: an empty caption")):
        _load(tmp_path)
    records = _load(tmp_path, skip_bad=True)
    assert [item.kind for item in records.skipped] == ["empty captions"]
    np.testing.assert_array_equal(np.bincount(records.caption_image), [4, 5, 5, 5])
    path.write_text("\n".join([*[" "] * 5, *whole[5:]]))
    records = _load(tmp_path, skip_bad=True)
    assert list(records.image_ids) == [71, 72, 73]
    shown = np.concatenate(list(regions.features(records).in_order(8)))
    np.testing.assert_array_equal(shown[:, 0, 0], [6, 12, 18])
    path.write_text("\n".join(whole))
    ids.write_text("70\n71\n70\n73\n")
    with pytest.raises(InputError, match=re.escape(f"{ids}:3: id 70 occurs twice")):
        _load(tmp_path)
    assert list(_load(tmp_path, skip_bad=True).image_ids) == [70, 71, 73]
    ids.write_text("70\n71\n")
    with pytest.raises(InputError, match=re.escape(f"{ids}:2: expected 4 or 20 ids")):
        _load(tmp_path)
    path.write_text("\n".join(whole[:-1]))
    with pytest.raises(InputError, match=re.escape(f"{path}:19: expected 4 captions")):
        _load(tmp_path)


def test_split_and_folder_are_checked(tmp_path, toy_records):
    with pytest.raises(ValueError, match="`split` must be one of"):
        regions.load(tmp_path, "val")
    with pytest.raises(InputError, match="no such data folder"):
        regions.load(tmp_path / "none")
    with pytest.raises(InputError, match="No such file"):
        regions.load(tmp_path)
    with pytest.raises(InputError, match=r"expected records of one `regions.load`"):
        regions.features(toy_records)
