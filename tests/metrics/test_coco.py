"""The COCO table on small annotations and on the published ones; their readers; PMRP."""

import json

import numpy as np
import pytest

import annotation_folder
from annotation_folder import CAPTIONS, IMAGES, own_image
from halo_search.errors import InputError
from zoo.data import regions
from zoo.metrics import (
    MeanSimilarity,
    average_semantic_precision,
    blocks,
    check_coco_ids,
    coco_benchmark,
    evaluate_retrieval,
    plausible_match_r_precision,
    r_precision,
    read_ids,
    read_instance_labels,
    read_matches,
    recall_at_k,
    relevance_of_matches,
)


@pytest.fixture
def folder(tmp_path):
    annotation_folder.write(tmp_path)
    annotation_folder.write_instances(tmp_path / "instances.json")
    return tmp_path


@pytest.fixture
def similarity():
    return np.random.default_rng(0).normal(size=(10, 50))


def table(similarity, folder, images=IMAGES, captions=CAPTIONS):
    return coco_benchmark(similarity, images, captions, folder, instances=folder / "instances.json")


def matrix(folder, name):
    matches = json.loads((folder / f"{name}.json").read_text())
    rows, columns = (IMAGES, CAPTIONS) if name.endswith("to_caption") else (CAPTIONS, IMAGES)
    return np.array([[c in matches.get(str(r), ()) for c in columns] for r in rows])


def test_each_truth_equals_its_written_out_matrix(folder, similarity):
    results = table(similarity, folder)
    for name, key in (("original", "coco_5k"), ("cxc", "cxc")):
        forward = matrix(folder, f"{name}_image_to_caption")
        backward = matrix(folder, f"{name}_caption_to_image")
        expected = recall_at_k(similarity, forward, 5)
        assert results[f"{key}_i2t_recall@5"] == pytest.approx(100 * expected)
        expected = r_precision(similarity.T, backward)
        assert results[f"{key}_t2i_r_precision"] == pytest.approx(100 * expected)
    assert results["cxc_t2i_queries_without_positive"] == 1


def test_an_annotated_item_outside_the_gallery_counts_in_r(folder, similarity):
    results = table(similarity, folder)
    assert results["eccv_captions_outside_gallery"] == 1
    assert results["eccv_i2t_queries"] == 3
    found = matrix(folder, "eccv_image_to_caption")
    shares = []
    for row, size in ((0, 11), (4, 2), (7, 3)):
        first = np.argsort(-similarity[row])[:size]
        shares.append(found[row, first].sum() / size)
    assert results["eccv_i2t_r_precision"] == pytest.approx(100 * np.mean(shares))


def test_1k_is_the_mean_over_five_folds(folder, similarity):
    relevance = IMAGES[:, None] == own_image(CAPTIONS)
    folds = [evaluate_retrieval(similarity[f], relevance[f]) for f in annotation_folder.folds()]
    results = table(similarity, folder)
    for key in ("i2t_recall@1", "t2i_recall@1", "t2i_map@r", "rsum"):
        expected = np.mean([fold[key] for fold in folds])
        assert results[f"coco_1k_{key}"] == pytest.approx(expected)
    assert results["coco_1k_i2t_queries"] == 10
    sums = [v for k, v in results.items() if k.startswith("coco_1k") and "recall@" in k]
    assert results["coco_1k_rsum"] == pytest.approx(sum(sums))


def test_plausible_matches_come_from_the_instances(folder, similarity):
    results = table(similarity, folder)
    labels = annotation_folder.instance_labels(range(10))
    expected = plausible_match_r_precision(similarity, labels, np.repeat(np.arange(10), 5))
    assert results["coco_5k_i2t_pmrp"] == pytest.approx(100 * expected["i2t"])
    assert results["coco_5k_t2i_pmrp"] == pytest.approx(100 * expected["t2i"])
    for limit in (0, 1, 2):
        one = plausible_match_r_precision(
            similarity, labels, np.repeat(np.arange(10), 5), thresholds=(limit,)
        )
        assert results[f"coco_5k_t2i_pmrp_{limit}"] == pytest.approx(100 * one["t2i"])
    assert results["pmrp_images_left_out"] == 1
    folds = [
        plausible_match_r_precision(
            similarity[rows, columns], labels[rows[:, 0]], np.repeat([0, 1], 5)
        )
        for rows, columns in annotation_folder.folds()
    ]
    for side in ("i2t", "t2i"):
        mean = np.mean([fold[side] for fold in folds])
        assert results[f"coco_1k_{side}_pmrp"] == pytest.approx(100 * mean)
    without = coco_benchmark(similarity, IMAGES, CAPTIONS, folder)
    assert not [key for key in without if "pmrp" in key]


