import gzip
import json

import pytest

from zoo.data import flickr30k
from zoo.errors import InputError


def _load(*args, **options):
    return flickr30k.load(*args, image_size=8, verbose=False, **options).records


def test_two_formats_agree(photos, tmp_path):
    by_name = {
        "a.jpg": {"split": "train", "captions": ["first", "second"]},
        "b.png": {"split": "train", "captions": ["third"]},
        "c.jpg": {"split": "test", "captions": ["fourth"]},
    }
    karpathy = {
        "images": [
            {"filename": name, "split": entry["split"], "imgid": number,
             "sentences": [{"raw": text} for text in entry["captions"]]}
            for number, (name, entry) in enumerate(by_name.items())
        ]
    }  # fmt: skip
    (tmp_path / "dataset_flickr30k.json").write_text(json.dumps(karpathy))
    (tmp_path / "captions.json.gz").write_bytes(gzip.compress(json.dumps(by_name).encode()))
    for name in ("dataset_flickr30k.json", "captions.json.gz"):
        records = _load(tmp_path / name, photos)
        assert list(records.captions) == ["first", "second", "third"]
        assert list(records.image_ids) == ["a.jpg", "b.png"]
        assert list(records.caption_image) == [0, 0, 1]


def test_bad_files(tmp_path):
    cut = tmp_path / "captions.json.gz"
    cut.write_bytes(gzip.compress(b"{}" * 500)[:-12])
    with pytest.raises(InputError, match=r"captions.json.gz: "):
        _load(cut)
    whole = tmp_path / "captions.json"
    for content, why in (
        ("{}", "or an object by file name"),
        ('{"a.jpg": {"split": "train"}}', "a.jpg: expected 'split' and a list"),
    ):
        whole.write_text(content)
        with pytest.raises(InputError, match=why):
            _load(whole)


@pytest.mark.parametrize(("split", "images"), [("train", 29_000), ("val", 1_014), ("test", 1_000)])
def test_the_real_captions(shared_data, split, images):
    path = shared_data / "flickr30k_text" / "flickr30k_karpathy_captions.json.gz"
    records = _load(path, split=split)
    assert (records.num_images, records.num_captions) == (images, 5 * images)
