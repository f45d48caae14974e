"""Readers of the published annotation files: what they read, and how they say what is wrong."""

import json

import numpy as np
import pytest

import annotation_folder
from cxc import read_cxc
from zoo.errors import InputError
from zoo.metrics import (
    read_ids,
    read_instance_labels,
    read_matches,
    relevance_of_matches,
)

HEADER = "caption,image,agg_score,sampling_method\n"


def written(tmp_path, text, name="file.json"):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_matches(tmp_path):
    assert read_matches(written(tmp_path, '{"3": [5, 6], "4": []}')) == {3: [5, 6], 4: []}


def test_ids(tmp_path):
    np.save(tmp_path / "ids.npy", np.array([5, 3], np.int32))
    assert read_ids(tmp_path / "ids.npy").tolist() == [5, 3]
    assert read_ids(written(tmp_path, "5\n3\n", "ids.txt")).tolist() == [5, 3]


def test_cxc(tmp_path):
    rows = (
        "COCO_val2014:sentid:7,COCO_val2014_000000000042.jpg,3.0,c2i_original\n"
        "COCO_val2014:sentid:8,COCO_val2014_000000000042.jpg,2.99,c2i_intrasim\n"
        "COCO_val2014:sentid:7,COCO_val2014_000000000043.jpg,4.5,c2i_intrasim\n"
    )
    path = written(tmp_path, HEADER + rows, "sits.csv")
    assert read_cxc(path) == ({42: [7], 43: [7]}, {7: [42, 43]})
    assert read_cxc(path, minimum=2.5)[1] == {7: [42, 43], 8: [42]}


def test_cxc_ratings_give_the_published_positives(shared_data):
    if not (shared_data / "cxc").is_dir() or not (shared_data / "eccv_caption").is_dir():
        pytest.skip("the annotations of CxC or ECCV Caption are not beside this checkout")
    for ours, name in zip(
        read_cxc(shared_data / "cxc" / "sits_test.csv"),
        ("cxc_image_to_caption.json", "cxc_caption_to_image.json"),
        strict=True,
    ):
        published = read_matches(shared_data / "eccv_caption" / name)
        assert {k: sorted(v) for k, v in ours.items()} == {
            k: sorted(v) for k, v in published.items()
        }


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


def test_instance_labels_print_nothing(tmp_path, capsys):
    read_instance_labels(annotation_folder.write_instances(tmp_path / "a.json"), [100])
    assert capsys.readouterr().out == ""


def test_categories_must_agree(tmp_path):
    path = annotation_folder.write_instances(tmp_path / "a.json")
    other = json.loads(path.read_text())
    other["categories"].pop()
    second = written(tmp_path, json.dumps(other), "b.json")
    with pytest.raises(InputError, match=r"b.json: its categories differ"):
        read_instance_labels([path, second], [100])


def test_an_annotation_of_no_category_is_named(tmp_path):
    content = json.loads(annotation_folder.write_instances(tmp_path / "a.json").read_text())
    content["annotations"].append({"id": 999, "image_id": 100, "category_id": 2})
    path = written(tmp_path, json.dumps(content), "b.json")
    with pytest.raises(InputError, match=r"b.json: .*annotation 999 has the unknown category 2"):
        read_instance_labels(path, [100])


def test_relevance_counts_what_the_gallery_lacks():
    relevance = relevance_of_matches({1: [10, 11, 99], 2: [98]}, [2, 1, 3], [11, 10])
    assert [sorted(relevance.positives(query)) for query in range(3)] == [[], [0, 1], []]
    assert relevance.unreachable.tolist() == [1, 1, 0]


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (read_matches, "[1]", "file.json: expected an object"),
        (read_matches, '{"a": [1]}', "file.json: entry 'a'"),
        (read_matches, '{"1": 2}', "file.json: entry '1'"),
        (read_matches, '{\n"1": [2],\n', r"file.json:3: this is not valid JSON"),
        (read_ids, "1\ntwo\n", "file.json:2: expected one id a line; received 'two'"),
        (lambda path: read_instance_labels(path, [1]), "[1]", "file.json: expected COCO"),
        (lambda path: read_instance_labels(path, [1]), "{", "file.json: expected COCO"),
        (lambda path: read_instance_labels(path, [1]), "{}", "file.json: expected COCO"),
    ],
)
def test_wrong_files_are_named(tmp_path, read, text, message):
    with pytest.raises(InputError, match=message):
        read(written(tmp_path, text))


@pytest.mark.parametrize("read", [read_matches, read_ids])
def test_missing_files_are_named(tmp_path, read):
    with pytest.raises(InputError, match=r"gone.json: there is no such file"):
        read(tmp_path / "gone.json")


def test_arrays_of_other_things_are_named(tmp_path):
    np.save(tmp_path / "ids.npy", np.zeros((2, 2)))
    with pytest.raises(InputError, match=r"ids.npy: expected whole numbers"):
        read_ids(tmp_path / "ids.npy")
