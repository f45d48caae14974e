"""A model of the zoo before MTEB's evaluator, and data sets of one's own as its tasks.

```text
model = zoo.retriever.mteb.MtebModel("photos_pfe")
task = zoo.retriever.mteb.retrieval_task("Flickr8kT2I", split.records, "t2i")
results = mteb.evaluate(model, [task], cache=None)
```

MTEB measures abstention (`nauc_…_max`) by the greatest score of a query. So that it measures how
well the model knows when it is right, the first score of a query is the probability that the first
answer is right, as `zoo.Retriever` says it. The others keep their distances from it, so ranks are
what they were. The model's metadata declare it.
"""

from pathlib import Path
from typing import Any

import numpy as np

from zoo.embeddings import has_uncertainty
from zoo.embeddings.arrays import joined
from zoo.errors import require
from zoo.evaluation import probes_of
from zoo.models import Tower
from zoo.models.tower import SIDES

require("faiss", extra="mteb")  # which brings it; the modules below would name another extra

from zoo.retriever.parts import opened  # noqa: E402
from zoo.retriever.retriever import Retriever  # noqa: E402

JUDGED = "the probability that the first answer is right; further scores keep their distance to it"
PLAIN = "the similarity"
DIRECTIONS = ("t2i", "i2t")
_AT_ONCE = 512  # pictures whose files are in memory together


