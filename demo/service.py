"""What can be asked of the demo, as functions with types: the page and the API both call these.

Answers are those of `zoo.Retriever.ask`; this adds what a picture needs beside them.
"""

import functools
import sys

import numpy as np

from demo import limits, why
from demo.gallery import OTHER
from demo.map_layout import Map
from halo_search.confidence.judge import FIT

SHOWN = 120  # results that a page gets with an answer
MOST_LISTED = 240  # of a list of all that fits
NEIGHBOURS = 12


class Service:
    """The demo's functions over one gallery.

    Args:
        gallery: a `Gallery`.
    """

    def __init__(self, gallery):
        self.gallery = gallery
        self.map = Map(gallery)

    def find_images(
        self,
        caption: str,
        similarity: str | None = None,
        results: int = 8,
        among: list | str | None = None,
    ) -> dict:
        """The images that a caption describes, and how likely each fits.

        Args:
            caption: what to look for.
            similarity: how to rank; None as the model was trained.
            results: how many at most.
            among: names of the images to look among, or a pattern such as "2019/*"; None is all.
        """
        self._expect("images")
        caption = limits.text(caption)
        retriever = self._retriever("captions", similarity)
        results = limits.whole(results, "The number of results", 1, SHOWN)
        (question,) = self.gallery.questions([caption])
        try:
            answer = retriever.ask(question, results, among)
        except ValueError as error:
            raise limits.RefusedError(_as_sentence(error)) from None
        found = self._answered(answer, retriever, "images")
        found |= {"question": caption, "unknown_words": self.gallery.unknown_words(found["asked"])}
        if not self.gallery.reads_words:
            found["asked"] = caption
        return self._marked(found, caption)

    def find_all(
        self,
        caption: str,
        least: float = FIT,
        similarity: str | None = None,
        offset: int = 0,
        results: int = 24,
        among: list | str | None = None,
    ) -> dict:
        """All images that fit a caption; the list of `search query --all`.

        Args:
            caption: what to look for.
            least: the probability of fitting from which an image is on the list, 0.01 to 1.
            similarity: how to rank; None as the model was trained.
            offset: how many of them to pass over.
            results: how many at most.
            among: as of `find_images`.
        """
        self._expect("images")
        caption = limits.text(caption)
        retriever = self._retriever("captions", similarity)
        least = limits.between(least, "The probability", 0.01, 1)
        offset = limits.whole(offset, "The offset", 0, len(self.gallery.image_names))
        results = limits.whole(results, "The number of results", 1, MOST_LISTED)
        (question,) = self.gallery.questions([caption])
        try:
            page = retriever.all(question, offset, results, least, among)
        except ValueError as error:
            raise limits.RefusedError(_as_sentence(error)) from None
        found = self._answered(page.answer, retriever, "images")
        found |= {"question": caption, "total": page.total, "offset": offset, "unfit": page.unfit}
        for result in found["results"]:
            result["rank"] += offset
        return self._marked(found, caption)

    def find_captions(self, image, similarity=None, results=8):
        """The captions that describe an image. `image` is the path of a file."""
        self._expect("captions")
        retriever = self._retriever("images", similarity)
        results = limits.whole(results, "The number of results", 1, SHOWN)
        embedding = self.gallery.of_pixels([self.pixels(image)])
        return self._captions(retriever, embedding, results)

    def captions_of(self, row: int, results: int = 5) -> dict:
        """The captions that describe an image of the gallery."""
        self._expect("captions")
        retriever = self._retriever("images", None)
        return self._captions(retriever, self.gallery.take("images", [self._row(row)]), results)

    def describe_gallery(self) -> dict:
        """The model, the gallery, the similarities that rank it, and how its answers are judged."""
        gallery = self.gallery
        return {
            "model": self.model_name,
            "gallery": gallery.name,
            "images": len(gallery.image_names),
            "captions": len(gallery.captions),
            "embedding": gallery.kind,
            "uncertainty_measure": gallery.measure,
            "similarities": gallery.similarity_names,
            "judged": {side: self._judged(side) for side in ("captions", "images")},
        }

    def photos(self, offset=0, count=60):
        """Some photos in the gallery's own order, as results without a question."""
        rows = range(len(self.gallery.image_names))[offset : offset + count]
        return [self._item(row, "images") for row in rows]

    def similar(self, row, count=NEIGHBOURS):
        """The nearest images of an image of the gallery, most similar first, without itself.

        An image is no question whose answers are calibrated, so there are no probabilities.
        """
        row = self._row(row)
        return self._nearest(self.gallery.take("images", [row]), count + 1, without=row)[:count]

    def similar_to(self, image, count=SHOWN):
        """The images nearest to one that is sent, the path of its file."""
        self._expect("images")
        return self._nearest(self.gallery.of_pixels([self.pixels(image)]), count)

    def without_words(self, caption, similarity=None):
        """For every word of a caption the probability without it, and the best photo then.

        Returns a dict: the caption's `words`, and for each `{"probability", "item"}` or None where
        nothing would be left to ask.
        """
        self._expect("images")
        caption = limits.text(caption)
        words = caption.split()
        if not self.gallery.reads_words or len(words) < 2:
            return {"words": words, "without": [None] * len(words)}
        texts = [" ".join(words[:i] + words[i + 1 :]) for i in range(len(words))]
        asked = [text for text in texts if any(c.isalnum() for c in text)]
        answers = self._retriever("captions", similarity).ask(asked, 1)
        by_text = dict(zip(asked, answers, strict=True))
        return {"words": words, "without": [self._first(by_text.get(text)) for text in texts]}

    def reasons(self, caption, similarity=None):
        """What an answer rests on: see `why.evidence`."""
        self._expect("images")
        caption = limits.text(caption)
        (question,) = self.gallery.questions([caption])
        return why.evidence(self.gallery, self._retriever("captions", similarity), question)

    @property
    def has_attention(self):
        """Whether the elements of photos look at parts of them: of sets by a model of pictures."""
        return self.gallery.kind == "a set" and self.gallery.reads_words

    def attended(self, row):
        """For every element of a photo's set the largest attention of a part, as a multiple of an
        even spread: `{"most": K numbers}`."""
        return {"most": self._attention.most(self._row(row))}

    def attention_picture(self, row, element):
        """JPEG bytes of a photo that is pale where one element of its set does not look."""
        element = limits.whole(element, "The element", 0, 10**3)
        return self._attention.picture(self._row(row), element)

    @functools.cached_property
    def _attention(self):
        if not self.has_attention:
            raise limits.RefusedError("Only the elements of a set look at parts of a photo.")
        from demo.attention import Attention  # which needs `zoo`, and Keras

        return Attention(self.gallery)

    def pixels(self, image):
        """The pixels of an uploaded file as the model sees them."""
        return limits.picture(image, self.gallery.pixels)

    @property
    def model_name(self):
        """What the model is called."""
        return self.gallery.called

    def _answered(self, answer, retriever, side):
        """An `Answer` as JSON values, with its `results` for the page."""
        found = answer.to_dict()
        rows, fits, scores = _by_probability(
            self.gallery.rows(answer.ids), answer.fits, answer.scores
        )
        ends = _ends(answer, retriever, fits)
        found["results"] = [
            {
                **self._item(row, side),
                "rank": rank,
                "similarity": score,
                "fits": fit,
                "interval": interval,
                "right": None,
            }
            for rank, (row, score, fit, interval) in enumerate(
                zip(rows, scores, fits, ends, strict=True), 1
            )
        ]
        # How many of the first 1, 2, … results are expected to fit: what the page's slider says.
        found["expected"] = None if answer.fits is None else np.cumsum(fits).tolist()
        for name in ("ids", "scores", "fits", "names"):  # they are in the results
            found.pop(name, None)
        return found

    def _captions(self, retriever, embedding, results):
        return self._answered(retriever.ask(embedding, results), retriever, "captions")

    def _item(self, row, side):
        """What the page shows of an item beside an answer."""
        gallery, row = self.gallery, int(row)
        shares = gallery.uncertainty_shares.get(side) if side == "captions" else self._image_shares
        item = {
            "item": row,
            "name": gallery.names(side)[row],
            "uncertainty": None if shares is None else float(shares[row]),
        }
        if side == "images":
            item["ratio"] = round(gallery.pictures.ratio(row), 4)
            item["address"] = gallery.pictures.address(row)
            item["description"] = gallery.describe(row)
            if gallery.credits is not None:
                item["credit"] = gallery.credits[row]._asdict()
        return item

    @property
    def _image_shares(self):
        return self.gallery.uncertainty_shares.get("images")

    def _nearest(self, embedding, count, without=None):
        index = self.gallery.index("images")
        if not len(index):
            return []
        scores, ids = (part[0] for part in index.search(embedding, min(count, len(index))))
        rows = self.gallery.rows(ids[ids >= 0])
        pairs = zip(rows, scores[ids >= 0], strict=True)
        return [
            {**self._item(row, "images"), "similarity": float(score)}
            for row, score in pairs
            if row != without
        ]

    def _first(self, answer):
        if answer is None or not len(answer.ids):
            return None
        item = int(self.gallery.rows(answer.ids[:1])[0])
        return {"probability": answer.probability, "verdict": answer.verdict, "item": item}

    def _row(self, row):
        if "map" in self.gallery.missing:
            raise limits.RefusedError(self.gallery.missing["map"])
        return limits.whole(row, "The photo", 0, len(self.gallery.image_names) - 1)

    def _expect(self, side):
        if not self.gallery.names(side) and side != self.gallery.main_side:
            raise limits.RefusedError(
                self.gallery.missing.get(side)
                or "This gallery has no captions to find. Start the demo with --captions FILE."
            )

    def _judged(self, side):
        """What is known of the answers to one side's questions, in JSON values."""
        answers = OTHER[side]
        if not self.gallery.names(answers):
            return {"calibrated": False, "why_not": f"this gallery has no {answers}"}
        judge = self.gallery.retriever(side).judge
        if judge.confidence is None:
            return {"calibrated": False, "why_not": judge.why_not}
        enough = judge.length(0.1)
        return {
            "calibrated": True,
            "probes": judge.confidence.num_queries,
            "likely_from": judge.threshold,
            "certified": judge.cut is not None,
            "first_k": None if enough == sys.maxsize else enough,
        }

    def _marked(self, answer, caption):
        """An answer whose results say whether they are right, if the caption is the gallery's."""
        gallery = self.gallery
        if gallery.records is None or caption not in gallery.row_of_caption:
            return answer
        label = gallery.records.caption_labels[gallery.row_of_caption[caption]]
        for result in answer["results"]:
            result["right"] = bool(gallery.records.image_labels[result["item"]] == label)
        return answer

    def _retriever(self, asked, similarity):
        names = self.gallery.similarity_names
        if similarity is not None and similarity not in names:
            raise limits.RefusedError(f"The similarity has to be one of {', '.join(names)}.")
        return self.gallery.retriever(asked, similarity)


def _by_probability(rows, fits, scores):
    """Results by how likely they fit, likeliest first: `(rows, fits, scores)` as lists."""
    rows, scores = np.asarray(rows), np.asarray(scores, float)
    if fits is None:
        return rows.tolist(), [None] * len(rows), scores.tolist()
    order = np.argsort(-np.asarray(fits), kind="stable")
    return rows[order].tolist(), np.asarray(fits, float)[order].tolist(), scores[order].tolist()


def _ends(answer, retriever, fits):
    """`(low, high)` of every result where the answer's first has an interval, else None."""
    confidence = retriever.confidence
    if answer.interval is None or confidence is None:
        return [None] * len(fits)
    low, high = confidence.interval(np.clip(fits, 1e-6, 1 - 1e-6))
    return np.stack([low, high], axis=1).tolist()


def _as_sentence(error):
    return f"{str(error).replace('`', '').rstrip('.')}."
