"""Photos and captions, encoded by a model and by the sentence encoder, kept on disk."""

import csv
import functools
from pathlib import Path
from typing import NamedTuple

import numpy as np

from halo_search import open_tower
from halo_search.embeddings.arrays import take, unit
from halo_search.photos import packaged_photos
from halo_search.retriever.gallery_model import GalleryModel
from halo_search.retriever.preambles import as_asked
from halo_search.retriever.wording import Wording
from zoo import evaluation
from zoo.cli import OneLineParser
from zoo.evaluation.captioned import Captioned, Labelled
from zoo.evaluation.gallery import scores_over
from zoo.evaluation.relevance import sentence_vectors
from zoo.presets import from_preset

MODEL = "photos_pfe"
FRESH = Path(__file__).parent / "data/fresh_labels.csv"
FIRST = 500  # test photos that the fresh labels are about


def parser_of(study, doc, folder):
    """The parser of a study of a model's answers over a folder of photos."""
    parser = OneLineParser(prog=f"python -m studies.{study}", description=doc.split("\n")[0])
    parser.add_argument("model", help="a preset or a run of photos with probes")
    parser.add_argument("folder", type=Path, help=f"folder with {folder}")
    parser.add_argument("--seed", type=int, default=0, help="of all that is drawn (default 0)")
    parser.add_argument("--cache", type=Path, help="folder to keep the encoded photos in")
    return parser


class Encoded(NamedTuple):
    """Photos and captions of a split."""

    names: list[str]  # N files of photos
    images: dict  # embeddings, dicts of arrays
    captions: dict  # embeddings, dicts of arrays
    owners: np.ndarray  # `(M,)`, the row of each caption's photo
    texts: list[str]  # M captions
    sentences: np.ndarray  # `(M, dim)`, unit vectors of the sentence encoder
    similarity: object  # the model's layer

    @classmethod
    def of(cls, folder, model=MODEL, split="test", cache=None, sentences=True):
        """Encodes a split of Flickr8k, or reads it from the cache."""
        with open(Path(folder) / "pairs.csv", encoding="utf-8", newline="") as file:
            rows = [(r["image"], r["caption"]) for r in csv.DictReader(file) if r["split"] == split]
        return cls.of_rows(folder, rows, model, split, cache, sentences)

    @classmethod
    def of_rows(cls, folder, rows, model, name, cache=None, sentences=False):
        """Encodes `(photo, caption)`s of a folder, or reads them from the cache by their name."""
        photos = {}
        for photo, caption in rows:
            photos.setdefault(photo, []).append(caption)
        folder, names = Path(folder), list(photos)
        texts = [caption for name in names for caption in photos[name]]
        owners = np.repeat(np.arange(len(names)), [len(photos[name]) for name in names])
        cache_path = None if cache is None else Path(cache) / f"{Path(str(model)).name}-{name}.npz"
        if cache_path is None or not cache_path.is_file():
            images = open_tower(model, "images").of_files([folder / name for name in names])
            captions = open_tower(model, "captions").of_texts(texts)
            arrays = {f"images_{key}": value for key, value in images.items()}
            arrays |= {f"captions_{key}": value for key, value in captions.items()}
            empty = np.zeros((len(texts), 1))
            arrays["sentences"] = sentence_vectors(texts) if sentences else empty
            if cache_path is not None:
                cache_path.parent.mkdir(parents=True, exist_ok=True)
                np.savez(cache_path, **arrays)
        else:
            with np.load(cache_path) as file:
                arrays = dict(file)
        sides = [
            {key.split("_", 1)[1]: value for key, value in arrays.items() if key.startswith(side)}
            for side in ("images_", "captions_")
        ]
        vectors = unit(arrays["sentences"].astype(np.float32))
        return cls(names, *sides, owners, texts, vectors, similarity_of(str(model)))

    def select(self, photos):
        """Some photos, by their rows in order, and their captions."""
        photos = np.sort(photos)
        rows = np.flatnonzero(np.isin(self.owners, photos))
        return self._replace(
            names=[self.names[photo] for photo in photos],
            images=take(self.images, photos),
            captions=take(self.captions, rows),
            owners=np.searchsorted(photos, self.owners[rows]),
            texts=[self.texts[row] for row in rows],
            sentences=self.sentences[rows],
        )

    def captioned(self, probes, encode, name):
        """What `learn_fits` reads, for a model with probes."""
        arguments = self.images, self.captions, self.owners, self.texts, self.sentences
        reference = {direction: probes.items(direction) for direction in ("t2i", "i2t")}
        return Captioned(*arguments, self.similarity, encode, name, reference, near=probes.bank)

    def scores(self, rows):
        """Of some captions with all photos, `(Q, N)`, higher is better."""
        asked = {key: value[rows] for key, value in self.captions.items()}
        return scores_over(self.images, asked, self.similarity, "images")


