"""Fixed questions notice another model; `halo search check` says what no longer holds."""

import json
import random

import keras
import numpy as np
import pytest
from PIL import Image

import zoo
from colour_model import with_words
from halo_zoo.search import main
from zoo.errors import InputError
from zoo.retriever import Retriever, canaries


def model(seed, dim=8):
    """A DualEncoder of random weights, in which pictures and words are points."""
    random.seed(seed)
    image = keras.Input((16, 16, 3))
    seen = keras.layers.Dense(dim)(keras.layers.Flatten()(keras.layers.Rescaling(1 / 255)(image)))
    return with_words(keras.Model(image, {"mean": seen}), canaries.TEXTS, max_words=12)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """`(index of 30 pictures, presets of its model, of another and of another width)`."""
    home = tmp_path_factory.mktemp("canaries")
    rng = np.random.default_rng(0)
    (home / "photos").mkdir()
    for n in range(30):
        pixels = rng.integers(0, 256, (16, 16, 3), dtype="uint8")
        Image.fromarray(pixels).save(home / "photos" / f"{n}.png")
    for name, made in {"own": model(0), "other": model(1), "wider": model(0, 9)}.items():
        zoo.save_preset(made, home / name)
    flags = ["--model", str(home / "own")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("zoo.retriever.commands.write_towers", lambda *arguments: (None, None))
        main(["build", str(home / "photos"), str(home / "index"), *flags])
    return home


def told(folder, capsys, *flags, code=0):
    """What `check --json` prints."""
    capsys.readouterr()
    try:
        main(["check", str(folder / "index"), "--json", *flags])
        found = 0
    except SystemExit as ended:
        found = ended.code
    assert found == code
    return json.loads(capsys.readouterr().out)


def test_the_same_model_holds_without_a_warning(folder, recwarn):
    sung = Retriever.load(folder / "index").sing()
    assert sung.holds
    assert sung.cosines.min() > 0.9999
    assert sung.same.tolist() == [1.0] * 5
    assert not [one for one in recwarn if "fixed questions" in str(one.message)]


def test_another_model_warns_and_another_width_is_refused(folder, capsys):
    with pytest.warns(UserWarning, match="embedded otherwise"):
        Retriever.load(folder / "index", folder / "other")
    with pytest.raises(InputError, match=r"embeddings of 8 numbers; this model's have 9"):
        Retriever.load(folder / "index", folder / "wider")
    found = told(folder, capsys, "--model", str(folder / "other"), code=1)
    assert not found["canaries"]["holds"]
    assert min(found["canaries"]["cosines"]) < canaries.LEAST


def test_questions_and_feedback_are_checked(folder, capsys, tmp_path):
    log, good, bad = (tmp_path / name for name in ("log.txt", "good.jsonl", "bad.jsonl"))
    log.write_text("a dog on a beach\nsnow\nzzz qqq\n" * 10)
    rng = np.random.default_rng(0)
    rows = [json.dumps({"probability": 0.8, "right": bool(r)}) for r in rng.random(300) < 0.8]
    good.write_text("\n".join(rows))
    rows = [json.dumps({"probability": 0.8, "right": bool(r)}) for r in rng.random(300) < 0.5]
    bad.write_text("\n".join(rows))
    found = told(folder, capsys, "--questions", str(log), "--feedback", str(good))
    assert found["questions"]["questions"] == 30
    assert 0 <= found["questions"]["declined"] <= 1
    assert found["feedback"]["alarm_at"] is None
    found = told(folder, capsys, "--feedback", str(bad), code=1)
    assert 0 < found["feedback"]["alarm_at"] < 200
    assert not found["holds"]


def test_a_bad_line_of_feedback_is_named(folder, tmp_path):
    path = tmp_path / "feedback.jsonl"
    path.write_text('{"probability": 0.8, "right": true}\n{"probability": 3, "right": true}\n')
    with pytest.raises(InputError, match=rf"--feedback {path}:2: expected"):
        main(["check", str(folder / "index"), "--feedback", str(path)])


def test_a_gallery_of_captions_is_asked_with_drawn_pictures():
    drawn = canaries.questions_for("captions")
    assert {one.shape for one in drawn} == {(64, 64, 3)}
    assert len({one.tobytes() for one in drawn}) == 5
    assert canaries.questions_for("images") == list(canaries.TEXTS)
