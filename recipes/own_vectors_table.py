"""What each method makes of the same stored vectors, over seeds.

    python recipes/own_vectors_table.py --data-dir CUB_200_2011 --weights mobilenet_v2.h5
    python recipes/own_vectors_table.py                            # vectors of Toy Birds

With `--data-dir`, a folder of CUB, the vectors are made first, as a user would bring them: those of
an InfoNCE model of 256 dimensions, trained on the pooled features of a frozen MobileNetV2 and on
captions as TF-IDF, reduced to 512 dimensions. They stand in for CLIP's. Then every method runs on
them with every seed, and what is finished is not run again. Prints the table in Markdown.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.linalg import svds

import own_vectors
import seed_table
from seed_table import Column, Row
from zoo import cli, data, encoders, evaluation
from zoo.cli import setting
from zoo.data.features import cached
from zoo.files.cache import cache_folder
from zoo.report.inputs import words_of

DIM, WORDS_DIM = 256, 512


@dataclass(frozen=True, kw_only=True)
class Settings(seed_table.TableSettings):
    """Which part of the table to run."""

    out: Path = setting(Path("runs/own_vectors_table"), "folder of the runs, and of table.md")
    data_dir: Path | None = setting(None, "folder of CUB-200-2011; without it Toy Birds")
    weights: str = setting("imagenet", "of MobileNetV2: 'imagenet' or a local file")
    methods: tuple[str, ...] = setting(own_vectors.METHODS, "rows")
    epochs: int = setting(10, "of every trained head")


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    files = () if settings.data_dir is None else flags_of(vectors_of_birds(settings))
    rows = {
        name: Row(own_vectors.main, (f"--method={name}", f"--epochs={settings.epochs}"))
        for name in settings.methods
    }
    if settings.run:
        seed_table.run_rows(rows, settings, files)
    columns = [
        seed_table.retrieval("r_precision", "R-P"),
        seed_table.retrieval("recall@1", "R@1"),
        Column("nAUC of its uncertainty", (_own("i2t"), _own("t2i")), "+.2f"),
        Column("nAUC of the confidence", (_of("i2t", "nauc"), _of("t2i", "nauc")), "+.2f"),
        Column(
            "calibration error",
            (_of("i2t", "calibration_error"), _of("t2i", "calibration_error")),
            ".2f",
        ),
    ]
    seed_table.publish(settings, seed_table.markdown(rows, columns, settings))


def vectors_of_birds(settings):
    """The description of the vectors of the InfoNCE model, made when they are not there yet."""
    raw, run = settings.out / "raw", settings.out / "infonce"
    if not (raw / "splits.txt").exists():
        write_features(settings, raw)
    files = {name: str(raw / f"{name}.npy") for name in ("images", "captions", "pairs")}
    files |= {name: str(raw / f"{name}.txt") for name in ("labels", "splits", "texts", "paths")}
    flags = [*flags_of(files), "--method=infonce", f"--dim={DIM}", f"--out={run}"]
    own_vectors.main(flags)
    return evaluation.write_vectors(run, settings.out / "vectors")


def write_features(settings, folder):
    """Pooled features of MobileNetV2 and TF-IDF of captions, fitted on training captions."""
    folder.mkdir(parents=True, exist_ok=True)
    description = {"loader": "cub", "root": str(settings.data_dir), "skip_bad": True}
    splits = [data.open(description, split) for split in data.datasets.SPLITS]
    backbone = encoders.convolutional("mobilenet_v2", 224, settings.weights)
    pooled, counts = [], []
    for split in splits:
        maps = cached(cache_folder("features"), backbone, split.records, split.source)
        pooled.append(np.stack([row.astype(np.float32).mean(axis=(0, 1)) for row in maps]))
        counts.append(split.records.num_captions)
    np.save(folder / "images.npy", np.concatenate(pooled))
    texts = [text for split in splits for text in split.records.captions]
    np.save(folder / "captions.npy", tf_idf(texts, counts[0]))
    owners, start = [], 0
    for split in splits:
        owners.append(split.records.caption_image + start)
        start += split.records.num_images
    np.save(folder / "pairs.npy", np.stack([np.concatenate(owners), np.arange(len(texts))], axis=1))
    lines = {"texts": texts, "labels": [], "paths": []}
    names = []
    for split, name in zip(splits, data.datasets.SPLITS, strict=True):
        records = split.records
        lines["labels"] += [records.class_names[label] for label in records.image_labels]
        lines["paths"] += list(records.image_paths)
        names += [name] * records.num_images
    for name, values in {**lines, "splits": names}.items():  # the splits last: they say it is done
        (folder / f"{name}.txt").write_text("".join(f"{' '.join(v.split())}\n" for v in values))


def tf_idf(texts, training):
    """TF-IDF of words, reduced by the singular vectors of the first `training` texts."""
    lines = words_of(texts)
    vocabulary = {}
    for line in lines[:training]:
        for word in line:
            vocabulary.setdefault(word, len(vocabulary))
    row, column = [], []
    for number, line in enumerate(lines):
        known = [vocabulary[word] for word in line if word in vocabulary]
        row += [number] * len(known)
        column += known
    shape = (len(lines), len(vocabulary))
    counts = csr_array((np.ones(len(row), np.float32), (row, column)), shape=shape)
    counts.sum_duplicates()
    used = np.bincount(counts[:training].indices, minlength=shape[1])
    weighted = counts * np.log((1 + training) / (1 + used))[None].astype(np.float32)
    weighted = csr_array(weighted)
    norms = np.sqrt(weighted.multiply(weighted).sum(axis=1))
    weighted = csr_array(weighted / np.maximum(norms, 1e-9)[:, None])
    rank = min(WORDS_DIM, *(size - 1 for size in weighted[:training].shape))
    _, _, directions = svds(weighted[:training], rank, rng=np.random.default_rng(0))
    return np.asarray(weighted @ directions.T, np.float32)


def flags_of(files):
    names = ("images", "captions", "pairs", "labels", "splits", "texts", "paths")
    return tuple(f"--{name}={files[name]}" for name in names if name in files)


def _of(direction, name):
    return lambda metrics: metrics["confidence"][direction][name]


def _own(direction):
    """nAUC of the queries' own uncertainty; none where they are points."""
    return lambda metrics: metrics["confidence"][direction]["nauc_of"].get("uncertainty", np.nan)


if __name__ == "__main__":
    cli.run(main)
