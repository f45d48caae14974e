"""ASP at the end of an epoch, in the logs where the history file finds it."""

import keras

from zoo import metrics
from zoo.evaluation.retrieval import encode


class SemanticEvaluation(keras.callbacks.Callback):
    """Writes `val_i2t_asp` and `val_t2i_asp`, in percent, into the logs of an epoch.

    Args:
        records: of the split to evaluate on.
        source: its pictures or features, see `zoo.data.sources`.
        truth: its semantics, `(images, captions)`, see `zoo.data.semantics`.
        every: evaluates after every so many epochs.

    A model over stored features of another shape than the source's, as in a warm-up, is left out.

    Relations: `zoo.metrics.average_semantic_precision` of the model's own similarity.
    """

    def __init__(self, records, source, truth, every=1):
        super().__init__()
        if every < 1:
            raise ValueError(f"`every` must be at least 1; received {every}")
        self.records, self.source, self.truth, self.every = records, source, truth, every

    def on_epoch_end(self, epoch, logs=None):
        fits = self.model.image_encoder.input_shape[1:] == tuple(self.source.shape)
        if fits and (epoch + 1) % self.every == 0 and logs is not None:
            split = encode(self.model, self.records, self.source)
            pairs = split.pairs(self.model.similarity).kept()
            found = metrics.average_semantic_precision(pairs, self.truth)
            logs.update({f"val_{side}_asp": 100 * value for side, value in found.items()})
