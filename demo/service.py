"""What can be asked of the demo, as functions with types: the page and the API both call these."""

import sys
from typing import TypedDict

from demo import answers, limits
from demo.answers import Answer, Everything
from halo_search.confidence.judge import FIT

_MOST = 10 * limits.MAX_RESULTS  # of a list of all that fits


class TextAnswer(TypedDict):
    """The images that a caption finds, what the model was asked, which leaves out words such as
    "photos of", and the words that the model does not know."""

    caption: str
    asked: str
    answer: Answer
    unknown_words: list[str]


class Service:
    """The demo's functions over one gallery.

    Args:
        gallery: a `Gallery`.
    """

    def __init__(self, gallery):
        self.gallery = gallery

    def find_images(
        self,
        caption: str,
        similarity: str | None = None,
        results: int = 8,
        among: list | str | None = None,
    ) -> TextAnswer:
        """The images that a caption describes, and how likely each fits.

        Args:
            caption: what to look for.
            similarity: how to rank; None as the model was trained.
            results: how many at most.
            among: names of the images to look among, or a pattern such as "2019/*"; None is all.
        """
        self._expect("images")
        caption, similarity = limits.text(caption), self._similarity(similarity)
        results = limits.whole(results, "The number of results", 1, limits.MAX_RESULTS)
        self._part(similarity, among)
        gallery = self.gallery
        # Stored captions are known by their own words, and there is nothing to take off them.
        asked = gallery.asker.as_asked(caption) if gallery.reads_words else caption
        query = gallery.of_words([asked])
        (judgement,) = gallery.judge("captions", query, [asked], similarity, results, among)
        found = answers.search(gallery, query, "images", judgement, similarity, results, among)
        return TextAnswer(
            caption=caption,
            asked=asked,
            answer=self._marked(found, caption),
            unknown_words=gallery.unknown_words(asked),
        )

    def find_all(
        self,
        caption: str,
        least: float = FIT,
        similarity: str | None = None,
        offset: int = 0,
        results: int = limits.MAX_RESULTS,
        among: list | str | None = None,
    ) -> Everything:
        """All images that fit a caption; the list of `search query --all`.

        Args:
            caption: what to look for.
            least: the probability of fitting from which an image is on the list, 0.1 to 0.9.
            similarity: how to rank; None as the model was trained.
            offset: how many of them to pass over.
            results: how many at most.
            among: as of `find_images`.
        """
        self._expect("images")
        caption, similarity = limits.text(caption), self._similarity(similarity)
        self._part(similarity, among)
        least = limits.between(least, "The probability", answers.MANY, answers.FEW)
        offset = limits.whole(offset, "The offset", 0, len(self.gallery.image_names))
        results = limits.whole(results, "The number of results", 1, _MOST)
        more = least, similarity, offset, results, among
        try:
            found = answers.everything(self.gallery, caption, "images", *more)
        except ValueError as error:
            raise limits.RefusedError(f"{str(error).rstrip('.')}.") from None
        return self._marked(found, caption)

    def find_captions(self, image, similarity=None, results=8):
        """The captions that describe an image: an `Answer`. `image` is the path of a file."""
        self._expect("captions")
        similarity = self._similarity(similarity)
        results = limits.whole(results, "The number of results", 1, limits.MAX_RESULTS)
        query = self.gallery.of_pixels([self.pixels(image)])
        (judgement,) = self.gallery.judge("images", query, name=similarity, k=results)
        return answers.search(self.gallery, query, "captions", judgement, similarity, results)

    def describe_gallery(self) -> dict:
        """The model, the gallery, the similarities that rank it, and how its answers are judged."""
        gallery = self.gallery
        return {
            "model": gallery.model_name or gallery.asker.model.name,
            "gallery": gallery.name,
            "images": len(gallery.image_names),
            "captions": len(gallery.captions),
            "embedding": gallery.kind,
            "uncertainty_measure": gallery.measure,
            "similarities": gallery.similarity_names,
            "judged": {side: self._judged(side) for side in ("captions", "images")},
        }

    def pixels(self, image):
        """The pixels of an uploaded file as the model sees them."""
        return limits.picture(image, self.gallery.pixels)

    def _expect(self, side):
        if not self.gallery.names(side):
            raise limits.RefusedError(
                self.gallery.missing.get(side)
                or "This gallery has no captions to find. Start the demo with --captions FILE."
            )

    def _judged(self, side):
        """What is known of the answers to one side's questions, in JSON values."""
        found = "captions" if side == "images" else "images"
        if not self.gallery.names(found):
            return {"calibrated": False, "why_not": f"this gallery has no {found}"}
        judge = self.gallery.retriever(side).judge
        if judge.confidence is None:
            return {"calibrated": False, "why_not": judge.why_not}
        enough = judge.length(answers.ERROR)
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

    def _part(self, similarity, among):
        try:
            self.gallery.retriever("captions", similarity, among)
        except ValueError as error:
            raise limits.RefusedError(f"{str(error).replace('`', '')}.") from None

    def _similarity(self, similarity):
        if similarity is not None and similarity not in self.gallery.similarity_names:
            names = ", ".join(self.gallery.similarity_names)
            raise limits.RefusedError(f"The similarity has to be one of {names}.")
        return similarity