def test_asp_is_of_the_whole_and_of_the_folds(folder, similarity):
    semantic = np.random.default_rng(2).random((10, 50))
    results = coco_benchmark(similarity, IMAGES, CAPTIONS, folder, semantic=semantic)
    whole = average_semantic_precision(similarity, semantic)
    folds = annotation_folder.folds()
    parts = [average_semantic_precision(similarity[f], semantic[f]) for f in folds]
    for side in ("i2t", "t2i"):
        assert results[f"coco_5k_{side}_asp"] == pytest.approx(100 * whole[side])
        mean = np.mean([part[side] for part in parts])
        assert results[f"coco_1k_{side}_asp"] == pytest.approx(100 * mean)
    # Rows and columns that the benchmark does not know are left out of both.
    more = np.pad(similarity, ((0, 1), (0, 2))), np.pad(semantic, ((0, 1), (0, 2)))
    ids = [*IMAGES, 999], [*CAPTIONS, 9998, 9999]
    found = coco_benchmark(more[0], *map(np.array, ids), folder, semantic=more[1])
    assert found["coco_1k_t2i_asp"] == pytest.approx(results["coco_1k_t2i_asp"])


def test_ids_in_any_order(folder, similarity):
    rng = np.random.default_rng(1)
    rows, columns = rng.permutation(10), rng.permutation(50)
    shuffled = table(np.exp(similarity[rows][:, columns]), folder, IMAGES[rows], CAPTIONS[columns])
    assert shuffled == pytest.approx(table(similarity, folder))


def replace(array, position, value):
    array = array.copy()
    array[position] = value
    return array


@pytest.mark.parametrize(
    ("images", "captions", "message"),
    [
        (replace(IMAGES, 3, 100), CAPTIONS, "`image_ids`.*more than once: 1 id.*100"),
        (replace(IMAGES, 3, 7), CAPTIONS, "`image_ids`.*of the 10 .* lacks 1 id, .* 103"),
        (IMAGES[:9], CAPTIONS, "`image_ids` must be 10 whole numbers"),
        (IMAGES, None, "`caption_ids` must be COCO's ids; received None.*zoo.data.regions"),
    ],
)
def test_wrong_ids_are_named(folder, similarity, images, captions, message):
    with pytest.raises(ValueError, match=message):
        table(similarity, folder, images, captions)
    if np.shape(images) == (10,) and np.shape(captions) in ((50,), ()):
        with pytest.raises(ValueError, match=message):
            check_coco_ids(images, captions, folder)


def test_what_the_benchmark_does_not_know_is_left_out(folder, similarity):
    """Nine of Karpathy's test images have a sixth sentence, which no benchmark counts."""
    images, captions = np.insert(IMAGES, [0, 4], [7, 8]), np.insert(CAPTIONS, [2, 30], [5, 6])
    larger = np.full((12, 52), similarity.max() + 1)
    own = np.ix_(np.isin(images, IMAGES), np.isin(captions, CAPTIONS))
    larger[own] = similarity
    found = table(larger, folder, images, captions)
    left_out = {"images_outside_benchmark": 2, "captions_outside_benchmark": 2}
    assert found == {**table(similarity, folder), **left_out}
    benchmark = check_coco_ids(images, captions, folder)
    assert (len(benchmark.rows), len(benchmark.columns)) == (10, 50)


def test_cxc_1k_counts_the_positives_of_each_fold(folder, similarity):
    """CxC adds the next image's first caption, which is in another fold for seven images."""
    results = table(similarity, folder)
    forward = matrix(folder, "cxc_image_to_caption")
    backward = matrix(folder, "cxc_caption_to_image")
    shares = []
    for rows, columns in annotation_folder.folds():
        scores = similarity[rows, columns]
        shares.append(
            [
                r_precision(scores, forward[rows, columns]),
                r_precision(scores.T, backward.T[rows, columns].T),
            ]
        )
    found = [results["cxc_1k_i2t_r_precision"], results["cxc_1k_t2i_r_precision"]]
    assert found == pytest.approx(list(100 * np.mean(shares, axis=0)))
    assert results["cxc_1k_i2t_queries"] == 10
    assert results["cxc_1k_rsum"] != results["coco_1k_rsum"]


