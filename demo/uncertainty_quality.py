"""The quality of the model's uncertainty on the data it was evaluated on."""

import threading

NO_UNCERTAINTY = "This model embeds items as points: it has no uncertainty to rank its queries by."
UNKNOWN = "The images and captions here do not say what matches, so errors cannot be counted."


class UncertaintyQuality:
    """Recall by uncertainty and risk–coverage of both directions.

    They are read from the run's results. A run without them is measured on the gallery at the
    first call of `curves`, which takes seconds.

    Args:
        gallery: a `Gallery`.
        metrics: of the run, or None.
    """

    def __init__(self, gallery, metrics=None):
        self._gallery, self._lock = gallery, threading.Lock()
        self._own_data = gallery.records is not None
        self._measured = (metrics or {}).get("uncertainty")
        self.source = "measured when the run was evaluated"

    @property
    def why_not(self):
        """Why there is nothing to show, or None."""
        if len(self._gallery.references) < len(self._gallery.embeddings):
            return NO_UNCERTAINTY
        return None if self._measured or self._own_data else UNKNOWN

    def curves(self):
        """`{"i2t": …, "t2i": …}` of `zoo.evaluation.evaluate`, or None."""
        if self.why_not:
            return None
        with self._lock:
            if not self._measured:
                self._measured = self._evaluate()
                self.source = f"measured on {self._gallery.records.summary()}"
        return self._measured

    def _evaluate(self):
        from zoo import evaluation  # which needs Keras

        gallery = self._gallery
        uncertainty = [gallery.references[side].values for side in ("images", "captions")]
        split = evaluation.EncodedSplit(
            gallery.records,
            gallery.embeddings["images"],
            gallery.embeddings["captions"],
            *uncertainty,
        )
        return evaluation.evaluate(gallery.model, split, ("own",))["uncertainty"]