class MtebModel:
    """A `DualEncoder` or `Retriever` as MTEB's `EncoderProtocol` and `SearchProtocol`.

    Retrieval tasks index their corpus by a `Retriever` and search it; other tasks, such as
    classification without examples, take embeddings and their similarity.

    Args:
        model: a `DualEncoder` with a tokenizer, what `zoo.from_preset` takes, or a `Retriever`,
            whose model and probes are taken; its gallery gives way to the task's corpus.
        judged: whether the first score is the probability that the first answer is right. False
            leaves the model's similarity.
        name: in the results, `"organization/model"`; default: the preset's.

    Attributes:
        retriever: the `zoo.Retriever` of the corpus that was indexed last, or None.

    Raises:
        MissingPackageError: without mteb.

    Reference: Muennighoff et al., "MTEB: Massive Text Embedding Benchmark", EACL 2023; Xiao et al.,
        "MIEB: Massive Image Embedding Benchmark", ICCV 2025.
    """

    def __init__(self, model: Any, judged: bool = True, name: str | None = None):
        meta = require("mteb.models.model_meta", extra="mteb").ModelMeta
        if isinstance(model, Retriever):
            self.model, self.probes = model.model, model.probes
            towers = {side: model.tower(side) for side in SIDES}
            origin = getattr(model.model, "origin", None)
        else:
            self.model, origin, resizing = opened(model)
            self.probes = None if origin is None else probes_of(origin)
            towers = {side: Tower(self.model, side, **resizing) for side in SIDES}
        self.towers = towers
        self.judged = judged
        self.retriever = self._ids = None
        called = self.model.name if origin is None else str(origin).rstrip("/").rpartition("/")[2]
        self.mteb_model_meta = meta(
            loader=None,
            name=name or f"halo-zoo/{called}",
            revision=None,
            release_date=None,
            languages=["eng-Latn"],
            n_parameters=self.model.count_params(),
            memory_usage_mb=None,
            max_tokens=getattr(self.model.tokenizer, "max_words", None),
            embed_dim=None,
            license=None,
            open_weights=True,
            public_training_code=None,
            public_training_data=None,
            framework=["TensorFlow"],
            similarity_fn_name=None,
            use_instructions=False,
            training_datasets=None,
            modalities=["text", "image"],
            experiment_kwargs={"first_score": JUDGED if judged else PLAIN},
        )

    def index(self, corpus: Any, *, task_metadata: Any, **kwargs: Any) -> None:
        """Makes the gallery of a task, and calibrates on it once it is asked.

        Args:
            corpus: a `datasets.Dataset` with `id` and `image` or `text`.
            task_metadata, **kwargs: MTEB's; not needed.
        """
        side = "images" if "image" in corpus.column_names else "captions"
        self._ids = list(corpus["id"])
        self.retriever = Retriever.build(
            self.model, self._embedded(corpus, side), probes=self.probes, side=side
        )

    def search(self, queries: Any, *, top_k: int, **kwargs: Any) -> dict[str, dict[str, float]]:
        """`{query id: {item id: score}}` of the best `top_k` items.

        Args:
            queries: a `datasets.Dataset` with `id` and `image` or `text`.
            top_k: how many items a query gets.
            **kwargs: MTEB's; `top_ranked`, of tasks that rank given items again, leaves others out.

        Raises:
            ValueError: before `index`, or where a question and the corpus are of one kind.
        """
        retriever = self.retriever
        if retriever is None:
            raise ValueError("`index` must be called before `search`")
        asked_by = {"images": "captions", "captions": "images"}[retriever.side]
        column = "image" if asked_by == "images" else "text"
        if column not in queries.column_names:
            raise ValueError(
                f"a corpus of {retriever.side} is asked by {asked_by}; received queries with "
                f"{', '.join(queries.column_names)}"
            )
        embedded = self._embedded(queries, asked_by)
        shown = kwargs.get("top_ranked")
        depth = len(retriever.index) if shown is not None else min(top_k, len(retriever.index))
        scores, rows = retriever.index.search(embedded, depth)
        first = self._first_scores(embedded, asked_by, queries, scores)
        found = {}
        for query, row, values, said in zip(queries["id"], rows, scores, first, strict=True):
            ids = [self._ids[item] for item in row]
            moved = (values.astype(float) - float(values[0]) + said).tolist()
            pairs = zip(ids, moved, strict=True)
            if shown is not None:
                allowed = set(shown[query])
                pairs = [(item, value) for item, value in pairs if item in allowed][:top_k]
            found[query] = dict(pairs)
        return found

    def encode(
        self, inputs: Any, *, task_metadata: Any = None, prompt_type: Any = None, **kwargs: Any
    ) -> np.ndarray:
        """Embeddings `(N, dim)`; of Gaussians the log variances stand behind the means.

        Args:
            inputs: batches of a dict with `"image"` or `"text"`, such as MTEB's `DataLoader`.
            task_metadata, prompt_type, **kwargs: MTEB's; not needed.
        """
        parts = [
            self._files(batch["image"])
            if "image" in batch
            else self.towers["captions"].of_texts(batch["text"])
            for batch in inputs
        ]
        names = [name for name in ("mean", "log_variance") if name in parts[0]]
        return np.concatenate(
            [np.concatenate([part[name] for name in names], axis=1) for part in parts]
        )

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        """The model's similarity of every pair, a `torch.Tensor` `(N, M)`."""
        torch = require("torch", extra="mteb")
        first, second = (self._unpacked(one) for one in (embeddings1, embeddings2))
        return torch.from_numpy(np.array(self.model.similarity(first, second)))

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        """The model's similarity row by row, a `torch.Tensor` `(N,)`."""
        torch = require("torch", extra="mteb")
        values = [
            self.similarity(np.asarray(first)[None], np.asarray(second)[None])[0, 0]
            for first, second in zip(embeddings1, embeddings2, strict=True)
        ]
        return torch.stack(values)

    def _first_scores(self, embedded, side, queries, scores):
        if not self.judged:
            return scores[:, 0].astype(float)
        texts = list(queries["text"]) if side == "captions" else None
        judged = self.retriever.judged(embedded, side, texts)
        return [_probability(one) for one in judged]

    def _embedded(self, rows, side):
        """The embeddings of a `datasets.Dataset`, a dict of arrays."""
        if side == "captions":
            return self.towers["captions"].of_texts(list(rows["text"]))
        datasets = require("datasets", extra="mteb")
        if isinstance(rows.features["image"], datasets.Image):
            rows = rows.cast_column("image", datasets.Image(decode=False))  # the files themselves
        starts = range(0, len(rows), _AT_ONCE)
        return joined([self._files(rows[start : start + _AT_ONCE]["image"]) for start in starts])

    def _files(self, pictures):
        """The embedding of Pillow images, or of what `datasets` keeps of files."""
        return self.towers["images"].of_files(
            [
                (one["bytes"] or Path(one["path"])) if isinstance(one, dict) else one
                for one in pictures
            ]
        )

    def _unpacked(self, values):
        values = np.asarray(values)
        values = values[None] if values.ndim == 1 else values
        output = self.model.image_encoder.output
        if not has_uncertainty(output):
            return {"mean": values}
        mean, log_variance = np.split(values, [output["mean"].shape[-1]], axis=1)
        return {"mean": mean, "log_variance": log_variance}


