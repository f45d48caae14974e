"""TFRecord shards: everything comes back, workers share it out, damage is noticed."""

import json
import re

import pytest

from zoo.data import coco, regions, shards
from zoo.errors import InputError


@pytest.fixture(scope="module")
def records(scenes_root):
    path = scenes_root / "coco" / "annotations" / "dataset_coco.json"
    return coco.load(path, scenes_root / "coco", split="test", image_size=16, verbose=False)


@pytest.fixture
def folder(records, tmp_path):
    shards.write(records.records, tmp_path / "shards", num_shards=3, verbose=False)
    return tmp_path / "shards"


def _read(folder, **options):
    dataset = shards.read(folder, image_size=16, verbose=False, **options)
    return list(dataset.as_numpy_iterator())


def _key(pair):
    return pair["captions"], int(pair["image_labels"]), pair["images"].tobytes()


def test_every_pair_comes_back(records, folder):
    expected = list(records.dataset.as_numpy_iterator())
    found = _read(folder)
    assert len(found) == records.records.num_captions == len(shards.read(folder, verbose=False))
    assert {key: value.dtype for key, value in found[0].items() if key != "captions"} == {
        key: value.dtype for key, value in expected[0].items() if key != "captions"
    }
    assert sorted(map(_key, found)) == sorted(map(_key, expected))
    assert all(pair["image_labels"] == pair["caption_labels"] for pair in found)


def test_two_workers_are_disjoint_and_complete(records, folder):
    parts = [[_key(pair) for pair in _read(folder, worker=(index, 2))] for index in range(2)]
    assert all(parts)
    images = [{label for _, label, _ in part} for part in parts]
    assert not images[0] & images[1]
    assert sorted(parts[0] + parts[1]) == sorted(map(_key, records.dataset.as_numpy_iterator()))
    with pytest.raises(InputError, match="3 shards, fewer than the 4 workers"):
        shards.read(folder, worker=(0, 4))
    with pytest.raises(ValueError, match="`worker` must be"):
        shards.read(folder, worker=(2, 2))


def test_the_seed_decides_the_order(folder):
    orders = [[pair["captions"] for pair in _read(folder, seed=seed)] for seed in (1, 1, 2, None)]
    assert orders[0] == orders[1]
    assert orders[0] != orders[2]
    assert orders[3] != orders[0]
    assert sorted(orders[0]) == sorted(orders[2]) == sorted(orders[3])
    dataset = shards.read(folder, image_size=16, seed=1, verbose=False)
    epochs = [[pair["captions"] for pair in dataset.as_numpy_iterator()] for _ in range(2)]
    assert epochs[0] != epochs[1]


def test_the_same_records_give_the_same_bytes_and_bars_are_shown(records, folder, tmp_path, capsys):
    shards.write(records.records, tmp_path / "again", num_shards=3)
    assert "10/10" in capsys.readouterr().out
    names = sorted(path.name for path in folder.iterdir())
    assert names == [f"0000{i}-of-00003.tfrecord" for i in range(3)] + ["shards.json"]
    for name in names:
        assert (folder / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
    index = json.loads((folder / "shards.json").read_text())
    assert [shard["images"] for shard in index["shards"]] == [4, 3, 3]
    assert sum(shard["captions"] for shard in index["shards"]) == 50
    shards.read(folder)
    assert "3/3" in capsys.readouterr().out


def test_damage_is_noticed(folder):
    path = folder / "00001-of-00003.tfrecord"
    whole = path.read_bytes()
    changed = bytearray(whole)
    changed[len(whole) // 2] ^= 1
    for content in (bytes(changed), whole[:-1], b""):
        path.write_bytes(content)
        with pytest.raises(InputError, match=re.escape(f"{path}: not as it was written")):
            _read(folder)
        _read(folder, worker=(0, 2))  # who does not read it is not concerned
    path.unlink()
    with pytest.raises(InputError, match=re.escape(f"{path}: no such shard")):
        _read(folder)


def test_bad_indexes(folder, tmp_path):
    index = folder / "shards.json"
    whole = index.read_text()
    for text in (whole[:-40], "[]", "{}", '{"shards": [{}]}'):
        index.write_text(text)
        with pytest.raises(InputError, match=re.escape(f"{index}: not a whole index")):
            _read(folder)
    index.write_text(whole.replace("00001-of", "../00001-of"))
    with pytest.raises(InputError, match="leads out of the folder"):
        _read(folder)
    with pytest.raises(InputError, match=r"nowhere.*shards\.json"):
        _read(tmp_path / "nowhere")


def test_writing_checks_what_it_gets(records, scenes_root, tmp_path):
    with pytest.raises(ValueError, match=r"`num_shards` must be from 1 to .* 10; received 11"):
        shards.write(records.records, tmp_path, num_shards=11)
    features = regions.load(scenes_root / "regions", "dev", verbose=False).records
    with pytest.raises(InputError, match=r"dev_ims\.npy#0"):
        shards.write(features, tmp_path / "x", num_shards=1, verbose=False)
    assert not (tmp_path / "x" / "shards.json").exists()