def test_an_ensemble_is_the_mean_of_its_similarities(folder, similarity):
    rng = np.random.default_rng(2)
    others = [rng.normal(size=(10, 50)).astype("float32"), rng.normal(size=(10, 50))]
    ensemble = MeanSimilarity([similarity, *others])
    whole = (similarity + others[0] + others[1]) / 3
    np.testing.assert_allclose(ensemble.transposed().rows(3, 9), whole.T[3:9])
    assert table(ensemble, folder) == pytest.approx(table(whole, folder))
    with pytest.raises(ValueError, match=r"`similarities`.*\(10, 50\), \(10, 49\)"):
        MeanSimilarity([similarity, similarity[:, 1:]])
    with pytest.raises(ValueError, match=r"`similarities`.*received shapes \[\]"):
        MeanSimilarity([])


def test_instances_of_other_images_are_named(folder, similarity):
    annotation_folder.write_instances(folder / "instances.json", IMAGES[:-1])
    with pytest.raises(InputError, match=r"instances.json.*lacks 1 id, for instance 109"):
        table(similarity, folder)


def written(tmp_path, text, name="file.json"):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_ids(tmp_path):
    np.save(tmp_path / "ids.npy", np.array([5, 3], np.int32))
    assert read_ids(tmp_path / "ids.npy").tolist() == [5, 3]
    assert read_ids(written(tmp_path, "5\n3\n", "ids.txt")).tolist() == [5, 3]


def test_instance_labels_in_order_of_category_and_over_several_files(tmp_path):
    images = annotation_folder.IMAGES
    path = annotation_folder.write_instances(tmp_path / "a.json")
    labels = read_instance_labels(path, images[[9, 0, 3]])
    np.testing.assert_array_equal(labels, annotation_folder.instance_labels([9, 0, 3]))
    both = [
        annotation_folder.write_instances(tmp_path / "b.json", images[:4]),
        annotation_folder.write_instances(tmp_path / "c.json", images[4:]),
    ]
    np.testing.assert_array_equal(
        read_instance_labels(both, images), annotation_folder.instance_labels(range(10))
    )


def test_categories_must_agree(tmp_path):
    path = annotation_folder.write_instances(tmp_path / "a.json")
    other = json.loads(path.read_text())
    other["categories"].pop()
    second = written(tmp_path, json.dumps(other), "b.json")
    with pytest.raises(InputError, match=r"b.json: its categories differ"):
        read_instance_labels([path, second], [100])


def test_relevance_counts_what_the_gallery_lacks():
    relevance = relevance_of_matches({1: [10, 11, 99], 2: [98]}, [2, 1, 3], [11, 10])
    assert [sorted(relevance.positives(query)) for query in range(3)] == [[], [0, 1], []]
    assert relevance.unreachable.tolist() == [1, 1, 0]


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (read_matches, '{"a": [1]}', "file.json: entry 'a'"),
        (read_matches, '{\n"1": [2],\n', r"file.json:3: this is not valid JSON"),
        (lambda path: read_instance_labels(path, [1]), "[1]", "file.json: expected COCO"),
    ],
)
def test_wrong_files_are_named(tmp_path, read, text, message):
    with pytest.raises(InputError, match=message):
        read(written(tmp_path, text))


DIM = 16


@pytest.fixture(scope="module")
def published(shared_data):
    annotations, eccv = shared_data / "coco_annotations", shared_data / "eccv_caption"
    if not annotations.is_dir() or not eccv.is_dir():
        pytest.skip("the annotations of COCO or of ECCV Caption are not beside this checkout")
    entries = json.loads((annotations / "coco_karpathy_test_raw.json").read_text())
    images = np.array([int(entry["image"][-16:-4]) for entry in entries])
    assert len(images) == 5000
    counts = [len(entry["caption"]) for entry in entries]
    assert (sum(counts), counts.count(6)) == (25_009, 9)
    # The first five are those of the benchmark, in its order; a sixth has an id of its own.
    test_ids = iter(read_ids(eccv / "coco_test_ids.npy"))
    sixth = iter(range(10_000_000, 10_000_009))
    captions = [
        int(next(test_ids if number < 5 else sixth)) for count in counts for number in range(count)
    ]
    return images, np.array(captions), np.repeat(np.arange(5000), counts), eccv


