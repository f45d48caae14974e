"""Figures of DAA, PCME and the crops: curves, precision, pairs, mixing and erasing, triplets."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from halo_search.errors import InputError
from studies import crop_triplets, set_algebra
from studies.crop_figures import crop_figures
from studies.daa_figures import asp_curves, choose, positives_plot, precision_at_plot
from zoo.data import toy_scenes, visual_genome
from zoo.data.records import Records
from zoo.metrics.blocks import as_similarity


def history(start):
    values = np.array([np.nan, start, np.nan, start + 4.0])
    return {"loss": np.ones(4), "val_i2t_asp": values, "val_t2i_asp": values + 1}


def test_a_curve_has_the_epochs_that_were_measured():
    figure = asp_curves({"base": history(50.0), "other": history(60.0), "none": {"loss": [1]}})
    first, second = figure.axes
    lines = {line.get_label(): line.get_data() for line in first.lines}
    assert set(lines) == {"base", "other"}
    np.testing.assert_array_equal(lines["base"], [[2, 4], [50.0, 54.0]])
    np.testing.assert_array_equal(second.lines[0].get_ydata(), [51.0, 55.0])
    assert first.get_title(loc="left") == "image → text"


def test_semantic_precision_has_an_axis_for_each_direction():
    found = {
        "DAA": {"i2t": [0.5, 0.6], "t2i": [0.3, 0.2]},
        "base": {"i2t": [0.4, 0.4], "t2i": [0.1, 0.1]},
    }
    depths = {"i2t": [10, 100], "t2i": [5, 20]}
    figure = precision_at_plot(depths, found)
    for axis, side in zip(figure.axes, ("i2t", "t2i"), strict=True):
        for line, system in zip(axis.lines, found, strict=True):
            np.testing.assert_allclose(line.get_xdata(), depths[side])
            np.testing.assert_allclose(line.get_ydata(), 100 * np.array(found[system][side]))


def test_pairs_above_a_threshold_are_drawn_beside_what_is_annotated():
    (axis,) = positives_plot([0.1, 0.5, 0.9], [900, 40, 0], 200).axes
    counts, annotated = axis.lines
    np.testing.assert_allclose(counts.get_ydata(), [900, 40, 0.5])  # none: the axis' foot
    assert set(annotated.get_ydata()) == {200}


def test_the_caption_is_the_one_whose_runs_differ_most():
    """Three captions over five images; both runs have the annotated image first for 1 and 2."""
    meaning = np.array(
        [[1.0, 0.1, 0.0], [0.9, 1.0, 0.2], [0.0, 0.8, 1.0], [0.8, 0.1, 0.3], [0.1, 0.0, 0.2]]
    )
    plain = np.array(
        [[0.1, 0.2, 0.1], [0.9, 0.9, 0.2], [0.2, 0.3, 0.9], [0.3, 0.1, 0.8], [0.8, 0.8, 0.1]]
    )
    better = plain.copy()
    better[2, 1], better[4, 1] = 0.8, 0.3  # caption 1: the image that means the same comes second
    better[0, 0] = 1.0  # caption 0 differs more, but only one run has its image first
    runs = {"base": as_similarity(plain), "daa": as_similarity(better)}
    caption, found, values = choose(
        runs, as_similarity(meaning), lambda caption: [caption], shown=2
    )
    assert caption == 1
    assert {name: images.tolist() for name, images in found.items()} == {
        "base": [1, 4],
        "daa": [1, 2],
    }
    np.testing.assert_array_equal(values["daa"], meaning[[1, 2], 1])


def rows():
    """Two thresholds with triplets and one without."""
    uncertainty = {"crops": {"a": -1.0, "c": 2.0}, "captions": {"a": 5.0, "c": 3.0}}
    found = [{"largest_area": area, "triplets": n} for area, n in ((0.1, 40), (0.2, 0), (0.3, 80))]
    for row, caption_c in ((found[0], 0.8), (found[2], 0.9)):
        row["selection"] = {"crop_a": 0.5, "crop_c": 0.6, "caption_a": 0.7, "caption_c": caption_c}
        row["mean_uncertainty"] = uncertainty
    return found


def test_figures_of_the_experiment_say_what_the_rows_do():
    figures = crop_figures(rows())
    assert list(figures) == ["selection_accuracy", "mean_uncertainty"]
    (axis,) = figures["selection_accuracy"].axes
    drawn = {c.get_label(): c[0].get_ydata() for c in axis.containers}
    expected = {"crop A": 50, "crop C": 60, "caption A": 70, "caption C": [80, 90]}
    assert set(drawn) == set(expected)
    for query, value in expected.items():
        np.testing.assert_allclose(drawn[query], value)
    labels = [label.get_text() for label in axis.get_xticklabels()]
    assert labels == ["≤ 10 %\nn = 40", "≤ 30 %\nn = 80"]
    crops, captions = figures["mean_uncertainty"].axes
    assert [container[0].get_ydata()[0] for container in crops.containers] == [-1, 2]
    assert [container[0].get_ydata()[0] for container in captions.containers] == [5, 3]
    points = crop_figures([{k: v for k, v in row.items() if "unc" not in k} for row in rows()])
    assert list(points) == ["selection_accuracy"]
    with pytest.raises(ValueError, match="triplets at some area"):
        crop_figures(rows()[1:2])


def records(*pictures):
    """Pictures of (x, y, width, height) boxes."""
    boxes = [box for picture in pictures for box in picture]
    owner = [index for index, picture in enumerate(pictures) for _ in picture]
    return Records(
        name="boxes",
        image_paths=[f"{i}.jpg" for i in range(len(pictures))],
        captions=[f"thing {i}." for i in range(len(boxes))],
        caption_image=owner,
        image_labels=np.arange(len(pictures)),
        image_ids=np.arange(len(pictures)),
        caption_boxes=boxes,
    )


def iou_of_pixels(one, other, side=100):
    """By counting."""

    def inside(box):
        pixels = np.zeros((side, side), bool)
        x, y, width, height = (int(value) for value in box)
        pixels[y : y + height, x : x + width] = True
        return pixels

    one, other = inside(one), inside(other)
    return (one & other).sum() / (one | other).sum()


def test_the_rule_of_the_paper_by_explicit_loops():
    rng = np.random.default_rng(0)
    pictures = []
    for _ in range(20):
        corner = rng.integers(0, 60, (14, 2))
        pictures.append(np.concatenate([corner, rng.integers(3, 40, (14, 2))], axis=1).tolist())
    data = records(*pictures)
    found = crop_triplets.crop_triplets(data, [(100, 100)] * 20, largest=0.09, num_regions=6)
    assert [triplet.image for triplet in found] == list(range(20))
    for triplet, boxes in zip(found, pictures, strict=True):
        small = [i for i, (_, _, w, h) in enumerate(boxes) if w * h <= 900]
        ranked = sorted(small, key=lambda i: -boxes[i][2] * boxes[i][3])[:6]
        a = ranked[0]
        b = min(ranked[1:], key=lambda i: iou_of_pixels(boxes[a], boxes[i]))
        first = 14 * triplet.image
        assert (triplet.first - first, triplet.second - first) == (a, b)
        (ax, ay, aw, ah), (bx, by, bw, bh) = boxes[a], boxes[b]
        left, top = min(ax, bx), min(ay, by)
        union = (left, top, max(ax + aw, bx + bw) - left, max(ay + ah, by + bh) - top)
        np.testing.assert_allclose(triplet.boxes, [boxes[a], boxes[b], union])


def test_boxes_are_cut_to_the_picture_and_what_is_outside_is_no_region():
    data = records(
        [(-10, 0, 20, 10), (50, 90, 30, 30), (200, 200, 5, 5)],  # the last is outside
        [(0, 0, 10, 10)],  # one region makes no triplet
        [(0, 0, 90, 90), (0, 0, 5, 5)],  # one is too large
    )
    (triplet,) = crop_triplets.crop_triplets(data, [(100, 100)] * 3, largest=0.5)
    expected = [(50, 90, 30, 10), (0, 0, 10, 10), (0, 0, 80, 100)]
    np.testing.assert_allclose(triplet.boxes, expected)
    assert (triplet.first, triplet.second) == (1, 0)


def test_toy_scenes_as_visual_genome(tmp_path):
    sizes = {"num_images": 50, "num_species": 6, "image_size": 48, "region_dim": 16}
    scenes_root = toy_scenes.generate(tmp_path / "scenes", seed=3, **sizes)
    folder = crop_triplets.describe_birds(scenes_root, tmp_path / "phrases", "train")
    loaded = visual_genome.load(
        folder / "region_descriptions.json", folder, image_size=48, verbose=False
    ).records
    truths = toy_scenes.read_truth(scenes_root)
    counts = np.bincount(loaded.caption_image)
    for image, number in enumerate(loaded.image_ids):
        birds = [bird for bird in truths[number].birds if min(bird.box[2:]) > 0]
        assert len(birds) >= 2
        assert counts[image] == 3 * len(birds)
        boxes = loaded.caption_boxes[loaded.caption_image == image]
        for index, box in enumerate(boxes):
            bird = birds[index % len(birds)]
            np.testing.assert_allclose(box, bird.box, atol=0.3 * max(bird.box[2:]))
    triplets = crop_triplets.crop_triplets(loaded, [(48, 48)] * loaded.num_images)
    assert len(triplets) == loaded.num_images
    again = json.loads((folder / "toy_phrases.json").read_text())
    assert again["split"] == "train"
    crop_triplets.describe_birds(scenes_root, folder, "train")  # is there already
    with pytest.raises(InputError, match="phrases"):
        crop_triplets.describe_birds(scenes_root, folder, "train", seed=1)


def gaussians(means, log_variances):
    """Means `(pairs, 2)`, and one log variance for both dimensions of each."""
    return {
        "mean": np.array(means, float),
        "log_variance": np.repeat(np.array(log_variances, float)[:, None], 2, axis=1),
    }


class Plane:
    """Of two dimensions: the plane is the space."""

    def project(self, mean, log_variance):
        return mean, np.array([np.diag(np.exp(each)) for each in log_variance])


@pytest.fixture(scope="module")
def measured():
    """Pairs far from each other: the mix of the first is its originals, that of the second lies
    elsewhere, and that of the third is wide."""
    places = [[0, 0], [100, 0], [0, 100]]
    apart = [[0, 0], [100, 50], [0, 100]]
    embeddings = {
        "first": gaussians(places, [0.0, -2.0, 0.0]),
        "second": gaussians(places, [0.0, 2.0, 0.0]),
        "mix": gaussians(apart, [0.0, -1.0, 4.0]),
        "erased": gaussians(places, [4.0, -2.0, 6.0]),
    }
    algebra = set_algebra.Algebra(np.arange(3), np.arange(3), embeddings, {})
    return set_algebra.measure(algebra, Plane())


def test_a_mix_that_is_its_originals_lies_in_them(measured):
    np.testing.assert_allclose(measured["mix_area"][:2], [100, 0], atol=1)
    assert measured["covered"][0] == pytest.approx(100, abs=1)
    assert measured["mix_area"][2] < 10  # e⁴ as wide an area


def test_the_control_is_of_another_pair(measured):
    np.testing.assert_allclose(measured["mix_area_control"], 0, atol=1)


def test_the_original_lies_in_the_erased_one_and_not_the_other_way_around(measured):
    np.testing.assert_allclose(measured["original_in_erased"], 100, atol=1)
    np.testing.assert_allclose(measured["erased_in_original"], [2, 100, 0], atol=2)


def test_widths_are_compared_with_both_originals(measured):
    assert measured["wider_mix"].tolist() == [False, False, True]
    assert measured["wider_erased"].tolist() == [True, False, True]


def test_pairs_have_different_labels_and_pictures_of_their_own():
    labels = np.array([0, 0, 1, 1, 2, 0])
    pictures = (10 * np.arange(6, dtype="uint8")[:, None, None, None]) + np.zeros(
        (6, 8, 12, 3), "uint8"
    )
    shown = []

    def of_arrays(arrays):
        shown.append(arrays)
        return gaussians(np.zeros((len(arrays), 2)), np.zeros(len(arrays)))

    run = SimpleNamespace(
        seed=0,
        items=6,
        picture=lambda index: pictures[index],
        encoded=SimpleNamespace(
            records=SimpleNamespace(image_labels=labels),
            images=gaussians(np.arange(12).reshape(6, 2), np.zeros(6)),
        ),
        model=SimpleNamespace(tower=lambda side: SimpleNamespace(of_arrays=of_arrays)),
    )
    algebra = set_algebra.make(run)
    assert (labels[algebra.first] != labels[algebra.second]).all()
    assert len(algebra.first) < 3, "one pair of this seed has one label"
    mean = (pictures[algebra.first].astype(float) + pictures[algebra.second]) / 2
    np.testing.assert_array_equal(algebra.pictures["mix"], mean)
    np.testing.assert_array_equal(shown[0], algebra.pictures["mix"])
    lost = (algebra.pictures["erased"] != pictures[algebra.first]).any(-1).mean(axis=(1, 2))
    assert (lost[algebra.first > 0] > 0.1).all()


def test_areas_of_circles_by_geometry():
    disc = set_algebra.unit_disc(np.random.default_rng(0), 40_000)
    assert np.mean(np.linalg.norm(disc, axis=1) < 0.5) == pytest.approx(0.25, abs=0.01)
    one = np.eye(2)
    origin = np.zeros(2)
    # A circle of half the radius inside, then the reverse: a quarter of the area.
    assert set_algebra.area_inside(origin, one / 4, [(origin, one)], disc) == 1.0
    share = set_algebra.area_inside(origin, one, [(origin, one / 4)], disc)
    assert share == pytest.approx(0.25, abs=0.01)
    # Two unit circles whose centres are one radius apart share 2π/3 − √3/2 of π.
    radius = np.sqrt(-2 * np.log(0.05))
    apart = (np.array([radius, 0.0]), one)
    lens = (2 * np.pi / 3 - np.sqrt(3) / 2) / np.pi
    assert set_algebra.area_inside(origin, one, [apart], disc) == pytest.approx(lens, abs=0.01)
    first = (origin, one)
    assert set_algebra.shared_area_inside(first, apart, first, disc) == 1.0
    assert set_algebra.shared_area_inside(first, apart, (origin, 1e-4 * one), disc) < 0.05
    far = (np.array([100.0, 0.0]), one)
    assert np.isnan(set_algebra.shared_area_inside(first, far, first, disc))
