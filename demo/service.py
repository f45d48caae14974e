"""What can be asked of the demo, as functions with types: the page and the API both call these."""

from typing import TypedDict

from demo import answers, elements, erasing, limits, narrowing, verdicts
from demo.answers import Answer
from demo.curves import risk_coverage
from demo.erasing import Box
from demo.sureness import RISKS

USUAL, EVERYTHING = -1, 1  # instead of a share of wrong answers


class Word(TypedDict):
    """A word of a caption, and what becomes of it when the word is left out."""

    word: str
    probability_without: float | None
    uncertainty_without: float | None


class TextAnswer(TypedDict):
    """The images that a caption finds, its words, and what would narrow it down."""

    caption: str
    answer: Answer
    unknown_words: list[str]
    words: list[Word]
    narrow_it_down: list[narrowing.Group]


class ErasedAnswer(TypedDict):
    """The uncertainty of an image with and without a region."""

    uncertainty: float | None
    uncertainty_without_region: float | None
    uncertainty_percentile: float | None
    meaning: str
    change_by_place: list[list[float]] | None
    erased_percent: list[int]
    uncertainty_by_erased_percent: list[float] | None


class Service:
    """The demo's functions over one gallery.

    Args:
        gallery: a `Gallery`.
        quality: its `UncertaintyQuality`.
    """

    def __init__(self, gallery, quality):
        self.gallery, self.quality = gallery, quality
        usual = gallery.sureness("captions").usual
        self.usual_risk = None if usual is None else usual.risk

    def find_images(
        self,
        caption: str,
        similarity: str | None = None,
        results: int = 8,
        wrong_at_most: float = USUAL,
        anyway: bool = False,
    ) -> TextAnswer:
        """The images that a caption describes, or why there is no answer.

        Args:
            caption: what to look for.
            similarity: how to rank; None as the model was trained.
            results: how many.
            wrong_at_most: share of wrong answers, one of 0.1, 0.2, 0.333, 0.5 and 0.667: a query
                is declined where it cannot be kept. 1 answers everything, −1 is the gallery's own.
            anyway: whether a declined query has results too.
        """
        caption = limits.text(caption)
        risk, similarity = self.risk(wrong_at_most), self._similarity(similarity)
        results = limits.whole(results, "The number of results", 1, limits.MAX_RESULTS)
        gallery, words = self.gallery, caption.split()
        without = [" ".join(words[:i] + words[i + 1 :]) for i in range(len(words))]
        without = without if len(words) > 1 and gallery.encoders.reads_words else []
        embedding = gallery.encoders.captions([caption, *without])
        judgement, *others = self.judge([caption, *without], embedding, similarity)
        query = {key: value[:1] for key, value in embedding.items()}
        found = answers.search(
            gallery, query, "images", judgement, risk, similarity, results, anyway
        )
        uncertainties = gallery.encoders.uncertainty(embedding)
        groups = []
        if found["probability"] is not None and gallery.encoders.reads_words:
            groups = narrowing.groups(
                gallery,
                caption,
                query,
                lambda texts: self.judge(texts, gallery.encoders.captions(texts), similarity),
                found["probability"],
            )
        return TextAnswer(
            caption=caption,
            answer=self._marked(found, caption),
            unknown_words=gallery.encoders.unknown_words(caption),
            words=[
                Word(
                    word=word,
                    probability_without=other.probability if other.kind == "known" else None,
                    uncertainty_without=None
                    if uncertainties is None
                    else float(uncertainties[i + 1]),
                )
                for i, (word, other) in enumerate(zip(words, others, strict=False))
            ],
            narrow_it_down=groups,
        )

    def find_captions(self, image, similarity=None, results=8, wrong_at_most=USUAL, anyway=False):
        """The captions that describe an image: an `Answer`. `image` is the path of a file."""
        if not self.gallery.captions:
            raise limits.RefusedError(
                "This gallery has no captions to find. Start the demo with --captions FILE."
            )
        risk, similarity = self.risk(wrong_at_most), self._similarity(similarity)
        results = limits.whole(results, "The number of results", 1, limits.MAX_RESULTS)
        embedding = self.gallery.encoders.images([self.pixels(image)])
        (judgement,) = self.gallery.sureness("images", similarity).judge(self.gallery, embedding)
        return answers.search(
            self.gallery, embedding, "captions", judgement, risk, similarity, results, anyway
        )

    def erase_region(self, image, left=30, top=30, width=40, height=40):
        """What erasing a region, in percent of the image, does: an `ErasedAnswer` and pixels."""
        pixels = self.pixels(image)
        names = ("Left", "Top", "Width", "Height")
        values = zip(names, (left, top, width, height), strict=True)
        box = Box(*(limits.between(value, name, 0, 100) for name, value in values))
        erased = erasing.effect(self.gallery, pixels, box)
        places = erasing.sweep(self.gallery, pixels)
        growing = erasing.growing(self.gallery, pixels, box)
        return ErasedAnswer(
            uncertainty=erased.before,
            uncertainty_without_region=erased.after,
            uncertainty_percentile=erased.percentile,
            meaning=erased.meaning,
            change_by_place=None if places is None else places.tolist(),
            erased_percent=list(erasing.SHARES),
            uncertainty_by_erased_percent=None if growing is None else growing.tolist(),
        ), erased.pixels

    def describe_elements(self, image):
        """The elements of an image's set: attention and nearest caption, `Element`s."""
        if self.gallery.kind != "a set":
            raise limits.RefusedError(
                f"This model embeds every image as {self.gallery.kind}, which has no elements."
            )
        return elements.describe(self.gallery, self.pixels(image))

    def risk_coverage(self, direction: str = "t2i") -> dict:
        """The risk–coverage curve of "t2i" (captions find images) or "i2t", with a sentence."""
        if direction not in ("t2i", "i2t"):
            raise limits.RefusedError("The direction has to be t2i or i2t.")
        if self.quality.why_not:
            return {"sentence": self.quality.why_not, "source": None}
        curves = self.quality.curves()
        curve = {
            key: value.tolist() if hasattr(value, "tolist") else value
            for key, value in curves[direction]["risk_coverage"].items()
        }
        sentence = risk_coverage(curves, direction)[1]
        return {**curve, "sentence": sentence, "source": self.quality.source}

    def describe_gallery(self) -> dict:
        """The model, the gallery, the similarities that rank it, and what is promised of it."""
        gallery = self.gallery
        return {
            "model": gallery.model.name,
            "gallery": gallery.name,
            "images": len(gallery.image_names),
            "captions": len(gallery.captions),
            "embedding": gallery.kind,
            "uncertainty_measure": gallery.encoders.measure,
            "similarities": gallery.similarity_names,
            "promises": {
                side: {
                    "source": gallery.sureness(side).source,
                    "at_most_wrong": [one._asdict() for one in gallery.sureness(side).promises],
                }
                for side in ("captions", "images")
            },
        }

    def pixels(self, image):
        """The pixels of an uploaded file as the model sees them."""
        return self.gallery.encoders.pixels(limits.picture(image))

    def judge(self, texts, embedding, similarity=None):
        """A `Judgement` of each of some captions, of which the embeddings are there."""
        return self.gallery.sureness("captions", similarity).judge(self.gallery, embedding, texts)

    def _marked(self, answer, caption):
        """An answer whose results say whether they are right, if the caption is the gallery's."""
        gallery = self.gallery
        if gallery.records is None or caption not in gallery.row_of_caption:
            return answer
        label = gallery.records.caption_labels[gallery.row_of_caption[caption]]
        for result in answer["results"]:
            result["right"] = bool(gallery.records.image_labels[result["item"]] == label)
        return answer

    def risk(self, wrong_at_most):
        """The risk of `sureness.RISKS` that a share of wrong answers names, None for all."""
        value = limits.between(wrong_at_most, "The share of wrong answers", USUAL, EVERYTHING)
        if value == USUAL:
            return self.usual_risk
        if value == EVERYTHING:
            return None
        nearest = min(RISKS, key=lambda risk: abs(risk - value))
        if abs(nearest - value) > 0.01:
            listed = ", ".join(verdicts.share(risk) for risk in RISKS)
            raise limits.RefusedError(f"The share of wrong answers has to be one of {listed}.")
        return nearest

    def _similarity(self, similarity):
        if similarity is not None and similarity not in self.gallery.similarity_names:
            names = ", ".join(self.gallery.similarity_names)
            raise limits.RefusedError(f"The similarity has to be one of {names}.")
        return similarity
