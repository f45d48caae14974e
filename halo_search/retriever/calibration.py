"""What is known of the answers of one gallery: held-out probes, and the judge that they make."""

import dataclasses
from typing import Any

import numpy as np

from halo_search.confidence import Confidence, GalleryIdentity, Probes
from halo_search.confidence.bank import Bank, Near
from halo_search.confidence.calibrate import AtChanceError
from halo_search.confidence.fits import Fits
from halo_search.confidence.judge import Judge
from halo_search.confidence.probes import OF_CORRECTED, direction_of
from halo_search.embeddings.arrays import centres, length, take
from halo_search.embeddings.checks import numbered
from halo_search.index import Index, scoring
from halo_search.retriever.gallery_model import GalleryModel
from halo_search.retriever.wording import Wording

OTHER = {"images": "captions", "captions": "images"}  # the side that asks
_NOUNS = {"images": "photo", "captions": "caption"}


class Calibration:
    """The judge of a gallery: made when it is first asked for, and again once the gallery has grown
    or shrunk by more than 5 %.

    Every method holds the lock of the index.

    Args:
        index: what is searched.
        model: what embeds questions.
        probes: held-out pairs; None: the package's captioned photos, where the model reads them.

    Attributes:
        index, model, probes: as given; `probes` are others once `calibrate` was called, or the
            general ones were needed.
        latest: the `Judge` of the last calibration, or None before the first one.
    """

    def __init__(self, index: Index, model: GalleryModel, probes: Probes | None = None):
        self.index, self.model, self.probes = index, model, probes
        self.latest: Judge | None = None
        self._near: Near | None = None  # of the items that `near` has seen last

    @property
    def side(self) -> str:
        """What the gallery holds, `"images"` or `"captions"`."""
        return self.index.description["side"]

    @property
    def noun(self) -> str:
        """What an item is called, `"photo"` or `"caption"`."""
        return _NOUNS[self.side]

    @property
    def judge(self) -> Judge:
        """The `Judge` of the gallery as it is now."""
        with self.index.lock:
            if self.latest is None or self._is_outgrown(self.latest):
                self.latest = self._calibrated()
            return self.latest

    def _is_outgrown(self, judge):
        """Whether the gallery has changed in size too much for a judge."""
        confidence = judge.confidence
        return confidence is not None and confidence.is_void(len(self.index))

    def _calibrated(self):
        """A judge calibrated now, by asking the probes. Without probes, or where they cannot
        calibrate, a judge that reports why there are no probabilities."""
        if self.probes is None and len(self.index):
            self.probes = self.model.general_probes()
        if self.probes is None:
            return Judge(noun=self.noun)
        if not self.are_of_this_width:
            return self.without_probabilities("the probes are of a model of another dimension")
        try:
            confidence = self.probes.calibrate(self.index)
        except ValueError as error:
            return self.without_probabilities(str(error), isinstance(error, AtChanceError))
        return self._judge_by(confidence)

    def without_probabilities(self, why_not: str, at_chance: bool = False) -> Judge:
        """A judge that only tells questions that the model does not understand."""
        known = self.probes.known.get(direction_of(self.side)) if self.are_of_this_width else None
        return Judge(why_not=why_not, known=known, at_chance=at_chance, noun=self.noun)

    def judge_for(self, side: str) -> Judge:
        """The judge of questions of a side; without probabilities of the gallery's own side, which
        no probe asks."""
        judge = self.judge
        if side != self.side:
            return judge
        return Judge(why_not=f"this gallery is calibrated for {OTHER[side]}, not for {side}")

    def _judge_by(self, confidence):
        """The judge of the gallery as it is now, by a calibration."""
        probes = self.probes
        return Judge(
            confidence,
            fits=self._fits_by(confidence),
            by_class=probes is not None and probes.by_class,
            known=confidence.known,
            gallery=GalleryIdentity.of_index(self.index),
            noun=self.noun,
            note="" if probes is None else probes.note,
        )

    def _fits_by(self, confidence) -> Fits | None:
        """What was learnt in training of which items fit, weighted by how like the probes are to
        this gallery; None where the index ranks otherwise than the model was trained to."""
        if self.probes is None or not self.ranks_as_trained:
            return None
        of_these_scores = "" if self.index.hubs is None else OF_CORRECTED
        fits = self.probes.fits.get(of_these_scores + direction_of(self.side))
        if fits is None or confidence.in_gallery is None:
            return fits
        return fits.near(confidence.in_gallery.likeness)

    @property
    def ranks_as_trained(self) -> bool:
        """Whether the index ranks by the similarity that the model was trained with."""
        return scoring.rank_alike(self.model.similarity, self.index.similarity)

    @property
    def bank(self) -> Bank | None:
        """The captioned photos of the probes, or None."""
        return self.probes.bank if self.are_of_this_width else None

    @property
    def are_of_this_width(self) -> bool:
        """Whether there are probes as wide as the items: those of another model may not be."""
        if self.probes is None:
            return False
        width = centres(take(self.probes.images, slice(0, 1))).shape[-1]
        return width == self.index.description["dim"]

    @property
    def wording(self) -> Wording:
        """The words that the model and the captions of the probes know."""
        return Wording(self.model, self.bank)

    @property
    def near(self) -> Near | None:
        """What the captioned photos of the probes show near each item; None without any, and for a
        gallery of captions."""
        bank = self.bank
        if bank is None or self.side != "images" or not isinstance(self.index, Index):
            return None
        with self.index.lock:
            if self._near is None or len(self._near) != len(self.index):
                vectors = self.index.item_vectors(np.arange(len(self.index)))
                self._near = bank.near(vectors[:, : bank.images.shape[1]])
            return self._near

    def calibrate(self, probes: Probes) -> Confidence:
        """Replaces the probes, and calibrates by them; a ValueError if they cannot be calibrated
        on, and nothing has changed then."""
        with self.index.lock:
            confidence = probes.calibrate(self.index)
            self.probes, self._near = probes, None
            self.latest = self._judge_by(confidence)
        return confidence

    def restore(self, confidence: Confidence | None, near: Near | None) -> None:
        """Takes over a saved calibration of the gallery as it is."""
        self._near = near
        if confidence is not None:
            self.latest = self._judge_by(confidence)

    def items_changed(self) -> None:
        """Drops what is true of the items before alone: a change of a few keeps the calibration,
        and certifies nothing."""
        self._near = None
        confidence = None if self.latest is None else self.latest.confidence
        has_judge = confidence is not None and len(self.index) > 0
        self.latest = self._judge_by(confidence) if has_judge else None


def probes_of_pairs(
    side: str, queries: Any, items: Any, groups: Any, before: Probes | None
) -> Probes:
    """`Probes` of a user's pairs, with what the model's probes know beside them.

    Args:
        side: of the gallery.
        queries, items: Q embeddings each, row by row.
        groups: `(Q,)`, which questions belong together, or None.
        before: the probes whose place these take, or None.

    Raises:
        ValueError: if queries and items are not as many.
    """
    if length(queries) != length(items):
        raise ValueError(
            f"`own` must hold one item a question, {length(queries)}; received {length(items)}"
        )
    images, captions = (queries, items) if side == "captions" else (items, queries)
    more, rows = {}, np.arange(length(items))
    if before is not None:  # what is known of its items is not of these
        fits = {
            name: dataclasses.replace(learnt, strangers=None)
            for name, learnt in before.fits.items()
        }
        more = {"known": before.known, "fits": fits}
    if side == "images" and groups is not None:
        more["caption_images"] = numbered(groups, length(queries))
    return Probes.of(images, captions, rows, rows, source="pairs of your own", **more)
