import filecmp
import json
import re

import numpy as np
import pytest

from halo_search.errors import InputError
from zoo.data import coco, toy_scenes
from zoo.data.toy.scenes.truth import MAX_BIRDS
from zoo.metrics import read_instance_labels


def _files(root):
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


@pytest.fixture(scope="module")
def test_records(scenes_root):
    annotations = scenes_root / "coco" / "annotations"
    files = [annotations / f"captions_{part}.json" for part in ("train2014", "val2014")]
    ids = annotations / "coco_test_ids.npy"
    return coco.load(files, scenes_root / "coco", ids=ids, image_size=48, verbose=False).records


def test_same_seed_gives_the_same_bytes_and_another_seed_others(
    scenes_root, scenes_sizes, tmp_path
):
    again = toy_scenes.generate(tmp_path / "again", seed=3, **scenes_sizes)
    _, differing, errors = filecmp.cmpfiles(scenes_root, again, _files(again), shallow=False)
    assert _files(again) == _files(scenes_root)
    assert (differing, errors) == ([], [])
    other = toy_scenes.generate(tmp_path / "other", seed=4, **scenes_sizes)
    captions = "coco/annotations/captions_train2014.json"
    assert not filecmp.cmp(scenes_root / captions, other / captions, shallow=False)
    with pytest.raises(InputError, match=r"expected nothing or the toy scenes of .*'seed': 9"):
        toy_scenes.generate(scenes_root, seed=9, **scenes_sizes)


def test_instances_are_the_birds(scenes_root, test_records):
    files = list((scenes_root / "coco" / "annotations").glob("instances_*.json"))
    labels = read_instance_labels(files, test_records.image_ids)
    truth = toy_scenes.read_truth(scenes_root)
    boxes = {}
    for file in files:
        for annotation in json.loads(file.read_text())["annotations"]:
            boxes.setdefault(annotation["image_id"], []).append(annotation["bbox"])
    for row, number in zip(labels, test_records.image_ids, strict=True):
        birds = truth[number].birds
        assert set(np.flatnonzero(row)) == {bird.species for bird in birds}
        assert boxes[number] == [list(bird.box) for bird in birds]
        left = [bird.box[0] + bird.box[2] / 2 for bird in birds]
        assert left == sorted(left)
        for x, y, width, height in boxes[number]:
            assert 0 <= x < x + width <= 48
            assert 0 <= y < y + height <= 48


def test_captions_are_true_of_their_scene_and_their_numbers_are_exact(scenes_root):
    path = scenes_root / "coco" / "annotations" / "dataset_coco.json"
    records = coco.load(path, split="train", verbose=False).records
    matrix = toy_scenes.truth_matrix(scenes_root, records)
    assert matrix[records.caption_image, np.arange(records.num_captions)].all()
    truth = toy_scenes.read_truth(scenes_root)
    counts = np.array([len(truth[number].birds) for number in records.image_ids])
    numbers = {"single": 1, "two": 2, "three": 3}
    found = 0
    for text, fits in zip(records.captions, matrix.T, strict=True):
        said = re.search(r"\b(single|two|three) birds?\b", text)
        if said and "," not in text:  # nothing but a number
            found += 1
            np.testing.assert_array_equal(fits, counts == numbers[said[1]])
        # One bird and one colour: an oracle from the words alone.
        plain = re.fullmatch(r"(?:there is |the picture shows )?a bird with a (\w+) crown\.", text)
        if plain:
            crowned = [
                any(bird.attributes["crown"] == plain[1].replace("gray", "grey") for bird in birds)
                for birds in (truth[number].birds for number in records.image_ids)
            ]
            np.testing.assert_array_equal(fits, crowned)
    assert found >= 5
    assert matrix.sum(0).min() == 1
    assert matrix.sum(0).max() > 5


def test_relations_and_different_mentions_are_told_apart():
    from zoo.data.toy.birds.attributes import NAMES, codes, sample_species
    from zoo.data.toy.scenes.truth import Statement, true_of

    first = sample_species(np.random.default_rng(0), 1)[0] | {"crown": "red"}
    second = first | {"crown": "blue"}
    table = np.full((3, MAX_BIRDS, len(NAMES)), -1)
    for row, birds in enumerate([(first, second), (second, first), (first,)]):
        for column, bird in enumerate(birds):
            table[row, column] = codes(bird)
    counts = np.array([2, 2, 1])
    red, blue = {"crown": "red"}, {"crown": "blue"}
    for statement, expected in (
        (Statement((red,)), [True, True, True]),
        (Statement((red,), 1), [False, False, True]),
        (Statement((red, blue)), [True, True, False]),
        (Statement((blue, red)), [True, True, False]),
        (Statement((red, blue), None, True), [True, False, False]),
        (Statement((red, red)), [False, False, False]),
        (Statement((red, {})), [True, True, False]),
        (Statement((), 2), [True, True, False]),
    ):
        np.testing.assert_array_equal(true_of(statement, table, counts), expected)