@functools.cache
def similarity_of(model):
    """The similarity layer of a preset or run, which Keras opens once."""
    return from_preset(model).similarity


def labels_of(data, preset, cache=None, part=None):
    """The `Labelled` galleries of the eye labels: Flickr8k's test photos and COCO's subset; of all
    questions, or of the half to `"learn"` from or the `"kept"` one, of `halves`."""
    with open(data / "flickr8k/short_labels.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    chosen = halves(rows)
    wording = Wording(GalleryModel.of(preset), evaluation.probes_of(preset).bank)
    tests = Encoded.of(data / "flickr8k", preset, "test", cache=cache)
    shown = data / "coco_subset/images"
    photos = [(path.name, "") for path in sorted(shown.iterdir())]
    subset = Encoded.of_rows(shown, photos, preset, "coco_subset", cache)
    galleries = []
    for name, encoded in (("flickr8k_test", tests), ("coco_subset", subset)):
        gallery_rows = [
            row
            for row in rows
            if row["gallery"] == name and part in (None, chosen[name, row["question"]])
        ]
        place = {photo: row for row, photo in enumerate(encoded.names)}
        typed = [next(iter(wording.meanings(row["question"]))) for row in gallery_rows]
        galleries.append(_labelled(encoded.images, typed, gallery_rows, place))
    return galleries


def _labelled(images, typed, rows, place):
    """The `Labelled` gallery of rows of labels: `typed` is what each row's question is asked as,
    and `place` the row of each photo among the images."""
    texts = list(dict.fromkeys(typed))
    number = {text: row for row, text in enumerate(texts)}
    pairs = [(number[text], place[row["photo"]]) for text, row in zip(typed, rows, strict=True)]
    judged = [(float(row["fit"]), float(row["weight"])) for row in rows]
    return Labelled(images, texts, *np.transpose(pairs), *np.transpose(judged))


def halves(rows):
    """Of the rows of the eye labels, by gallery and question, whether it is to `"learn"` from or
    `"kept"`: half of each gallery's questions, drawn with seed 80."""
    rng, halves_of_name = np.random.default_rng(80), {}
    for name in ("flickr8k_test", "coco_subset"):
        texts = list(dict.fromkeys(row["question"] for row in rows if row["gallery"] == name))
        order = rng.permutation(len(texts))
        learn = set(order[: (len(texts) + 1) // 2].tolist())
        for row, text in enumerate(texts):
            halves_of_name[name, text] = "learn" if row in learn else "kept"
    return halves_of_name


def labels_to_learn(data, preset, cache=None):
    """The `Labelled` galleries of all labels that are to learn from."""
    return [
        *labels_of(data, preset, cache, "learn"),
        *fresh_labels_of(data, preset, "learn", cache),
    ]


def fresh_galleries(data, preset, cache=None):
    """By name of the fresh labels, the `Encoded` photos of a gallery and their paths: Flickr8k's
    first 500 test photos and the packaged photos."""
    flickr = data / "flickr8k"
    tests = Encoded.of(flickr, preset, "test", cache)
    first = tests._replace(names=tests.names[:FIRST], images=take(tests.images, slice(FIRST)))
    shown = sorted(packaged_photos())
    rows = [(path.name, "") for path in shown]
    packaged = Encoded.of_rows(shown[0].parent, rows, preset, "packaged", cache)
    return {
        "flickr8k_first500": (first, [flickr / name for name in first.names]),
        "packaged": (packaged, shown),
    }


def fresh_labels_of(data, preset, part, cache=None):
    """The `Labelled` galleries of the fresh labels, of the half to `"learn"` from or the `"kept"`
    one; of a mistyped question the right spelling."""
    with open(FRESH, encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["part"] == part]
    galleries = []
    for name, (encoded, paths) in fresh_galleries(data, preset, cache).items():
        gallery_rows = [row for row in rows if row["gallery"] == name]
        place = {path.name: row for row, path in enumerate(paths)}
        typed = [as_asked(row["asked"] or row["question"]) for row in gallery_rows]
        galleries.append(_labelled(encoded.images, typed, gallery_rows, place))
    return galleries