def test_the_ids_are_checked_before_anything_is_trained(published):
    images, captions, _, folder = published
    benchmark = check_coco_ids(images, captions, folder)
    assert len(benchmark.rows) == 5000
    assert len(benchmark.columns) == 25_000
    assert [len(rows) for rows, _ in benchmark.folds()] == [1000] * 5
    assert benchmark.cxc[1].shape == (25_000, 5000)
    with pytest.raises(ValueError, match=r"`caption_ids`.*lacks 25000 ids"):
        check_coco_ids(images, np.arange(25_000) + 20_000_000, folder)
    missing = np.flatnonzero(captions == 770337)[0]
    with pytest.raises(ValueError, match="lacks 1 id, for instance 770337"):
        check_coco_ids(images, np.delete(captions, missing), folder)
    with pytest.raises(ValueError, match=r"`image_ids`.*lacks 1 id, for instance 391895"):
        check_coco_ids(images[1:], captions, folder)


def test_region_files_with_ids_reach_every_truth(published, shared_data, tmp_path):
    """SCAN's `testall`: real captions in its order, stand-in regions, ids of ECCV Caption."""
    images, captions, owner, folder = published
    text = (shared_data / "coco_annotations" / "karpathy_testall_caps.txt").read_text()
    (tmp_path / "testall_caps.txt").write_text(text)
    scene = np.random.default_rng(99).normal(size=(5000, 1, DIM))
    np.save(tmp_path / "testall_ims.npy", scene.astype("float32"))
    (tmp_path / "testall_ids.txt").write_text("".join(f"{image}\n" for image in images))
    ids = read_ids(folder / "coco_test_ids.npy")
    (tmp_path / "testall_caption_ids.txt").write_text("".join(f"{number}\n" for number in ids))
    records = regions.load(tmp_path, "testall", verbose=False).records
    benchmark = check_coco_ids(records.image_ids, records.caption_ids, folder)
    own = images[owner[np.isin(captions, ids)]]
    np.testing.assert_array_equal(benchmark.caption_images, own)


def test_the_released_list_of_caption_ids_repeats_twelve(shared_data, published, tmp_path):
    """DAA's `testall_caption_ids.txt` took captions of an image that read alike for one."""
    source = shared_data / "coco_annotations"
    text = (source / "karpathy_testall_caps.txt").read_text()
    (tmp_path / "testall_caps.txt").write_text(text)
    np.save(tmp_path / "testall_ims.npy", np.zeros((5000, 1, 2), "float32"))
    released = (source / "testall_caption_ids.txt").read_text()
    (tmp_path / "testall_caption_ids.txt").write_text(released)
    with pytest.raises(ValueError, match=r"testall_caption_ids.txt:\d+: id \d+ occurs twice"):
        regions.load(tmp_path, "testall", verbose=False)


@pytest.fixture
def scenes():
    rng = np.random.default_rng(0)
    labels = rng.random((15, 6)) < 0.25
    labels[[2, 9]] = False
    caption_image = rng.permutation(np.repeat(np.arange(15), 3))
    return rng.normal(size=(15, 45)), labels, caption_image


def test_pmrp_equals_r_precision_of_the_written_out_matrix(scenes):
    similarity, labels, caption_image = scenes
    results = plausible_match_r_precision(similarity, labels, caption_image)
    images = labels.any(axis=1)
    captions = images[caption_image]
    kept = similarity[images][:, captions]
    distance = (labels[:, None] != labels[caption_image][None]).sum(-1)[images][:, captions]
    matches = [distance <= threshold for threshold in (0, 1, 2)]
    assert results["i2t"] == pytest.approx(np.mean([r_precision(kept, m) for m in matches]))
    assert results["t2i"] == pytest.approx(np.mean([r_precision(kept.T, m.T) for m in matches]))
    assert results["images_left_out"] == (~images).sum() >= 2
    assert results["captions_left_out"] == (~captions).sum()


@pytest.mark.parametrize("block_bytes", [1, 4 * 4 * 45])
def test_pmrp_blocks_and_permutations(scenes, block_bytes, monkeypatch):
    similarity, labels, caption_image = scenes
    expected = pytest.approx(plausible_match_r_precision(similarity, labels, caption_image))
    monkeypatch.setattr(blocks, "BLOCK_BYTES", block_bytes)
    again = plausible_match_r_precision(similarity, labels.astype(int), caption_image)
    assert again == expected
    rng = np.random.default_rng(1)
    rows, columns = rng.permutation(15), rng.permutation(45)
    moved = np.argsort(rows)[caption_image[columns]]
    shuffled = similarity[rows][:, columns] ** 3
    assert plausible_match_r_precision(shuffled, labels[rows], moved) == expected
