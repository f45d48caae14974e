"""The COCO table on the published annotations, with stand-in features of the right ids."""

import csv
import json

import numpy as np
import pytest

import memory
from cxc import read_cxc
from zoo.data import regions
from zoo.metrics import (
    MeanSimilarity,
    PairwiseSimilarity,
    check_coco_ids,
    coco_benchmark,
    evaluate_retrieval,
    plausible_match_r_precision,
    read_ids,
    read_instance_labels,
)
from zoo.similarities import Cosine

DIM = 16
GIGABYTE = 2**30


@pytest.fixture(scope="module")
def published(shared_data):
    """Image ids, caption ids as Karpathy's file has them, 25,009 of them, and the folders."""
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


def features(published, seed=0, noise=4.0):
    """Random points, those of captions near their images': neither at chance nor perfect."""
    images, _, owner, _ = published
    rng = np.random.default_rng(seed)
    scene = np.random.default_rng(99).normal(size=(len(images), DIM))
    shown = scene + 0.1 * noise * rng.normal(size=scene.shape)
    told = scene[owner] + 0.1 * noise * rng.normal(size=(len(owner), DIM))
    return [{"mean": side.astype("float32")} for side in (shown, told)]


def pairs(published, seed=0):
    return PairwiseSimilarity(*features(published, seed), Cosine())


@pytest.fixture(scope="module")
def instances(published, tmp_path_factory):
    """COCO's instances of these images in its own format, of drawn classes: the real file is not
    beside this checkout."""
    images, *_ = published
    rng = np.random.default_rng(5)
    chosen = [rng.choice(80, 1 + image % 3, replace=False) for image in images]
    chosen[3] = []
    content = {
        "images": [{"id": int(image)} for image in images],
        "categories": [{"id": number + 1, "name": f"class {number}"} for number in range(80)],
        "annotations": [
            {"id": 100 * row + int(kind), "image_id": int(image), "category_id": int(kind) + 1}
            for row, (image, kinds) in enumerate(zip(images, chosen, strict=True))
            for kind in kinds
        ],
    }
    path = tmp_path_factory.mktemp("instances") / "instances_val2014.json"
    path.write_text(json.dumps(content))
    return path


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


def check_table(table):
    truths = ("coco_1k", "coco_5k", "cxc_1k", "cxc", "eccv")
    for key in (f"{truth}_{way}_" for truth in truths for way in ("i2t", "t2i")):
        for name in ("recall@1", "recall@5", "recall@10", "r_precision", "map@r"):
            assert 0 < table[key + name] < 100
    for key in (f"coco_{k}k_{way}_pmrp" for k in (1, 5) for way in ("i2t", "t2i")):
        assert 0 < table[key] < 100
    assert table["captions_outside_benchmark"] == 9
    assert table["images_outside_benchmark"] == 0
    assert table["pmrp_images_left_out"] == 1
    assert table["coco_1k_t2i_queries"] == table["coco_5k_t2i_queries"] == 25_000
    assert (table["eccv_i2t_queries"], table["eccv_t2i_queries"]) == (1261, 1332)
    assert table["eccv_captions_outside_gallery"] == 2
    assert table["cxc_t2i_queries"] == 24_972


@pytest.fixture
def in_six_gigabytes():
    """What the evaluation takes, and the one gigabyte of a process that does nothing else."""
    memory.forget_peak()
    before = memory.held()
    yield
    assert memory.held("VmHWM") - before < 5 * GIGABYTE


@pytest.fixture(scope="module")
def shuffled(published):
    """Two models' similarities, whose captions are in another order, and that order."""
    order = np.random.default_rng(1).permutation(len(published[1]))
    models = []
    for seed in (0, 7):
        shown, told = features(published, seed)
        models.append(PairwiseSimilarity(shown, {"mean": told["mean"][order]}, Cosine()))
    return models, order


# test_coco.py has it all on drawn annotations, and test_golden.py these annotations, but for PMRP.
@pytest.mark.very_slow
@pytest.mark.usefixtures("in_six_gigabytes")
def test_every_truth_of_an_ensemble(published, shuffled, instances):
    images, captions, owner, folder = published
    models, order = shuffled
    both = MeanSimilarity(models)
    table = coco_benchmark(both, images, captions[order], folder, instances=instances)
    check_table(table)
    # The 5K row by the plain metrics, without the nine captions.
    kept = np.flatnonzero(captions[order] < 10_000_000)
    relevant = owner[order][kept] == np.arange(5000)[:, None]
    one, ensemble = (
        evaluate_retrieval(each.take(np.arange(5000), kept), relevant)["rsum"]
        for each in (models[0], both)
    )
    assert ensemble == pytest.approx(table["coco_5k_rsum"])
    assert ensemble > one, "two seeds know more than one"


