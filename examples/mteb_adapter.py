"""Evaluates a model by MTEB's own evaluator, on your photos and captions.

    pip install ".[models]" "mteb>=2.26,<3"            # in the checkout; installs torch
    python examples/mteb_adapter.py photos_pfe flickr8k    # a folder with pairs.csv

MTEB measures abstention (`nauc_…_max`) by the greatest score of a question. So the first score is
the probability that the first answer is right, and the others keep their distance to it: ranks stay
as they are. `mteb` and `datasets` are not extras of the zoo, and no test installs them.
"""

import sys

import sentence_transformers  # noqa: F401  (torch for CUDA must be loaded before TensorFlow)

# isort: split
import datasets
import mteb
import numpy as np
from mteb.abstasks.retrieval import AbsTaskRetrieval
from mteb.abstasks.task_metadata import TaskMetadata
from mteb.models.model_meta import ModelMeta

import halo_search
import zoo


class Model:
    """A preset or a run as MTEB's `SearchProtocol`."""

    def __init__(self, name):
        self.name, self.retriever, self.ids = name, None, None
        empty = ("loader", "revision", "release_date", "memory_usage_mb", "max_tokens", "embed_dim")
        empty += ("license", "public_training_code", "public_training_data", "n_parameters")
        empty += ("similarity_fn_name", "training_datasets")
        self.mteb_model_meta = ModelMeta(
            name=f"halo-zoo/{name.rstrip('/').rpartition('/')[2]}",
            languages=["eng-Latn"],
            open_weights=True,
            framework=["TensorFlow"],
            use_instructions=False,
            modalities=["text", "image"],
            **dict.fromkeys(empty),
        )

    def index(self, corpus, **_):
        """Makes the gallery of a task, and calibrates it."""
        side = "images" if "image" in corpus.column_names else "captions"
        self.ids = list(corpus["id"])
        self.retriever = halo_search.Retriever.build(self.name, items_of(corpus), side=side)

    def search(self, queries, *, top_k, **_):
        """`{query id: {item id: score}}` of the best `top_k` items."""
        answers = self.retriever.ask(items_of(queries), k=min(top_k, len(self.ids)))
        found = {}
        for query, answer in zip(queries["id"], answers, strict=True):
            said = answer.wanted or answer.probability or 0.0  # declined: answered last
            scores = np.asarray(answer.scores, float)
            moved = scores - scores[0] + said
            ids = (self.ids[item] for item in answer.ids)
            found[query] = dict(zip(ids, moved.tolist(), strict=True))
        return found


def items_of(rows):
    """The pictures or the texts of a `datasets.Dataset`."""
    return list(rows["image" if "image" in rows.column_names else "text"])


def retrieval_task(name, records, direction):
    """`zoo.data.Records` as an MTEB task: captions ask for images ("t2i"), or the reverse."""
    from_text = direction == "t2i"

    class Local(AbsTaskRetrieval):
        metadata = TaskMetadata(
            name=name,
            description=f"{records.name}, {direction}",
            dataset={"path": "local", "revision": "local"},
            type="Any2AnyRetrieval",
            category=direction,
            modalities=["text", "image"],
            eval_splits=["test"],
            eval_langs=["eng-Latn"],
            main_score="recall_at_1",
        )

        def load_data(self, num_proc=None, **_):
            self.dataset = {"default": {"test": data_of(records, from_text)}}
            self.data_loaded = True

    return Local()


def data_of(records, from_text):
    """What MTEB calls a `RetrievalSplitData`; every item of the question's label is relevant."""
    images = [f"i{row}" for row in range(records.num_images)]
    texts = [f"t{row}" for row in range(records.num_captions)]
    paths = [str(path) for path in records.image_paths]
    pictures = datasets.Dataset.from_dict({"id": images, "image": paths})
    pictures = pictures.cast_column("image", datasets.Image())
    captions = datasets.Dataset.from_dict({"id": texts, "text": [str(t) for t in records.captions]})
    asked, own = (texts, images) if from_text else (images, texts)
    labels = np.asarray(records.caption_labels), np.asarray(records.image_labels)
    asked_labels, own_labels = labels if from_text else labels[::-1]
    relevant = {
        query: {own[row]: 1 for row in np.flatnonzero(own_labels == label)}
        for query, label in zip(asked, asked_labels, strict=True)
    }
    queries, corpus = (captions, pictures) if from_text else (pictures, captions)
    return {"queries": queries, "corpus": corpus, "relevant_docs": relevant, "top_ranked": None}


if __name__ == "__main__":
    model, folder = sys.argv[1:]
    records = zoo.data.open({"loader": "pairs", "root": folder}, "test").records
    tasks = [retrieval_task(f"photos {way}", records, way) for way in ("t2i", "i2t")]
    for result in mteb.evaluate(Model(model), tasks, cache=None).task_results:
        print(result.task_name, result.scores["test"][0])
