"""What can be asked of the demo, as functions with types: the page and the API both call these."""

from typing import TypedDict

from demo import ambiguity, answers, elements, erasing, limits
from demo.answers import Answer
from demo.curves import risk_coverage
from demo.erasing import Box

DECLINE_ABOVE = 95.0


class TextAnswer(TypedDict):
    """The images that a caption finds, and what makes the caption certain or not."""

    caption: str
    answer: Answer
    caveats: list[str]
    without_each_word: list[ambiguity.Change]
    additions_that_narrow_it_down: list[ambiguity.Change]
    omissions_that_narrow_it_down: list[ambiguity.Change]


class ErasedAnswer(TypedDict):
    """The uncertainty of an image with and without a region."""

    uncertainty: float | None
    uncertainty_without_region: float | None
    uncertainty_percentile: float | None
    meaning: str
    change_by_place: list[list[float]] | None
    erased_percent: list[int]
    uncertainty_by_erased_percent: list[float] | None


class Certainty(TypedDict):
    """The uncertainty of a text."""

    caption: str
    uncertainty: float | None
    uncertainty_percentile: float | None
    meaning: str


class Service:
    """The demo's functions over one gallery.

    Args:
        gallery: a `Gallery`.
        quality: its `UncertaintyQuality`.
    """

    def __init__(self, gallery, quality):
        self.gallery, self.quality = gallery, quality

    def find_images(
        self,
        caption: str,
        similarity: str | None = None,
        results: int = 8,
        decline_above: float = DECLINE_ABOVE,
    ) -> TextAnswer:
        """The images that a caption describes, or why there is no answer.

        Args:
            caption: what to look for.
            similarity: how to rank; None as the model was trained.
            results: how many.
            decline_above: percentile of uncertainty from which nothing is answered; 100 always
                answers.
        """
        caption = limits.text(caption)
        embedding, removals, additions = ambiguity.examine(self.gallery, caption)
        answer = self._search(embedding, "images", similarity, results, decline_above)
        return TextAnswer(
            caption=caption,
            answer=answer,
            caveats=ambiguity.caveats(self.gallery, caption),
            without_each_word=removals,
            additions_that_narrow_it_down=additions,
            omissions_that_narrow_it_down=ambiguity.omissions(self.gallery, removals),
        )

    def keep_words(self, caption: str, kept: list[int]) -> Certainty:
        """The uncertainty of a caption of which only the words at some positions (from 0) stay."""
        caption = limits.text(caption)
        kept = [limits.whole(place, "A word's position", 0, limits.MAX_WORDS) for place in kept]
        recall_bins = self.quality.of("captions")
        text, *rest = ambiguity.keep_words(self.gallery, caption, kept, recall_bins)
        return Certainty(
            caption=text, uncertainty=rest[0], uncertainty_percentile=rest[1], meaning=rest[2]
        )

    def find_captions(self, image, similarity=None, results=8, decline_above=DECLINE_ABOVE):
        """The captions that describe an image: an `Answer`. `image` is the path of a file."""
        if not self.gallery.captions:
            raise limits.RefusedError(
                "This gallery has no captions to find. Start the demo with --captions FILE."
            )
        embedding = self.gallery.encoders.images([self.pixels(image)])
        return self._search(embedding, "captions", similarity, results, decline_above)

    def erase_region(self, image, left=30, top=30, width=40, height=40):
        """What erasing a region, in percent of the image, does: an `ErasedAnswer` and pixels."""
        pixels = self.pixels(image)
        names = ("Left", "Top", "Width", "Height")
        values = zip(names, (left, top, width, height), strict=True)
        box = Box(*(limits.between(value, name, 0, 100) for name, value in values))
        erased = erasing.effect(self.gallery, pixels, box, self.quality.of("images"))
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
        """The model, the gallery and the similarities that it can be ranked by."""
        gallery = self.gallery
        return {
            "model": gallery.model.name,
            "gallery": gallery.name,
            "images": len(gallery.image_names),
            "captions": len(gallery.captions),
            "embedding": gallery.kind,
            "uncertainty_measure": gallery.encoders.measure,
            "similarities": gallery.similarity_names,
        }

    def pixels(self, image):
        """The pixels of an uploaded file as the model sees them."""
        return self.gallery.encoders.pixels(limits.picture(image))

    def _search(self, embedding, side, similarity, results, decline_above):
        results = limits.whole(results, "The number of results", 1, limits.MAX_RESULTS)
        decline_above = limits.between(decline_above, "The threshold", 0, 100)
        if similarity is not None and similarity not in self.gallery.similarity_names:
            names = ", ".join(self.gallery.similarity_names)
            raise limits.RefusedError(f"The similarity has to be one of {names}.")
        recall_bins = self.quality.of("captions" if side == "images" else "images")
        return answers.search(
            self.gallery, embedding, side, similarity, results, decline_above, recall_bins
        )
