import re

import numpy as np
import pytest

from zoo.data import batches, captions, regions
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
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
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


@pytest.mark.parametrize(
    ("array", "why"),
    [
        (np.zeros((4, 6), np.float32), "expected shape (rows, regions, dim), found (4, 6)"),
        (np.zeros((3, 3, 2), np.float32), "expected 3 captions, or 5 times as many"),
    ],
)
def test_bad_arrays(tmp_path, array, why):
    _write(tmp_path)
    np.save(tmp_path / "dev_ims.npy", array, allow_pickle=True)
    with pytest.raises(InputError, match=re.escape(why)) as caught:
        _load(tmp_path)
    assert "dev_" in str(caught.value)


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
    path.write_text("\n".join(whole))
    ids.write_text("70\n71\n70\n73\n")
    with pytest.raises(InputError, match=re.escape(f"{ids}:3: id 70 occurs twice")):
        _load(tmp_path)
    assert list(_load(tmp_path, skip_bad=True).image_ids) == [70, 71, 73]
    path.write_text("\n".join(whole[:-1]))
    with pytest.raises(InputError, match=re.escape(f"{path}:19: expected 4 captions")):
        _load(tmp_path)
