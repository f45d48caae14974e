import filecmp

import numpy as np
import pytest

from halo_search.errors import InputError
from zoo.data import cub, toy_birds
from zoo.data.toy.birds import attributes

SIZES = {"num_classes": 12, "images_per_class": 5, "image_size": 32}


def _files(root):
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def test_same_seed_gives_the_same_bytes_and_another_seed_others(toy_root, tmp_path):
    again = toy_birds.generate(tmp_path / "again", seed=3, **SIZES)
    other = toy_birds.generate(tmp_path / "other", seed=4, **SIZES)
    assert _files(again) == _files(toy_root)
    _, differing, errors = filecmp.cmpfiles(toy_root, again, _files(again), shallow=False)
    assert (differing, errors) == ([], [])
    first = "images/" + (toy_root / "images.txt").read_text().split()[1]
    assert first not in _files(other) or not filecmp.cmp(toy_root / first, other / first, False)


def test_the_test_classes_alone_are_the_same_files(toy_root, tmp_path):
    alone = toy_birds.generate(tmp_path / "alone", seed=3, part="test", **SIZES)
    whole = cub.load(toy_root, split="test", verbose=False).records
    part = cub.load(alone, split="test", verbose=False).records
    assert part.num_images == 15
    assert part.image_ids.tolist() == whole.image_ids.tolist()
    assert part.captions.tolist() == whole.captions.tolist()
    for ours, theirs in zip(part.image_paths, whole.image_paths, strict=True):
        assert filecmp.cmp(ours, theirs, shallow=False)
    fits = toy_birds.true_matches(alone, part)
    assert fits.tolist() == toy_birds.true_matches(toy_root, whole).tolist()


def test_an_oracle_knows_what_can_be_seen_and_said(toy_root):
    records = cub.load(toy_root, split="trainval", verbose=False).records
    ranking, truth = toy_birds.oracle(records), toy_birds.read_truth(toy_root, records)
    assert ranking.shape == (records.num_images, len(records.captions))
    assert len(np.unique(ranking[0])) > 0.95 * ranking.shape[1]  # hardly a tie
    for caption in range(0, len(records.captions), 37):
        named = truth.captions[caption] >= 0
        same = truth.images[:, named] == truth.captions[caption, named]
        contradicted = (~same & truth.visible[:, named]).any(1)
        shown = (same & truth.visible[:, named]).all(1)
        scores = ranking[:, caption]
        assert scores[shown].min() > scores[~shown].max(initial=-np.inf)
        if contradicted.any():
            assert scores[contradicted].max() < scores[~contradicted].min()


def test_a_complete_set_is_reused_and_nothing_else_is_touched(toy_copy, tmp_path):
    marker = toy_copy / "images.txt"
    before = marker.stat().st_mtime_ns
    assert toy_birds.generate(toy_copy, seed=3, **SIZES) == toy_copy
    assert marker.stat().st_mtime_ns == before
    with pytest.raises(InputError, match=r"expected nothing or the Toy Birds of .*'seed': 5"):
        toy_birds.generate(toy_copy, seed=5, **SIZES)
    assert marker.stat().st_mtime_ns == before
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("do not delete")
    with pytest.raises(InputError, match="something else"):
        toy_birds.generate(tmp_path / "mine", seed=3, **SIZES)
    assert _files(tmp_path / "mine") == ["thesis.txt"]


def _fits_by_words(bird, caption):
    """Whether a sentence fits a bird, from its words alone: an oracle that knows no codes."""
    words = caption.rstrip(".").replace("gray", "grey").replace("afeathers", "").split()
    joined = " ".join(words)
    spellings = {
        "tiny": "small", "little": "small", "big": "large", "stout": "thick",
        "pointed": "straight", "speckled": "spotted",
    }  # fmt: skip
    nouns = {
        "crown": ("crown", "head", "cap"), "back": ("back",), "wing": ("wing", "wings"),
        "tail": ("tail",), "breast": ("breast", "chest"), "belly": ("belly", "abdomen"),
        "bill": ("bill", "beak"), "legs": ("legs", "feet"), "bird": ("bird",),
    }  # fmt: skip
    joined = joined.replace("feathers on its back", "back").replace("tail feathers", "tail")
    joined = joined.replace("ring around its eye", "eyering").replace("eye ring", "eyering")
    joined = joined.replace("wing bars", "wingbars").replace("medium sized", "medium")
    joined = joined.replace("crested head", "crest")
    adjectives, fits = [], True
    for word in joined.replace(",", "").split():
        word = spellings.get(word, word)
        owner = next((noun for noun, forms in nouns.items() if word in forms), None)
        if word == "crest":
            fits &= bird["crest"] == "yes"
        elif word in ("wingbars", "eyering"):
            fits &= bird["wing_bars" if word == "wingbars" else "eye_ring"] == adjectives[-1]
        elif owner is not None:
            for adjective in adjectives:
                own = {
                    "tail": (bird["tail"], bird["tail_length"]),
                    "breast": (bird["breast"], bird["breast_pattern"]),
                    "bill": (bird["bill_colour"], bird["bill_length"], bird["bill_shape"]),
                    "bird": (bird["size"],),
                }.get(owner, (bird.get(owner),))
                fits &= adjective in own
        elif word in _VALUES:
            adjectives.append(word)
            continue
        adjectives = []
    return fits


_VALUES = {value for values in attributes.ATTRIBUTES.values() for value in values} - {"no", "yes"}


def test_true_matches_equal_brute_force_over_the_sentences(toy_root):
    records = cub.load(toy_root, split="test", image_size=32, verbose=False).records
    truth = toy_birds.read_truth(toy_root, records)
    birds = [attributes.decode(row) for row in truth.images]
    expected = [sum(_fits_by_words(bird, text) for bird in birds) for text in records.captions]
    matches = toy_birds.true_matches(toy_root, records)
    np.testing.assert_array_equal(matches, expected)
    assert len(set(matches)) > 3  # ambiguity varies, or there would be nothing to learn


def test_every_caption_fits_its_own_image_and_names_only_what_shows(toy_root, toy_records):
    truth = toy_birds.read_truth(toy_root, toy_records)
    own = toy_records.caption_image
    named = truth.captions >= 0
    assert (truth.captions[named] == truth.images[own][named]).all()
    assert truth.visible[own][named].all()
    assert named.sum(1).min() <= 1
    assert named.sum(1).max() >= 6
