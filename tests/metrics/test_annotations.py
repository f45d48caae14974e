"""Readers of the published annotation files: what they read, and how they say what is wrong."""

import json

import numpy as np
import pytest

import annotation_folder
from zoo.errors import InputError
from zoo.metrics import (
    read_ids,
    read_instance_labels,
    read_matches,
    relevance_of_matches,
)


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
