"""COCO's benchmark from a recipe: ids are checked before training, real files are measured."""

import json
import os
import re
import sys
from pathlib import Path

import keras
import keras_hub
import numpy as np
import pytest

import daa_coco
import daa_sgraf_flickr30k
import dive_coco
import memory
import pcme_coco
import pcmepp_coco
import vse_coco
from zoo import cli, evaluation, training
from zoo.data import coco, toy_scenes
from zoo.errors import InputError
from zoo.files import RunFolder

SMALL = ["--smoke", "--dim=8", "--word-dim=8", "--batch-size=8", "--max-words=9"]
TRUTHS = ("coco_1k", "coco_5k", "cxc_1k", "cxc", "eccv")


@pytest.fixture(scope="module")
def scenes(tmp_path_factory):
    """Toy Scenes as if they were the real data: in COCO's layout, with instances."""
    root = tmp_path_factory.mktemp("scenes") / "toy"
    toy_scenes.generate(root, num_images=60, num_species=6, image_size=48, region_dim=16)
    return root / "coco"


@pytest.fixture(scope="module")
def annotations(scenes, tmp_path_factory):
    """The files of ECCV Caption for the test scenes."""
    folder = tmp_path_factory.mktemp("annotations")
    file = scenes / "annotations" / "dataset_coco.json"
    records = coco.load(file, scenes, split="test", verbose=False).records
    np.save(folder / "coco_test_ids.npy", np.sort(records.caption_ids))
    image_of = dict(
        zip(records.caption_ids.tolist(), records.image_ids[records.caption_image], strict=True)
    )
    of_caption = {caption: [int(image)] for caption, image in image_of.items()}
    of_image = {}
    for caption, (image,) in of_caption.items():
        of_image.setdefault(image, []).append(caption)
    for name in ("original", "cxc", "eccv"):
        (folder / f"{name}_image_to_caption.json").write_text(json.dumps(of_image))
        (folder / f"{name}_caption_to_image.json").write_text(json.dumps(of_caption))
    return folder


def test_ids_are_checked_before_training(scenes, annotations, tmp_path, capsys):
    (tmp_path / "more").mkdir()
    for path in annotations.iterdir():
        (tmp_path / "more" / path.name).write_bytes(path.read_bytes())
    name = tmp_path / "more" / "original_caption_to_image.json"
    matches = json.loads(name.read_text())
    name.write_text(json.dumps({**matches, "987654": next(iter(matches.values()))}))
    ids = np.load(annotations / "coco_test_ids.npy")
    np.save(tmp_path / "more" / "coco_test_ids.npy", [*ids, 987654])
    flags = [*SMALL, "--image-size=16", f"--data-dir={scenes}", "--backbone=tiny"]
    out = tmp_path / "run"
    settings = cli.parse(
        vse_coco.Settings, [*flags, f"--annotations-dir={tmp_path / 'more'}", f"--out={out}"]
    )
    with pytest.raises(InputError, match=r"--annotations-dir .*COCO test.*lacks .*987654"):
        training.start(settings, vse_coco.triplet_training.data(settings, "coco"))
    assert not list(out.glob("checkpoints/*"))
    settings = cli.parse(
        vse_coco.Settings, [*flags, f"--annotations-dir={annotations}", f"--out={out}"]
    )
    training.start(settings, vse_coco.triplet_training.data(settings, "coco"))
    assert "PMRP" not in capsys.readouterr().out
    (tmp_path / "coco" / "annotations").mkdir(parents=True)
    (tmp_path / "coco" / "val2014").symlink_to(scenes / "val2014")
    (tmp_path / "coco" / "train2014").symlink_to(scenes / "train2014")
    name = "annotations/dataset_coco.json"
    (tmp_path / "coco" / name).write_bytes((scenes / name).read_bytes())
    flags = [*flags[:-2], f"--data-dir={tmp_path / 'coco'}", "--backbone=tiny"]
    other = tmp_path / "other"
    settings = cli.parse(
        vse_coco.Settings, [*flags, f"--annotations-dir={annotations}", f"--out={other}"]
    )
    training.start(settings, vse_coco.triplet_training.data(settings, "coco"))
    assert "PMRP is left out" in capsys.readouterr().out


