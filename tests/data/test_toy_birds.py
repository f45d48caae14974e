"""Toy Birds: the layout, determinism, atomic writing, and the truth about ambiguity."""

import filecmp

import numpy as np
import pytest
from PIL import Image

from zoo.data import cub, toy_birds
from zoo.data.toy.birds import attributes
from zoo.data.toy.birds.wording import describe
from zoo.errors import InputError

SIZES = {"num_classes": 12, "images_per_class": 5, "image_size": 32}


def _files(root):
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def test_layout_is_that_of_cub_with_reeds_captions(toy_root):
    for name in ("images", "classes", "image_class_labels", "bounding_boxes", "train_test_split"):
        assert (toy_root / f"{name}.txt").is_file()
    lines = (toy_root / "images.txt").read_text().splitlines()
    assert len(lines) == 60
    for number, line in enumerate(lines, start=1):
        index, name = line.split(" ")
        assert int(index) == number
        with Image.open(toy_root / "images" / name) as picture:
            assert picture.size == (32, 32)
            assert picture.format == "JPEG"
        captions = (toy_root / "text_c10" / name).with_suffix(".txt").read_text()
        assert captions.endswith("\n")
        assert len(captions.splitlines()) == 10


def test_splits_have_xians_proportions(toy_root):
    def classes(name):
        return set((toy_root / "splits_pcme_xian" / name).read_text().split())

    assert len(classes("testclasses.txt")) == 3
    assert len(classes("trainvalclasses.txt")) == 9
    assert not classes("testclasses.txt") & classes("trainvalclasses.txt")
    for fold in (1, 2, 3):
        train, val = classes(f"trainclasses{fold}.txt"), classes(f"valclasses{fold}.txt")
        assert (len(train), len(val)) == (6, 3)
        assert train | val == classes("trainvalclasses.txt")


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
    with pytest.raises(InputError, match="expected nothing or the Toy Birds"):
        toy_birds.generate(alone, seed=3, **SIZES)
    with pytest.raises(ValueError, match="`part` must be one of"):
        toy_birds.generate(tmp_path / "none", part="train")


def test_more_classes_change_nothing_of_the_others(toy_root, tmp_path):
    more = toy_birds.generate(tmp_path / "more", seed=3, more_classes=4, **SIZES)
    for split, further in {"test": 0, "val1": 0, "seen_test": 4, "trainval": 16}.items():
        ours, theirs = (
            cub.load(root, split=split, verbose=False).records for root in (more, toy_root)
        )
        count = theirs.num_images
        assert ours.num_images == count + further
        assert ours.captions[: len(theirs.captions)].tolist() == theirs.captions.tolist()
        for one, other in zip(ours.image_paths, theirs.image_paths, strict=False):
            assert filecmp.cmp(one, other, shallow=False)
    table = attributes_of(more)
    distances = (table[:, None] != table).sum(-1) + 99 * np.eye(len(table), dtype=int)
    assert distances.min() >= 4
    assert len(set((more / "classes.txt").read_text().split()[1::2])) == 16


def attributes_of(root):
    """The attributes of every species: the commonest of its individuals."""
    records = cub.load(root, split="trainval", verbose=False).records
    drawn = toy_birds.read_truth(root, records).images
    labels = np.asarray(records.image_labels)
    species = []
    for label in np.unique(labels):
        members = drawn[labels == label]
        species.append([np.bincount(column).argmax() for column in members.T])
    return np.array(species)


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


def test_a_failure_leaves_nothing_behind(tmp_path, monkeypatch):
    def fail(*_):
        raise RuntimeError("the disk is full")

    monkeypatch.setattr("zoo.data.toy.birds.truth.write", fail)
    with pytest.raises(RuntimeError):
        toy_birds.generate(tmp_path / "birds", **SIZES)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["num_classes", "images_per_class", "image_size"])
def test_sizes_are_checked(tmp_path, name):
    with pytest.raises(ValueError, match=f"`{name}` must be at least .* received 1"):
        toy_birds.generate(tmp_path / "birds", **{**SIZES, name: 1})


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


def test_hidden_birds_fit_more_captions(toy_root, toy_records):
    truth = toy_birds.read_truth(toy_root, toy_records)
    counts = toy_birds.true_matches(toy_root, toy_records, of="images")
    shown = truth.visible.sum(1)
    brute = [
        sum(
            all(c < 0 or c == v or not s for c, v, s in zip(row, values, seen, strict=True))
            for row in truth.captions
        )
        for values, seen in zip(truth.images, truth.visible, strict=True)
    ]
    np.testing.assert_array_equal(counts, brute)
    assert counts[shown <= 8].mean() > 1.5 * counts[shown >= 15].mean()


def test_truth_is_refused_for_other_records(tmp_path, toy_root, toy_records):
    with pytest.raises(ValueError, match="`of` must be one of"):
        toy_birds.true_matches(toy_root, toy_records, of="birds")
    with pytest.raises(InputError, match="is this a Toy Birds folder"):
        toy_birds.true_matches(tmp_path, toy_records)


def test_unseen_species_are_new_combinations_of_seen_values():
    rng = np.random.default_rng(0)
    species = attributes.sample_species(rng, 120)
    test = attributes.held_out(rng, species, 30)
    table = np.array([attributes.codes(bird) for bird in species])
    seen = np.delete(table, test, axis=0)
    for column in range(table.shape[1]):
        assert set(table[test, column]) <= set(seen[:, column])
    distances = (table[:, None] != table[None]).sum(-1) + 99 * np.eye(len(table), dtype=int)
    assert distances.min() >= 4


def test_nothing_visible_still_gives_a_sentence():
    bird = attributes.sample_species(np.random.default_rng(0), 1)[0]
    caption, named = describe(np.random.default_rng(0), bird, set())
    assert (caption, named) == ("this is a bird on a branch.", [])