def retrieval_task(name: str, records: Any, direction: str = "t2i", description: str = "") -> Any:
    """Records as an MTEB retrieval task, which fetches nothing.

    Args:
        name: of the task in the results.
        records: a `zoo.data.Records`, whose pictures are files.
        direction: `"t2i"`, captions ask for images, or `"i2t"`.
        description: one sentence.

    Returns:
        An instance of an `AbsTaskRetrieval`, for `mteb.evaluate`. With matches by class every
        image of the caption's class is relevant.

    Raises:
        ValueError: if the direction is neither.
        MissingPackageError: without mteb.
    """
    if direction not in DIRECTIONS:
        raise ValueError(f"`direction` must be one of {DIRECTIONS}; received {direction!r}")
    base = require("mteb.abstasks.retrieval", extra="mteb").AbsTaskRetrieval
    described = require("mteb.abstasks.task_metadata", extra="mteb").TaskMetadata
    from_text = direction == "t2i"

    class LocalRetrieval(base):
        metadata = described(
            name=name,
            description=description or f"{records.name}, {direction}",
            dataset={"path": "local", "revision": "local"},
            type="Any2AnyRetrieval",
            category=direction,
            modalities=["text", "image"],
            eval_splits=["test"],
            eval_langs=["eng-Latn"],
            main_score="recall_at_1",
        )

        def load_data(self, num_proc=None, *, timer=None, **kwargs):
            if not self.data_loaded:
                self.dataset = {"default": {"test": _data(records, from_text)}}
                self.data_loaded = True

    return LocalRetrieval()


def _data(records, from_text):
    """What MTEB calls a `RetrievalSplitData`."""
    datasets = require("datasets", extra="mteb")
    images = [f"i{row}" for row in range(len(records.image_paths))]
    texts = [f"t{row}" for row in range(len(records.captions))]
    pictures = datasets.Dataset.from_dict(
        {"id": images, "image": [str(path) for path in records.image_paths]}
    ).cast_column("image", datasets.Image())
    captions = datasets.Dataset.from_dict(
        {"id": texts, "text": [str(caption) for caption in records.captions]}
    )
    asked, own = (texts, images) if from_text else (images, texts)
    labels = np.asarray(records.caption_labels), np.asarray(records.image_labels)
    asked_labels, own_labels = labels if from_text else labels[::-1]
    members = {label: np.flatnonzero(own_labels == label) for label in np.unique(own_labels)}
    relevant = {
        query: {own[row]: 1 for row in members.get(label, ())}
        for query, label in zip(asked, asked_labels, strict=True)
    }
    queries, corpus = (captions, pictures) if from_text else (pictures, captions)
    return {"queries": queries, "corpus": corpus, "relevant_docs": relevant, "top_ranked": None}


def _probability(judgement):
    """That the first answer is right; 0 of a question that is not understood, answered last."""
    if judgement.wanted is not None:
        return judgement.wanted
    return 0.0 if judgement.fits is None else float(judgement.fits[0])