def test_ids_are_checked_before_an_ensemble_is_encoded(scenes, annotations, tmp_path, monkeypatch):
    described = {"loader": "coco", "root": str(scenes), "image_size": 16, "held_out": "val"}
    folder = RunFolder.open(tmp_path / "both", {}, data=described)
    monkeypatch.setattr(evaluation, "ensemble", lambda *given: pytest.fail("encoded"))
    with pytest.raises(InputError, match=r"--annotations-dir .*COCO val.*lacks"):
        training.finish_ensemble(folder, ["runs/a", "runs/b"], annotations)
    assert not folder.finished


@pytest.mark.very_slow  # PMRP itself is asked in tests/metrics/test_coco.py
@pytest.mark.usefixtures("one_eagerly")
def test_pmrp_comes_with_the_instances_of_the_data(scenes, annotations, tmp_path):
    out = tmp_path / "run"
    flags = [*SMALL, "--image-size=16", "--backbone=tiny", "--steps-per-epoch=1", f"--out={out}"]
    pcme_coco.main([*flags, f"--data-dir={scenes}", f"--annotations-dir={annotations}"])
    run = RunFolder.existing(out)
    for side in ("i2t", "t2i"):
        assert 0 <= run.metrics["coco"][f"coco_5k_{side}_pmrp"] <= 100
    assert run.metrics["coco"]["pmrp_images_left_out"] >= 0
    by_means = run.metrics["by_similarity"]["euclidean"]["coco"]  # the other test-time similarity
    assert by_means.keys() == run.metrics["coco"].keys()
    assert by_means != run.metrics["coco"]
    assert list(training.read_history(run.history_path)["phase"]) == ["warm_up", "fine_tuning"]


@pytest.fixture(scope="module")
def real(shared_data):
    """Karpathy's test images with their ids: `{image id: [(caption id, sentence)]}`.

    The sentences are those of coco_karpathy_test_raw.json, 25,009 of them; the nine that the
    benchmark does not know get numbers of their own.
    """
    folder = shared_data / "coco_annotations"
    raw = json.loads((folder / "coco_karpathy_test_raw.json").read_text())
    matches = json.loads((shared_data / "eccv_caption/original_image_to_caption.json").read_text())
    lines = (folder / "karpathy_testall_caps.txt").read_text().splitlines()
    ids = np.load(folder / "coco_test_ids.npy").tolist()
    letters = dict(zip(ids, map(_letters, lines), strict=True))
    images, unknown = {}, 10**9
    for entry in raw:
        image = int(re.search(r"(\d+)\.jpg", entry["image"])[1])
        free = list(matches[str(image)])
        images[image] = []
        for sentence in entry["caption"]:
            own = next((one for one in free if letters[one] == _letters(sentence)), None)
            if own is None:
                own, unknown = unknown, unknown + 1
            else:
                free.remove(own)
            images[image].append((own, sentence.strip()))
        assert not free, f"image {image}: {free} have no sentence"
    assert unknown - 10**9 == 9
    return images


def _letters(text):
    return "".join(character for character in text.lower() if character.isalnum())


@pytest.fixture(scope="module")
def real_pictures(real, tmp_path_factory):
    """dataset_coco.json of the real test split, with pictures of 16 pixels."""
    root = tmp_path_factory.mktemp("coco")
    (root / "val2014").mkdir()
    generator = np.random.default_rng(0)
    pictures = generator.uniform(0, 255, (50, 16, 16, 3))
    for number, pixels in enumerate(pictures):
        keras.utils.save_img(root / f"{number}.png", pixels, scale=False)
    entries = []
    for number, (image, sentences) in enumerate(real.items()):
        name = f"COCO_val2014_{image:012d}.jpg"
        (root / "val2014" / name).symlink_to(root / f"{number % 50}.png")
        told = [{"raw": text, "sentid": caption} for caption, text in sentences]
        entries.append(_entry(name, image, "test", told))
    for split in ("train", "val"):
        for number in range(16):
            name = f"{split}_{number}.png"
            (root / "val2014" / name).symlink_to(root / f"{number}.png")
            image = 10**7 * (1 + (split == "val")) + number
            told = [{"raw": f"a picture {number} of it", "sentid": 10 * image}]
            entries.append(_entry(name, image, split, told))
    (root / "dataset_coco.json").write_text(json.dumps({"images": entries, "dataset": "coco"}))
    _write_instances(root, real)
    return root


def _write_instances(root, images):
    """Stand-in instances of the real images, in COCO's form: instances_val2014.json is not here."""
    generator = np.random.default_rng(0)
    shown = [(image, kind) for image in images for kind in generator.choice(80, 2, replace=False)]
    content = {
        "images": [{"id": image} for image in images],
        "categories": [{"id": kind + 1, "name": str(kind)} for kind in range(80)],
        "annotations": [
            {"id": number, "image_id": image, "category_id": int(kind) + 1}
            for number, (image, kind) in enumerate(shown, 1)
        ],
    }
    (root / "annotations").mkdir()
    (root / "annotations" / "instances_val2014.json").write_text(json.dumps(content))


