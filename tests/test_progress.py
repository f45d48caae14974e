"""Progress on a terminal and in a file: a file gets lines, and no control characters."""

import io
import re
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

from halo_search import collection
from halo_search.collection import Encoded
from zoo.cli import verbosity
from zoo.data import cub, toy_birds
from zoo.models.run_folder import RunFolder
from zoo.training import fit_phase

CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f]")  # all but the end of a line


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    root = tmp_path_factory.mktemp("birds") / "birds"
    toy_birds.generate(root, num_classes=8, images_per_class=4, image_size=32)
    return cub.load(root, split="test", image_size=32, verbose=False).records


def encode_captions(records, folder):
    def encoder(items, advance):
        advance(len(items))
        return Encoded(items.names, {"mean": np.ones((len(items), 2), np.float32)})

    collection.encode(collection.captions(list(records.captions)), encoder, folder / "parts", {})


def fit(records, folder):
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    ones = np.ones((2, 1), np.float32)
    batches = tf.data.Dataset.from_tensors((ones, ones)).repeat()
    run = RunFolder.open(folder / "run", {})
    fit_phase(run, model, "training", lambda step: batches, epochs=2, steps=3)


BARS = [encode_captions, fit]


@pytest.mark.parametrize("show", BARS, ids=lambda show: show.__name__)
def test_a_file_gets_lines_without_control_characters(show, records, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdout", output := io.StringIO())
    show(records, tmp_path)
    text = output.getvalue()
    assert re.search(r"(\d+)/\1", text), text  # how many of how many
    assert not CONTROL.findall(text), text
    assert text.count("\n") <= 4
    assert text.endswith("\n")


def test_a_notebook_gets_a_bar(monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert verbosity() == 2
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    assert verbosity() == 1


def test_nothing_is_shown_where_nothing_is_wanted(monkeypatch):
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert verbosity(False) == 0
    assert verbosity() == 1
    monkeypatch.setattr(sys, "stdout", None)  # of a process without a console
    assert verbosity() == 2
