"""Probes of a model: held-out pairs of a run's validation split, or captioned photos."""

import dataclasses
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from halo_search.confidence import Probes
from halo_search.confidence.bank import NEAREST, Bank
from halo_search.confidence.calibrate import ELSEWHERE
from halo_search.confidence.confidence import LEAST as LEAST_PROBES
from halo_search.confidence.probes import MOST, contents_hash
from halo_search.confidence.words import packaged_bank, stems, unknown_words
from halo_search.embeddings.arrays import centres
from halo_search.errors import InputError
from halo_search.photos import packaged_captions, packaged_photos
from zoo.data.records.sources import Split
from zoo.evaluation import known
from zoo.evaluation.captioned import Captioned
from zoo.evaluation.fits import LEAST, learn_fits, with_fits
from zoo.evaluation.relevance import sentence_vectors
from zoo.evaluation.retrieval import EncodedSplit, encode
from zoo.evaluation.short_fits import KNOWN
from zoo.models import DualEncoder, Tower

WHOLE = 0.6  # of the captions, those of images of which all are kept
MOST_BANK = 6000  # photos of training behind the second opinion
HASHED = 20_000  # pictures of training whose contents are remembered, at most


def make_probes(
    model: DualEncoder,
    held_out: EncodedSplit,
    train: Split | None = None,
    seed: int = 0,
    images: int = 1000,
    captions: int = MOST,
    complete_model: DualEncoder | None = None,
) -> Probes:
    """The `halo_search.confidence.Probes` of a model. Raises ValueError if nothing matches, or
    embeddings are token sequences.

    Args:
        model: the `DualEncoder`.
        held_out: an `EncodedSplit` that training has not seen.
        train: the `Split` of training; without it the probes decline no strange vector.
        seed: of what is drawn.
        images, captions: how many at most, of one image where that can be. Where an image is its
            own label, three fifths of the captions are those of whole images, see `Probes.whole`.
        complete_model: the model with its frozen backbones, where `model` reads stored vectors.
    """
    if "tokens" in held_out.images or "tokens" in held_out.captions:
        raise ValueError("embeddings are token sequences; probes are vectors, as an index holds")
    records, rng = held_out.records, np.random.default_rng(seed)
    chosen = np.sort(rng.permutation(records.num_images)[:images])
    is_chosen = np.isin(records.caption_image, chosen)
    order = rng.permutation(records.num_captions)
    order = np.concatenate([order[is_chosen[order]], order[~is_chosen[order]]])
    complete = None
    if len(np.unique(records.image_labels)) == records.num_images:
        complete = whole_images(records.caption_image, chosen, WHOLE * captions, rng)
    if complete is not None:
        first = np.isin(records.caption_image[order], complete)
        order = np.concatenate([order[first], order[~first]])
    caption_rows = np.sort(order[:captions])
    row = np.full(records.num_images, -1)
    row[chosen] = np.arange(len(chosen))
    seen = (
        {} if train is None else known.known_queries(model, train, held_out, seed, complete_model)
    )
    return Probes.of(
        {name: np.asarray(values)[chosen] for name, values in held_out.images.items()},
        {name: np.asarray(values)[caption_rows] for name, values in held_out.captions.items()},
        records.image_labels[chosen],
        records.caption_labels[caption_rows],
        row[records.caption_image[caption_rows]],
        measure=held_out.measure_name,
        known=seen,
        trained_on=_hashes(train, rng),
        source=f"{records.name}: {len(chosen):,} images, {len(caption_rows):,} captions",
        whole=None if complete is None else np.isin(chosen, complete),
    )


def whole_images(caption_image, images, captions, rng):
    """Some images with no more than so many captions together; None if hardly any."""
    counts = np.bincount(caption_image, minlength=int(images.max()) + 1)
    drawn = rng.permutation(images[counts[images] > 0])
    drawn = drawn[np.cumsum(counts[drawn]) <= captions]
    return drawn if len(drawn) >= LEAST_PROBES else None


