"""Retrieval metrics at the end of an epoch, in the logs where other callbacks look for them."""

import keras
import numpy as np

from zoo.cli import verbosity
from zoo.embeddings import as_embedding, concatenate
from zoo.metrics.retrieval import evaluate_embeddings

KEYS = ("images", "captions", "image_labels", "caption_labels")


class RetrievalEvaluation(keras.callbacks.Callback):
    """Evaluates a `DualEncoder` on all validation images against all validation captions.

    Writes `val_rsum`, `val_i2t_recall@1` … `val_t2i_map@r`, in percent, into the logs of the epoch.
    Callbacks after it in the list see them:

    ```python
    model.fit(batches, callbacks=[
        RetrievalEvaluation(validation),
        keras.callbacks.ModelCheckpoint("best.keras", monitor="val_rsum", mode="max",
                                        save_best_only=True),
    ])
    ```

    Args:
        validation_data: a dict with `"images"` (N of them), `"captions"` (M, token ids or strings),
            `"image_labels"` `(N,)` and `"caption_labels"` `(M,)`, equal labels match; or a finite
            iterable of such dicts, for instance a `tf.data.Dataset`. Each image and each caption
            must come once.
        batch_size: items encoded at once, where arrays are given.
        every: evaluates after every so many epochs. Between them the logs lack the metrics, at
            which a ModelCheckpoint warns and skips.
        ks: the K of Recall@K.
        block_size: queries a block, see `evaluate_embeddings`.
        prefix: of the keys in the logs.
        verbose: 1 shows a progress bar, 0 nothing.
    """

    def __init__(
        self,
        validation_data,
        batch_size=128,
        every=1,
        ks=(1, 5, 10),
        block_size=None,
        prefix="val_",
        verbose=1,
    ):
        super().__init__()
        for name, value in (("batch_size", batch_size), ("every", every)):
            if value != int(value) or value < 1:
                raise ValueError(f"`{name}` must be a whole number of at least 1; received {value}")
        if isinstance(validation_data, dict):
            _check_keys(validation_data)
            _check_lengths(validation_data)
        elif not hasattr(validation_data, "__iter__") or hasattr(validation_data, "__next__"):
            raise TypeError(
                "`validation_data` must be a dict of arrays or an iterable of them that can be "
                f"read every epoch, as a tf.data.Dataset; received {type(validation_data).__name__}"
            )
        self.validation_data = validation_data
        self.batch_size, self.every, self.ks = int(batch_size), int(every), tuple(ks)
        self.block_size, self.prefix, self.verbose = block_size, prefix, verbose

    def on_epoch_end(self, epoch, logs=None):
        if (epoch + 1) % self.every == 0 and logs is not None:
            results = self.evaluate(self.model)
            percentages = {k: v for k, v in results.items() if isinstance(v, float)}
            logs.update({self.prefix + key: value for key, value in percentages.items()})

    def evaluate(self, model):
        """The dict of `evaluate_retrieval`, also usable without `fit`.

        Args:
            model: a `DualEncoder`, or whatever has its `encode_images`, `encode_captions` and
                `similarity`.
        """
        bar = keras.utils.Progbar(
            self._num_items(),
            verbose=verbosity(self.verbose),
            stateful_metrics=["rsum"],
            unit_name="item",
        )
        images, captions, image_labels, caption_labels = [], [], [], []
        seen = 0
        for batch in self._batches():
            for name, encode, embeddings, labels in (
                ("image", model.encode_images, images, image_labels),
                ("caption", model.encode_captions, captions, caption_labels),
            ):
                items = batch.get(f"{name}s")
                if items is not None and len(items):
                    embeddings.append(as_embedding(encode(items)))
                    labels.append(np.asarray(batch[f"{name}_labels"]))
                    seen += len(items)
                    bar.update(seen, finalize=False)  # the line ends with the result
        if not images or not captions:
            raise ValueError(
                "`validation_data` must hold at least one image and one caption; "
                f"received {len(images)} batches of images and {len(captions)} of captions"
            )
        results = evaluate_embeddings(
            concatenate(images),
            concatenate(captions),
            model.similarity,
            image_labels=np.concatenate(image_labels),
            caption_labels=np.concatenate(caption_labels),
            ks=self.ks,
            block_size=self.block_size,
        )
        bar.update(seen, [("rsum", results["rsum"])], finalize=True)
        return results

    def _num_items(self):
        if not isinstance(self.validation_data, dict):
            return None
        return len(self.validation_data["images"]) + len(self.validation_data["captions"])

    def _batches(self):
        if not isinstance(self.validation_data, dict):
            for batch in self.validation_data:
                _check_keys(batch)
                yield batch
            return
        for name in ("image", "caption"):
            items, labels = f"{name}s", f"{name}_labels"
            for start in range(0, len(self.validation_data[items]), self.batch_size):
                chosen = slice(start, start + self.batch_size)
                yield {key: self.validation_data[key][chosen] for key in (items, labels)}


def _check_keys(batch):
    missing = [key for key in KEYS if key not in batch]
    if missing:
        raise ValueError(f"`validation_data` must have the keys {KEYS}; it lacks {missing}")


def _check_lengths(data):
    for items, labels in (("images", "image_labels"), ("captions", "caption_labels")):
        if len(data[items]) != len(data[labels]):
            raise ValueError(
                f"`validation_data` must have one label an item; received {len(data[items])} "
                f"{items} and {len(data[labels])} {labels}"
            )
