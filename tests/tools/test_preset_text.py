"""The upper blocks of a text network, trained through over stored vectors of pictures."""

from types import SimpleNamespace

import keras
import numpy as np

from tiny_sentence import BLOCKS, LENGTH, random_weights, write_checkpoint
from tools import preset_text, preset_vectors
from zoo import encoders
from zoo.data import read_bert_tokenizer
from zoo.data.records import Records
from zoo.data.records.sources import Features, Split

TEXTS = ["a red bird", "dogs on a bird", "dog", "a bird"]


def test_the_upper_blocks_alone_are_trained_at_a_smaller_rate(monkeypatch, tmp_path):
    checkpoint = write_checkpoint(tmp_path, random_weights())
    sentences = encoders.sentences(checkpoint, LENGTH)
    pictures = keras.Input((4,))
    pictures = keras.Model(pictures, keras.layers.Identity()(pictures), name="backbone")
    own_pairs = preset_vectors.recipe()
    settings = own_pairs.Settings(dim=3, out=tmp_path / "run")
    tokenizer = read_bert_tokenizer(checkpoint, LENGTH)
    model = own_pairs.build(settings, pictures, sentences, tokenizer)
    rng = np.random.default_rng(0)
    records = Records(
        name="four",
        image_paths=list("abcd"),
        captions=TEXTS,
        caption_image=range(4),
        image_labels=range(4),
        image_ids=range(4),
        caption_vectors=Features(rng.normal(size=(4, sentences.output["pooled"].shape[-1]))),
    )
    train = Split(records, Features(rng.normal(size=(4, 4)).astype(np.float32)))
    optimizers, made = [], preset_text.training.LayerwiseAdamW

    def adam(*args, **options):
        optimizers.append(SimpleNamespace(rates=options["rates"]))
        return made(*args, **options)

    monkeypatch.setattr(preset_text.training, "LayerwiseAdamW", adam)
    for name, value in {"BLOCKS": 1, "BATCH": 2, "GROUP": 2}.items():
        monkeypatch.setattr(preset_text, name, value)
    for name in ("HEADS", "TEXT"):
        monkeypatch.setitem(getattr(preset_text, name), "epochs", 1)
    found = preset_text.trained_through(model, train, 0)
    before, after = sentences.weights, found.weights
    changed = [not np.array_equal(old, new) for old, new in zip(before, after, strict=True)]
    upper = [f"block_{BLOCKS - 1}/" in weight.path for weight in after]
    assert sum(changed) > 1
    assert not np.any(np.array(changed) & ~np.array(upper))
    assert optimizers[0].rates == {}
    assert set(optimizers[1].rates.values()) == {preset_text.OF_BLOCKS}
    assert not found.trainable_weights
