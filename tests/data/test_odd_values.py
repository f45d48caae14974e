"""Whatever stands where in a JSON file: an error that names the file, or an entry left out."""

import copy
import json

import pytest

from zoo.data import coco, flickr30k, own_pairs, visual_genome
from zoo.errors import InputError
from zoo.metrics import read_instance_labels

ODD = (None, True, -1, 1.5, float("nan"), 10**30, "", "x\0y", [], [None], {}, {"id": []})


def _coco():
    return {
        "images": [{"id": 1, "file_name": "a.jpg"}, {"id": 2, "file_name": "b.png"}],
        "annotations": [
            {"id": 10, "image_id": 1, "caption": "one"},
            {"id": 11, "image_id": 2, "caption": "two"},
        ],
    }


def _karpathy():
    return {
        "images": [
            {"filename": "a.jpg", "filepath": "x", "split": "train", "cocoid": 1,
             "sentences": [{"raw": "one", "sentid": 1}]},
            {"filename": "b.png", "split": "train", "sentences": [{"raw": "two"}]},
        ]
    }  # fmt: skip


def _instances():
    return {
        "images": [{"id": 1}],
        "categories": [{"id": 1}],
        "annotations": [{"id": 1, "image_id": 1, "category_id": 1}],
    }


def _by_name():
    entry = {"split": "train", "captions": ["one", "two"]}
    return {"a.jpg": entry, "b.png": copy.deepcopy(entry)}


def _visual_genome():
    box = {"x": 1, "y": 2, "width": 3, "height": 4}
    regions = [{"region_id": i, "image_id": 1, "phrase": "x", **box} for i in range(2)]
    return [{"regions": regions}, {"id": 2, "regions": [{**regions[0], "image_id": 2}]}]


LOADERS = {
    "coco": (_coco, lambda path, **kw: coco.load(path, **kw)),
    "karpathy": (_karpathy, lambda path, **kw: coco.load(path, split="train", **kw)),
    "flickr30k": (_karpathy, lambda path, **kw: flickr30k.load(path, **kw)),
    "by_name": (_by_name, lambda path, **kw: flickr30k.load(path, **kw)),
    "visual_genome": (_visual_genome, lambda path, **kw: visual_genome.load(path, **kw)),
    "instances": (_instances, lambda path, **kw: read_instance_labels(path, [1])),
}


def _places(value, path=()):
    """The path of every value in a JSON tree."""
    if path:
        yield path
    if isinstance(value, dict | list):
        for key, child in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _places(child, (*path, key))


def _changed(content, path, odd):
    content = copy.deepcopy(content)
    owner = content
    for key in path[:-1]:
        owner = owner[key]
    if odd is ...:
        del owner[path[-1]]
    else:
        owner[path[-1]] = odd
    return content


@pytest.mark.parametrize("name", LOADERS)
@pytest.mark.filterwarnings("error")
def test_every_odd_value_in_every_place(tmp_path, name):
    make, load = LOADERS[name]
    path = tmp_path / "content.json"
    messages = []
    for place in _places(make()):
        for odd in (..., *ODD):
            path.write_text(json.dumps(_changed(make(), place, odd)))
            for skip_bad in (False, True):
                try:
                    load(path, skip_bad=skip_bad, verbose=False)
                except InputError as error:
                    messages.append(str(error))
    assert len(messages) > 20
    for message in messages:
        assert "\n" not in message
        # Only when nothing is left is it the name of the split that is named.
        assert "content.json" in message or "left to use" in message


def test_json_lines_of_ones_own(photos):
    table = photos / "pairs.jsonl"
    for odd in ODD:
        for row in ({"image": odd, "caption": "x"}, {"image": "b.png", "caption": odd}, odd):
            good = json.dumps({"image": "a.jpg", "caption": "fine"})
            table.write_text(f"{good}\n{json.dumps(row)}\n")
            records = own_pairs.load(table, image_size=8, skip_bad=True, verbose=False).records
            assert records.captions[0] == "fine"


@pytest.mark.parametrize("text", ["[" * 100_000, "1" * 5000, "nul", "", "\x00", '{"a": "\ud800"'])
def test_no_json_at_all(tmp_path, text):
    path = tmp_path / "content.json"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    for load in (coco.load, visual_genome.load, flickr30k.load):
        with pytest.raises(InputError, match=r"content\.json"):
            load(path, verbose=False)