def _hashes(train, rng):
    """Hashes of the pictures of training that are files, sorted."""
    if train is None:
        return np.empty(0, np.uint64)
    paths = rng.permutation(np.asarray(train.records.image_paths, object))[:HASHED]
    hashes = {contents_hash(path) for path in paths if Path(str(path)).is_file()}
    return np.sort(np.array(list(hashes), np.uint64))


MOST_PHOTOS = 1000
REPLACES = 300  # captioned photos of one's own from which others are not needed
GENERAL = "COCO photos of the package"


def probes_of_captioned(
    model: Any,
    photos: Sequence[Any],
    captions: Sequence[str],
    owners: np.ndarray,
    source: str = "",
    towers: dict[str, Tower] | None = None,
) -> Probes:
    """The `halo_search.confidence.Probes` of a model by photos with captions, encoded now.

    ```python
    photos, texts = zoo.data.packaged_photos(), zoo.data.packaged_captions()
    captions = [caption for photo in photos for caption in texts[photo.name]]
    model = zoo.from_preset("photos_points")
    owners = np.arange(len(captions)) // 5
    probes = zoo.evaluation.probes_of_captioned(model, photos, captions, owners)
    ```

    They have `fits` where there are 60 photos with several captions in English. More
    than 1,000 photos or 2,000 captions are thinned to a part of the photos.

    Args:
        model: a `DualEncoder` that reads pictures and texts, else an InputError.
        photos, captions: N, what `Tower.of_files` takes, and M strings.
        owners: `(M,)`, the row of each caption's photo.
        source: what they are, in words.
        towers: of the model, by side; None makes them.
    """
    towers = towers or {side: Tower(model, side) for side in ("images", "captions")}
    towers["images"].expect("pictures")
    towers["captions"].expect("texts")
    owners = np.asarray(owners)
    counts = np.bincount(owners, minlength=len(photos))
    drawn = np.random.default_rng(0).permutation(np.flatnonzero(counts))[:MOST_PHOTOS]
    drawn = np.sort(drawn[np.cumsum(counts[drawn]) <= MOST])
    rows = np.flatnonzero(np.isin(owners, drawn))
    texts, owners = [str(captions[row]) for row in rows], np.searchsorted(drawn, owners[rows])
    images = towers["images"].of_files([photos[row] for row in drawn])
    asked = towers["captions"].of_texts(texts)
    probes = Probes.of(
        images,
        asked,
        np.arange(len(drawn)),
        owners,
        owners,
        measure=towers["captions"].measure,
        source=f"{source}: {len(drawn):,} images, {len(texts):,} captions",
        whole=np.ones(len(drawn), bool),
    )
    if len(drawn) < LEAST or np.median(np.bincount(owners)) < 2 or not _is_known(texts):
        return probes
    encode, sentences = towers["captions"].of_texts, _sentences(tuple(texts))
    bank = None
    if len(drawn) >= REPLACES:
        bank = Bank.of(centres(images), centres(asked), owners, texts)
    named = model.similarity, encode, source or "your own"
    captioned = Captioned(images, asked, owners, texts, sentences, *named, near=bank)
    # Questions of so few photos lower others' items too much, and what fits by such scores is not
    # what fits elsewhere: docs/results/generic_probes.md.
    return with_fits(probes, learn_fits(captioned, hubs=bank is not None), bank)


