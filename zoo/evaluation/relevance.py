"""How likely an image fits a caption, by what the image's own captions say: an oracle."""

import functools
import json
from collections.abc import Sequence
from importlib import resources

import numpy as np
import tensorflow as tf
from scipy.special import expit

from halo_search.confidence.words import stems
from halo_search.embeddings.arrays import unit
from zoo.data.text.captions import token_ids
from zoo.presets import from_preset

ORACLE = "oracle.json"
COLUMNS = ("greatest", "second", "mean")  # cosines with an image's captions
_BLOCK = 256  # questions at once


@functools.cache
def oracle() -> dict[str, dict[str, float]]:
    """The weights of P(fits), by `python -m studies.oracle` from people's judgments."""
    text = (resources.files("zoo.evaluation") / ORACLE).read_text(encoding="utf-8")
    return json.loads(text)["weights"]


def relevance(sentences, rows, owners, num_images, scores=None, scale=None):
    """How likely each image fits each question, `(Q, N)`, by its captions' cosines with it and the
    model's `scores`. `sentences` are vectors of all captions, then of questions that are none;
    `rows` `(Q,)` of them are asked; `owners` are the captions' images."""
    weights = oracle()["captions" if scores is None else "captions and score"]
    has_captions = np.bincount(owners, minlength=num_images) > 0
    matrix = np.zeros((len(rows), num_images))
    for start, columns in caption_features(sentences, rows, owners, num_images):
        part = slice(start, start + columns.shape[1])
        odds = weights["bias"] + sum(
            weights[name] * x for name, x in zip(COLUMNS, columns, strict=True)
        )
        if scores is not None:
            low, high = scale
            odds += weights["score"] * (scores[part] - low) / max(high - low, 1e-9)
        matrix[part] = np.where(has_captions, expit(odds), 0.0)
    of_captions = np.flatnonzero(rows < len(owners))
    matrix[of_captions, owners[rows[of_captions]]] = 1.0
    return matrix


def relevance_of_words(texts, held, captions, questions, scores, scale):
    """What fits short questions, which are no captions: `(holds, fit)`, `(Q, N)` booleans and in
    [0, 1]."""
    vectors, owners = captions
    rows = len(vectors) + np.arange(len(texts))
    predicted = relevance(
        np.concatenate([vectors, questions]), rows, owners, len(held), scores, scale
    )
    asked = [set(stems(text)) for text in texts]
    holds = np.array([[words <= words_of_photo for words_of_photo in held] for words in asked])
    return holds, np.where(holds, 1.0, predicted)


def caption_features(sentences, rows, owners, num_images):
    """What the oracle reads of captions, `(start, (3, q, N))`: of q questions from the start-th the
    greatest, the second and the mean cosine."""
    vectors = unit(np.asarray(sentences, np.float32))
    order = np.argsort(owners, kind="stable")
    counts = np.bincount(owners, minlength=num_images)
    starts = np.concatenate([[0], np.cumsum(counts)])
    most = max(2, int(counts.max()))
    place = np.minimum(np.arange(most), np.maximum(counts[:, None] - 1, 0))
    table = order[np.minimum(starts[:-1, None] + place, len(order) - 1)]
    is_there = np.arange(most) < counts[:, None]
    for start in range(0, len(rows), _BLOCK):
        part = rows[start : start + _BLOCK]
        cosines = (vectors[part] @ vectors[table.ravel()].T).reshape(len(part), *table.shape)
        # A caption says nothing of itself.
        counted = is_there & (table[None] != part[:, None, None])
        best = np.sort(np.where(counted, cosines, -1.0), axis=2)
        some = np.maximum(counted.sum(axis=2), 1)
        mean = np.where(counted, cosines, 0.0).sum(axis=2) / some
        second = np.where(some > 1, best[..., -2], best[..., -1])
        yield start, np.stack([best[..., -1], second, mean])


def score_scale(scores, is_owner):
    """The means of a model's scores `(Q, N)` over pairs of strangers and over own pairs."""
    return float(scores[~is_owner].mean()), float(scores[is_owner].mean())


PRESET = "photos_pfe"
_TEXTS = 256


def sentence_vectors(texts: Sequence[str]) -> np.ndarray:
    """Unit vectors of sentences by the preset's encoder, float32 `(len(texts), 384)`."""
    tokenizer, forward = _sentence_encoder()
    parts = []
    for start in range(0, len(texts), _TEXTS):
        ids = np.asarray(token_ids(tokenizer, texts[start : start + _TEXTS]))
        # Padding costs as much as words, so there is none beyond the longest text.
        rows_vectors = forward(ids[:, : 1 + np.flatnonzero(ids.any(axis=0)).max(initial=0)])
        parts.append(
            np.asarray(rows_vectors["pooled"] if isinstance(rows_vectors, dict) else rows_vectors)
        )
    vectors = np.concatenate(parts)
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


@functools.cache  # captions and short questions are read one after the other
def _sentence_encoder():
    """The tokenizer of the packaged preset, and its MiniLM as a function from ids (texts, words) to
    vectors (texts, dim)."""
    model = from_preset(PRESET)
    backbone = model.caption_encoder.get_layer("backbone")
    spec = tf.TensorSpec((None, None), "int32")  # a layer that is called takes one length alone
    return model.tokenizer, tf.function(lambda ids: backbone(ids, training=False), [spec])