def _entry(name, image, split, sentences):
    return {
        "filename": name,
        "filepath": "val2014",
        "cocoid": image,
        "split": split,
        "sentences": sentences,
    }


@pytest.fixture(scope="module")
def real_regions(shared_data, tmp_path_factory):
    """SCAN's files with the real sentences of `testall`, their real ids and two small regions."""
    root = tmp_path_factory.mktemp("coco_precomp")
    folder = shared_data / "coco_annotations"
    ids = np.load(folder / "coco_test_ids.npy")
    matches = json.loads((shared_data / "eccv_caption/original_caption_to_image.json").read_text())
    lines = (folder / "karpathy_testall_caps.txt").read_text().splitlines()
    generator = np.random.default_rng(0)
    for split, captions in (("train", lines[:80]), ("dev", lines[:80]), ("testall", lines)):
        regions = generator.normal(size=(len(captions) // 5, 2, 4)).astype("float32")
        np.save(root / f"{split}_ims.npy", regions)
        (root / f"{split}_caps.txt").write_text("\n".join(captions) + "\n")
    (root / "testall_caption_ids.txt").write_text("".join(f"{number}\n" for number in ids))
    images = [matches[str(number)][0] for number in ids[::5]]
    (root / "testall_ids.txt").write_text("".join(f"{number}\n" for number in images))
    _write_instances(root, images)
    return root


@pytest.fixture(scope="module")
def tiny_bert(tmp_path_factory):
    """Flags that name a random BERT of two narrow layers, with a vocabulary of letters."""
    folder = tmp_path_factory.mktemp("bert")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz0123456789"]
    words += [f"##{letter}" for letter in words[5:]]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n")
    keras_hub.models.BertBackbone(
        len(words), num_layers=2, num_heads=2, hidden_dim=8, intermediate_dim=16
    ).save_to_preset(str(folder / "bert"))
    return [f"--bert={folder / 'bert'}", f"--bert-vocabulary={folder / 'vocab.txt'}"]


PICTURES = ["--backbone=tiny", "--image-size=16", "--test-similarities=own"]
SAMPLED = [*PICTURES, "--num-samples=2"]  # every pair costs their square


# The same files at the same size are measured by make test in test_coco_published.py.
@pytest.mark.very_slow
@pytest.mark.parametrize(
    ("recipe", "data", "flags"),
    [
        (pcmepp_coco, "real_pictures", PICTURES),
        (pcme_coco, "real_pictures", SAMPLED),
        (daa_coco, "real_pictures", SAMPLED),
        (dive_coco, "real_regions", ["--features=regions"]),
        (daa_sgraf_flickr30k, "real_regions", ["--module=saf", "--similarity-dim=4"]),
        (vse_coco, "real_regions", ["--features=regions"]),
    ],
)
def test_the_real_annotation_files(recipe, data, flags, shared_data, tmp_path, request):
    root, out = request.getfixturevalue(data), tmp_path / "run"
    annotations = shared_data / "eccv_caption"
    places = [f"--data-dir={root}", f"--annotations-dir={annotations}", f"--out={out}"]
    small = list(SMALL)
    if recipe is daa_coco:
        small.remove("--word-dim=8")  # its words are BERT's
        places += request.getfixturevalue("tiny_bert")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    _, peak = memory.run_file(recipe.__file__, *small, *flags, *places, env=env)
    assert peak <= 6, "GiB: the evaluation must fit"
    metrics = json.loads((Path(out) / "metrics.json").read_text())["coco"]
    for truth in TRUTHS:
        assert 0 <= metrics[f"{truth}_rsum"] <= 600
        for side in ("i2t", "t2i"):
            assert 0 <= metrics[f"{truth}_{side}_r_precision"] <= 100
            assert 0 <= metrics[f"coco_1k_{side}_pmrp"] <= 100
            assert 0 <= metrics[f"coco_5k_{side}_pmrp"] <= 100
    assert metrics["coco_5k_i2t_queries"] == 5_000
    assert metrics["coco_5k_t2i_queries"] == 25_000
    assert metrics["eccv_i2t_queries"] == 1_261
    assert metrics["captions_outside_benchmark"] == (9 if data == "real_pictures" else 0)