def general_probes(model: Any, towers: dict[str, Tower] | None = None) -> Probes | None:
    """As `probes_of_captioned`, by the photos of the package. An answer says that they are general,
    and its interval is as wide as was measured between photos of different sources. None where the
    model reads no pictures or no texts, or half of the captions' words are unknown to it."""
    towers = towers or {side: Tower(model, side) for side in ("images", "captions")}
    if (towers["images"].reads, towers["captions"].reads) != ("pictures", "texts"):
        return None
    photos, caption_texts = packaged_photos(), packaged_captions()
    texts = [text for photo in photos for text in caption_texts[photo.name]]
    words, unknown = unknown_words(model.tokenizer, texts)
    if unknown is not None and sum(map(len, unknown)) > (1 - KNOWN) * words.sum():
        return None
    owners = np.repeat(np.arange(len(photos)), [len(caption_texts[photo.name]) for photo in photos])
    probes = probes_of_captioned(model, photos, texts, owners, GENERAL, towers)
    fits = {
        side: dataclasses.replace(
            side_fits,
            trials=(),
            most=side_fits.ceiling,
            sentence=np.add(side_fits.sentence, (0, ELSEWHERE[0])),
        )
        for side, side_fits in probes.fits.items()
    }
    return dataclasses.replace(probes, fits=fits, general=np.ones(len(owners), bool))


def with_own(model, probes, before, towers=None):
    """Probes by a user's captioned photos, beside those that were there, or in their place."""
    given = model, probes.photos, probes.captions, probes.caption_image, "your own photos", towers
    own_probes = probes_of_captioned(*given)
    if before is None:
        before = general_probes(model, towers)
    if len(own_probes.image_labels) >= REPLACES or before is None:
        if before is None:
            return own_probes
        fits = (own_probes.fits, own_probes.bank) if own_probes.fits else (before.fits, before.bank)
        return dataclasses.replace(own_probes, known=before.known, fits=fits[0], bank=fits[1])
    if before.by_class:
        raise InputError(
            f"expected at least {REPLACES} photos with captions in place of probes that are of "
            f"classes; received {len(own_probes.image_labels)}"
        )
    return before.beside(own_probes)


def bank_of_training(model: DualEncoder, train: Split | None, seed: int = 0) -> Bank | None:
    """The `Bank` of photos of training, or of a random part; None of hardly any."""
    if train is None or train.records.num_images <= NEAREST:
        return None
    records = train.records
    chosen = np.sort(np.random.default_rng(seed).permutation(records.num_images)[:MOST_BANK])
    some = records.select(chosen)
    encoded = encode(model, some, train.source.select(chosen))
    texts = [str(caption) for caption in some.captions]
    means = centres(encoded.images), centres(encoded.captions)
    return Bank.of(*means, np.asarray(some.caption_image), texts)


def captioned_of(encoded, split, similarity, model, probes):
    """What a split that training has not seen teaches of other items than the wanted one."""
    records = encoded.records
    enough = records.num_images >= LEAST
    several = enough and np.median(np.bincount(records.caption_image)) >= 2
    if not several or split.true_matches is not None or not reads_texts(model, records):
        return None
    photos = np.arange(min(records.num_images, MOST_PHOTOS))
    rows = np.flatnonzero(np.isin(records.caption_image, photos))
    texts = [str(records.captions[row]) for row in rows]
    return Captioned(
        {name: np.asarray(value)[photos] for name, value in encoded.images.items()},
        {name: np.asarray(value)[rows] for name, value in encoded.captions.items()},
        np.asarray(records.caption_image)[rows],
        texts,
        sentence_vectors(texts),
        similarity,
        model.tower("captions").of_texts,
        records.name,
        {direction: probes.items(direction) for direction in ("t2i", "i2t")},
    )


def reads_texts(model: DualEncoder, records: Any) -> bool:
    """Whether a model is asked in words, and the captions of a split are words."""
    has_words = len(records.captions) and isinstance(records.captions[0], (str, np.str_))
    return bool(has_words) and model.tokenizer is not None and not model.reads_caption_vectors


def _is_known(texts):
    """Whether captions are in the language of the caption bank, and so of the sentence encoder."""
    bank = packaged_bank()
    every = [stem for text in texts for stem in stems(text)]
    return bool(every) and np.mean([len(bank.photos_with(word)) > 0 for word in every]) >= KNOWN


@functools.lru_cache(maxsize=2)  # the packaged and those of one folder
def _sentences(texts):
    return sentence_vectors(texts)
