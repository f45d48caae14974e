import numpy as np
import pytest

from halo_search.errors import InputError
from halo_search.files.vector_files import read_column, read_vectors
from zoo import data
from zoo.data import batches

RNG = np.random.default_rng(0)
IMAGES = RNG.normal(size=(40, 5)).astype("float32")
CAPTIONS = RNG.normal(size=(40, 3)).astype("float16")


@pytest.fixture
def files(tmp_path):
    np.save(tmp_path / "images.npy", IMAGES)
    np.save(tmp_path / "captions.npy", CAPTIONS)
    return tmp_path


def opened(folder, split="test", **more):
    description = {"loader": "vectors", "images": "images.npy", "captions": "captions.npy", **more}
    names = ("images", "captions", "pairs", "labels", "splits", "texts", "paths")
    whole = {k: f"{folder}/{v}" if k in names else v for k, v in description.items()}
    return data.open(whole, split)


def refused(folder, match, **more):
    with pytest.raises(InputError, match=match) as error:
        opened(folder, **more)
    assert "\n" not in str(error.value)


def test_the_splits_are_whole_apart_and_the_vectors_their_own(files):
    splits = [opened(files, split) for split in ("train", "validation", "test")]
    rows = [split.records.image_ids for split in splits]
    assert [len(own) for own in rows] == [32, 4, 4]
    assert sorted(np.concatenate(rows)) == list(range(40))
    for split in splits:
        batch = next(iter(batches.image_batches(split.records, split.source)))
        np.testing.assert_array_equal(batch["images"], IMAGES[split.records.image_ids])
        batch = next(iter(batches.caption_batches(split.records, None)))
        assert batch["captions"].dtype == "float32"
        np.testing.assert_array_equal(batch["captions"], CAPTIONS[split.records.caption_ids])
    np.testing.assert_array_equal(opened(files, held_out="val").records.image_ids, rows[1])
    other = opened(files, seed=1).records.image_ids
    assert set(other) != set(rows[2])


def test_a_training_batch_pairs_rows_and_a_selection_keeps_them(files):
    split = opened(files, "train")
    batch = next(iter(batches.image_caption_pairs(split.records, None, split.source, 8)))
    row_of = {tuple(vector): row for row, vector in enumerate(IMAGES)}
    rows = [row_of[tuple(vector)] for vector in batch["images"].numpy()]
    np.testing.assert_array_equal(batch["captions"], CAPTIONS[rows].astype("float32"))
    chosen = split.records.select([3, 1])
    found = next(iter(batches.caption_batches(chosen, None)))["captions"]
    np.testing.assert_array_equal(found, CAPTIONS[split.records.image_ids[[3, 1]]])
    dropping = data.Augmentation(word_dropping=0.1)
    with pytest.raises(ValueError, match="word_dropping` must be 0 for captions that are vectors"):
        batches.image_caption_pairs(split.records, None, split.source, 8, augmentation=dropping)


def test_all_formats_hold_the_same(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    from safetensors.numpy import save_file

    np.savez(tmp_path / "a.npz", images=IMAGES, captions=CAPTIONS, ids=np.arange(40))
    save_file({"images": IMAGES, "captions": CAPTIONS}, tmp_path / "a.safetensors")
    flat = arrow.FixedSizeListArray.from_arrays(IMAGES.ravel(), 5)
    columns = {"vector": flat, "free": [list(map(float, row)) for row in IMAGES]}
    columns["url"] = [f"u{row}" for row in range(40)]
    parquet.write_table(arrow.table(columns), tmp_path / "a.parquet")
    for name in ("a.npz", "a.npz:images", "a.safetensors", "a.parquet:vector", "a.parquet:free"):
        np.testing.assert_array_equal(read_vectors(f"{tmp_path}/{name}", "images"), IMAGES)
    assert read_vectors(tmp_path / "a.npz", "captions").dtype == "float16"
    np.testing.assert_array_equal(read_column(f"{tmp_path}/a.npz:ids"), np.arange(40))
    assert read_column(f"{tmp_path}/a.parquet:url")[7] == "u7"
    (tmp_path / "t.csv").write_text("text,n\na b,1\nc,2\n")
    assert read_column(f"{tmp_path}/t.csv:text") == ["a b", "c"]
    for name, match in {
        "a.parquet": "a.parquet:NAME, which names one of vector, free, url",
        "a.npz:x": "expected 'x', found images, captions, ids",
    }.items():
        with pytest.raises(InputError, match=match):
            read_vectors(f"{tmp_path}/{name}", "images")


def test_pairs_labels_texts_and_splits(files):
    # Image 0 has two captions, caption 5 two images, caption 39 none.
    pairs = [[0, 0], [0, 1], *([row, row] for row in range(2, 39)), [7, 5]]
    np.save(files / "pairs.npy", np.array(pairs))
    (files / "texts.txt").write_text("".join(f"text {row}\n" for row in range(40)))
    (files / "paths.txt").write_text("".join(f"{row}.jpg\n" for row in range(40)))
    names = ["train"] * 30 + ["validation"] * 4 + ["test"] * 6
    (files / "splits.txt").write_text("\n".join(names))
    train = opened(files, "train", pairs="pairs.npy", splits="splits.txt", texts="texts.txt")
    records = train.records
    assert records.num_images == 29  # image 1 has no caption
    assert {item.kind for item in records.skipped} == {
        "images without captions",
        "captions without images",
    }
    label = dict(zip(records.image_ids, records.image_labels, strict=True))
    assert label[5] == label[7]
    assert label[5] != label[6]
    assert list(records.captions[:2]) == ["text 0", "text 1"]
    (files / "labels.txt").write_text("".join(f"class {row // 20}\n" for row in range(40)))
    test = opened(files, labels="labels.txt", splits="splits.txt", paths="paths.txt")
    assert test.records.class_names == ("class 1",)
    assert list(test.records.image_paths) == [f"{row}.jpg" for row in range(34, 40)]
    apart = ["train"] * 6 + ["validation"] * 4 + ["test"] * 30
    (files / "apart.txt").write_text("\n".join(apart))
    match = "expected the images of caption 5 in one split"
    refused(files, match, pairs="pairs.npy", splits="apart.txt")


def test_bad_input_is_one_line(files):
    def save(name, array):
        np.save(files / name, array)
        return name

    refused(
        files,
        "expected 40 rows, as .* has, found 39; --pairs",
        captions=save("a.npy", CAPTIONS[:39]),
    )
    bad = IMAGES.copy()
    bad[17, 2] = np.nan
    refused(files, "bad.npy: expected finite numbers, row 17 has NaN", images=save("bad.npy", bad))
    np.save(files / "pickle.npy", np.array([{}], object), allow_pickle=True)
    refused(files, "holds Python objects .a pickle., which are refused unread", images="pickle.npy")
    outside = save("pairs.npy", np.array([[0, 0], [1, 40], [2, 2]]))
    refused(files, r"row 1 is \(1, 40\); expected rows below 40 and 40", pairs=outside)


def test_a_null_in_a_list_is_told_as_that(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    column = arrow.array([[1.0, 2.0], [3.0, None]], arrow.list_(arrow.float32()))
    parquet.write_table(arrow.table({"images": column}), tmp_path / "v.parquet")
    with pytest.raises(InputError, match="images: expected numbers alone, row 1 has a null"):
        read_vectors(tmp_path / "v.parquet", "images")
