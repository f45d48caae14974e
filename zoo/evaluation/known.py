"""What a model has seen in training, so that a question that it does not know is declined."""

import numpy as np
import tensorflow as tf

from halo_search.confidence import KnownQueries
from halo_search.confidence.known import LEAST, SeenTexts
from halo_search.confidence.words import unknown_words
from halo_search.embeddings.arrays import centres, coordinates
from zoo.data.records.features import pooled_vectors
from zoo.data.text.captions import WordTokenizer, token_ids
from zoo.evaluation.phrases import made_up, phrases
from zoo.models import DualEncoder

MOST = {"images": 2000, "captions": 5000}  # of training, encoded again
HELD_OUT = 2000  # queries of the validation split
TEXTS = 1500  # captions, and as many phrases, that are kept of word pieces


def known_queries(model, train, held_out, seed=0, complete_model=None):
    """What is usual of queries, `halo_search.confidence.KnownQueries` by direction, but for one
    with fewer than 99 held-out queries; none where nothing was trained on."""
    if not train.records.num_images:
        return {}
    rng = np.random.default_rng(seed)
    spelled = spells_words(model)
    images = _some(rng, train.records.num_images, MOST["images"])
    captions = _some(rng, train.records.num_captions, MOST["captions"])
    size = min(64, len(images))  # every batch is whole: sources take no others
    indices = tf.data.Dataset.from_tensor_slices(images).batch(size, drop_remainder=True)
    shown = train.source.take(indices)
    if spelled:
        read = None
    elif train.records.caption_vectors is not None:
        read = tf.cast(train.records.caption_vectors.gather(captions), tf.float32)
    else:
        read = token_ids(model.tokenizer, [train.records.captions[i] for i in captions])
    seen = {"i2t": model.tower("images").of_arrays(shown)}
    if read is not None:
        seen["t2i"] = model.tower("captions").of_arrays(read)
    known = {}
    for direction, embeddings in seen.items():
        means = coordinates(held_out.images if direction == "i2t" else held_out.captions)
        chosen = _some(rng, len(means), HELD_OUT)
        if len(chosen) >= LEAST:
            seen_means = coordinates(embeddings)
            known[direction] = KnownQueries.fit(seen_means, means[chosen], seed=seed)
    if spelled and len(held_out.records.captions) >= LEAST:
        captions = train.records.captions, held_out.records.captions

        def encode(ids):
            if complete_model is None or train.records.caption_vectors is None:
                return model.tower("captions").of_arrays(ids)
            vectors = pooled_vectors(complete_model.caption_encoder.get_layer("backbone"), ids)
            return model.tower("captions").of_arrays(vectors)

        known["t2i"] = known_texts(encode, model.tokenizer, *captions)
    return known


def spells_words(model: DualEncoder) -> bool:
    """Whether captions reach the model as pieces of words, so that no word is unknown to it."""
    tokenizer = model.tokenizer
    if tokenizer is None or model.reads_caption_vectors or not hasattr(tokenizer, "word_ids"):
        return False
    return not isinstance(tokenizer, WordTokenizer) and tokenizer.word_ids.end is not None


def known_texts(encode, tokenizer, captions, held_out, seed=0, most=TEXTS):
    """What is usual of texts that a tokenizer spells out of pieces, see `SeenTexts`."""
    rng = np.random.default_rng(seed)

    def drawn(texts, count):
        return [texts[row] for row in _some(rng, len(texts), count)]

    real, cut = drawn(captions, most + most // 2), phrases(drawn(captions, 3 * most), rng)
    cut = drawn(cut, most + most // 2)
    rng.shuffle(real)
    rng.shuffle(cut)
    split = [len(texts) * 2 // 3 for texts in (real, cut)]
    asked = drawn(held_out, most // 2)
    groups = (
        [*real[: split[0]], *cut[: split[1]]],
        [*real[split[0] :], *cut[split[1] :]],
        [*asked, *phrases(asked, rng)],
    )
    ids = [token_ids(tokenizer, texts) for texts in groups]
    ids.append(made_up(ids[1], tokenizer.word_ids, rng))
    ends = np.cumsum([len(rows) for rows in ids])[:-1]
    training_points, others, tried, unlike = np.split(centres(encode(np.concatenate(ids))), ends)
    return KnownQueries.of(SeenTexts.fit(training_points, others, unlike), tried, seed)


def query_facts(model, embeddings, texts=None):
    """What `KnownQueries.declined` asks of queries; texts are of captions, None of pictures."""
    words = unknown = None
    if texts is not None and model.tokenizer is not None:
        words, unknown = unknown_words(model.tokenizer, texts)
    return {"means": coordinates(embeddings), "words": words, "unknown": unknown}


def _some(rng, count, most):
    """Sorted rows: `most` random ones of `count`, or all if there are fewer."""
    return np.sort(rng.choice(count, most, replace=False)) if count > most else np.arange(count)
