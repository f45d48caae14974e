"""An index keeps the hash of its model's weights, and says when another model is opened."""

import random

import keras
import numpy as np
import pytest
from PIL import Image

import zoo
from colour_model import with_words
from halo_search.cli.search import main
from halo_search.errors import InputError
from halo_search.retriever import Retriever

TEXTS = ("a dog on a beach", "snow", "a plate of food on a table")


def model(seed, dim=8):
    """A DualEncoder of random weights, in which pictures and words are points."""
    random.seed(seed)
    image = keras.Input((16, 16, 3))
    seen = keras.layers.Dense(dim)(keras.layers.Flatten()(keras.layers.Rescaling(1 / 255)(image)))
    return with_words(keras.Model(image, {"mean": seen}), TEXTS, max_words=12)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with an index of 30 pictures, a saved retriever, and presets of three models."""
    home = tmp_path_factory.mktemp("models")
    rng = np.random.default_rng(0)
    (home / "photos").mkdir()
    for n in range(30):
        pixels = rng.integers(0, 256, (16, 16, 3), dtype="uint8")
        Image.fromarray(pixels).save(home / "photos" / f"{n}.png")
    for name, made in {"own": model(0), "other": model(1), "wider": model(0, 9)}.items():
        zoo.save_preset(made, home / name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("zoo.answering.keras_model.write_towers", lambda *_: (None, None))
        main(["build", str(home / "photos"), str(home / "built"), "--model", str(home / "own")])
    Retriever.build(home / "own", home / "photos").save(home / "saved")
    return home


@pytest.mark.parametrize("index", ["built", "saved"])
def test_its_own_model_opens_without_a_warning(home, index, recwarn):
    assert len(Retriever.load(home / index).ask("snow").ids) == 10
    assert len(Retriever.load(home / index, home / "own")) == 30
    assert not [one for one in recwarn if "another model" in str(one.message)]


def test_a_gallery_with_its_model_in_it_can_be_moved(home, tmp_path):
    Retriever.build(model(0), home / "photos").save(tmp_path / "here")
    # By the path of the model, as someone may open it.
    Retriever.load(tmp_path / "here", tmp_path / "here" / "model.keras").save(tmp_path / "here")
    (tmp_path / "here").rename(tmp_path / "there")
    assert len(Retriever.load(tmp_path / "there").ask("snow").ids) == 10


@pytest.mark.parametrize("index", ["built", "saved"])
def test_another_model_warns_and_another_width_is_refused(home, index):
    with pytest.warns(UserWarning, match=r"another model embedded this gallery.*Open it with its"):
        Retriever.load(home / index, home / "other")
    with pytest.raises(InputError, match=r"embeddings of 8 numbers; this model's have 9"):
        Retriever.load(home / index, home / "wider")