def test_rpc2_is_r_precision_by_the_ratings_of_cxc(published, shared_data):
    """By the ratings themselves and a written-out ranking, for some queries of 5K and of 1K."""
    images, captions, _, folder = published
    if not (shared_data / "cxc").is_dir():
        pytest.skip("the ratings of CxC are not beside this checkout")
    with (shared_data / "cxc" / "sits_test.csv").open() as lines:
        assert {"caption", "image", "agg_score"} <= set(next(csv.reader(lines)))
    matches, _ = read_cxc(shared_data / "cxc" / "sits_test.csv")
    benchmark = check_coco_ids(images, captions, folder)
    matrix = np.concatenate([pairs(published).rows(start, start + 500) for start in (0, 500)])
    first_fold, columns = next(benchmark.folds())
    for gallery in (benchmark.columns, benchmark.columns[columns]):
        for row in first_fold[:40]:
            ids = captions[gallery]
            wanted = set(matches[images[row]]) & set(ids.tolist())
            found = ids[np.argsort(-matrix[row, gallery], kind="stable")[: len(wanted)]]
            share = len(wanted & set(found.tolist())) / len(wanted)
            restricted = benchmark.cxc[0].restricted(np.array([row]), np.flatnonzero(
                np.isin(benchmark.columns, gallery)))  # fmt: skip
            ours = evaluate_retrieval(matrix[[row]][:, gallery], restricted)["i2t_r_precision"]
            assert ours == pytest.approx(100 * share)


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

    # The same ids out of Karpathy's JSON, rebuilt from the raw sentences.
    (tmp_path / "testall_caption_ids.txt").unlink()
    raw = json.loads((shared_data / "coco_annotations" / "coco_karpathy_test_raw.json").read_text())
    number = iter(captions)
    content = {
        "images": [
            {
                "filename": entry["image"].rpartition("/")[2],
                "filepath": "val2014",
                "split": "test",
                "cocoid": int(image),
                "sentences": [
                    {"raw": sentence, "sentid": int(next(number))} for sentence in entry["caption"]
                ],
            }
            for entry, image in zip(raw, images, strict=True)
        ]
    }
    (tmp_path / "dataset_coco.json").write_text(json.dumps(content))
    (tmp_path / "testall_ids.txt").write_text("".join(f"{row}\n" for row in range(5000)))
    again = regions.load(tmp_path, "testall", verbose=False).records
    np.testing.assert_array_equal(again.caption_ids, records.caption_ids)
    np.testing.assert_array_equal(again.image_ids, images)


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


def test_pmrp_on_real_instances(shared_data):
    """341 real images with the instances of COCO: PMRP written out, for stand-in similarities."""
    folder = shared_data / "coco_subset"
    instances = json.loads((folder / "instances.json").read_text())
    images = np.array([image["id"] for image in instances["images"]])
    told = json.loads((folder / "captions.json").read_text())["annotations"]
    place = {int(image): row for row, image in enumerate(images)}
    own = np.array([place[one["image_id"]] for one in told if one["image_id"] in place])
    labels = read_instance_labels(folder / "instances.json", images)
    kinds = sorted({one["id"] for one in instances["categories"]})
    expected = np.zeros((len(images), len(kinds)), bool)
    for one in instances["annotations"]:
        if one["image_id"] in place:
            expected[place[one["image_id"]], kinds.index(one["category_id"])] = True
    shown = expected[:, expected.any(0)]
    np.testing.assert_array_equal(labels[:, labels.any(0)].sum(1), shown.sum(1))
    similarity = np.random.default_rng(0).normal(size=(len(images), len(own)))
    found = plausible_match_r_precision(similarity, labels, own)
    labelled = expected.any(1)
    assert found["images_left_out"] == (~labelled).sum()
    kept = labelled[own]
    scores, far = similarity[labelled][:, kept], expected[labelled][:, None] != expected[own[kept]]
    differing = far.sum(2)
    by_limit = []
    for limit in (0, 1, 2):
        match = differing <= limit
        ranked = np.take_along_axis(match, np.argsort(-scores, axis=1), 1)
        number = match.sum(1)
        by_limit.append(np.mean([row[:n].mean() for row, n in zip(ranked, number, strict=True)]))
        assert found[f"i2t_at_{limit}"] == pytest.approx(by_limit[-1])
    assert found["i2t"] == pytest.approx(np.mean(by_limit))
