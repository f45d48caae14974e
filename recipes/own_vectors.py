"""Uncertainty, confidence and search for embeddings that exist; no pictures needed.

    python recipes/own_vectors.py                                   # vectors of Toy Birds
    python recipes/own_vectors.py --images images.npy --captions captions.npy
    python recipes/own_vectors.py --images clip.npz:images --captions clip.npz:captions \\
        --pairs pairs.npy --texts captions.txt --method pcmepp
    python recipes/own_vectors.py --images items.parquet:image --captions items.parquet:title
    python recipes/own_vectors.py --model siglip2_base_patch16_224 --data-dir photos

Two arrays of vectors, of CLIP, SigLIP or any other model, row i of one belonging to row i of the
other or as `--pairs` says. `--method none` trains nothing: it evaluates, calibrates and makes a run
folder that `halo search`, `report` and `export` take. The other methods train a head on the
vectors. One image in ten is for validation and calibration, one in ten for the test. Files are
`.npy` (memory-mapped), `.npz`, `.safetensors` or `.parquet`; `FILE:NAME` names an array or column.
`--model` stores a model's vectors of the photos and captions in `--data-dir` first, in the folder
`OUT_vectors`: a preset, a run, a KerasHub name, or any folder that `zoo.from_preset` opens; the
layouts of `--data-dir` are those of `own_pairs.py`. The same command resumes a stopped run.
"""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import own_vectors_files
import own_vectors_methods
from halo_search.files.vector_files import located
from zoo import cli, plots, training
from zoo.cli import differs, setting
from zoo.data import Stream, batches

import keras

METHODS = tuple(own_vectors_methods.METHODS)


@dataclass(frozen=True, kw_only=True)
class VectorSettings(training.RunSettings):
    """Where the vectors are: files are `FILE` or `FILE:NAME`, see `zoo.data.vectors`."""

    annotations_dir: ClassVar[None] = None

    images: str | None = setting(None, "vectors of images (N, dim); without: those of Toy Birds")
    captions: str | None = setting(None, "vectors of captions (M, dim)")
    pairs: str | None = setting(None, "rows (P, 2) of image and caption; default: i with i")
    labels: str | None = setting(None, "class of each image, which its captions share")
    splits: str | None = setting(None, "train, validation or test of each image; default: random")
    texts: str | None = setting(None, "what the captions say, for pages and lists")
    paths: str | None = setting(None, "paths or addresses of the pictures, likewise")
    held_out: Literal["test", "val"] = setting(
        "test", "split to evaluate on; choose settings on val"
    )
    select: Literal["best", "last"] = setting(
        "best", "whose weights to keep: of the epoch with the best validation, or of the last"
    )

    def __post_init__(self):
        if (self.images is None) != (self.captions is None):
            raise ValueError("--images and --captions must be given together")
        if self.data_dir is not None and self.images is None:
            raise ValueError("--data-dir is the folder of --images and --captions; give them too")

    def data(self):
        """The description of the data for `zoo.data.open`; files by their whole paths."""
        names = ("images", "captions", "pairs", "labels", "splits", "texts", "paths")
        given = {name: getattr(self, name) for name in names}
        return {
            "loader": "vectors",
            **{name: _whole(spec, self.data_dir) for name, spec in given.items() if spec},
            "held_out": self.held_out,
            "seed": self.seed,
        }


@dataclass(frozen=True, kw_only=True)
class Settings(VectorSettings):
    """What to read, and what to make of it."""

    out: Path = differs(Path("runs/own_vectors"))
    model: str | None = setting(None, "model whose vectors of --data-dir are stored and read")
    image_dir: Path | None = setting(
        None, "with --model: folder of the pictures; default: found at or below --data-dir"
    )
    method: Literal[METHODS] = setting("none", "what to make of the vectors")
    dim: int | None = setting(None, "dimensions of the embedding; default: as wide as the captions")
    batch_size: int = setting(1024, "pairs; of data with classes as many of each")
    learning_rate: float = setting(5e-4, "peak learning rate of AdamW, with cosine decay")
    epochs: int = setting(10, "epochs over all captions; the method none trains none", smoke=1)
    steps_per_epoch: int | None = setting(
        None, "steps per epoch; default: all captions once", smoke=2
    )

    def __post_init__(self):
        if self.model is None:
            if self.image_dir is not None:
                raise ValueError("--image-dir needs --model")
            return super().__post_init__()
        if self.data_dir is None:
            raise ValueError("--model needs --data-dir, a folder of photos with captions")
        for name in ("images", "captions", "pairs", "labels", "splits", "texts", "paths"):
            if getattr(self, name) is not None:
                raise ValueError(f"--{name} is of stored vectors; leave it out with --model")

    def data(self):
        if self.model is None:
            return super().data() if self.images else own_vectors_files.toy()
        pairs = {"root": str(self.data_dir.resolve()), "seed": self.seed}
        if self.image_dir is not None:
            pairs["images"] = str(self.image_dir.resolve())
        folder = self.out.with_name(f"{self.out.name}_vectors").resolve()
        files = own_vectors_files.write(self.model, folder, pairs=pairs)
        return {**files, "held_out": self.held_out}


def main(argv=None):
    start = time.process_time()
    settings = cli.parse(Settings, argv, description=__doc__)
    data = settings.data()
    run = training.start(settings, data)
    if run.finished:
        return training.show(run)
    with run.replicas():
        run.model = own_vectors_methods.METHODS[settings.method](settings, run.train)
        if settings.method != "none":
            train_phases(settings, run)
    return training.finish(
        run,
        measure_more=lambda *_: {"cpu_seconds": time.process_time() - start},
        report=plots.draw_run,
    )


def train_phases(settings, run):
    """All pairs, or of data with classes pairs of as many classes as there are."""
    records = run.train.records
    by_class = records.class_names is not None
    batch_size, options = settings.batch_size, {}
    if by_class:
        a_class = max(1, batch_size // records.num_classes)
        batch_size = a_class * min(batch_size, records.num_classes)
        options["pairs_per_class"] = a_class
    phase = training.Phase(
        "training", settings.epochs, rate=training.cosine_decay(settings.learning_rate)
    )

    def stream(train, seed):
        return Stream(
            batches.class_pairs if by_class else batches.image_caption_pairs,
            train,
            None,
            batch_size,
            seed=seed,
            steps=settings.steps_per_epoch,
            options=options,
        )

    def adamw(model, rate):
        return keras.optimizers.AdamW(rate, weight_decay=1e-4, global_clipnorm=1.0)

    training.fit(run, [phase], stream, adamw, settings.seed)


def _whole(spec, folder):
    if folder is not None:
        spec = folder / spec
    path, name = located(spec)
    whole = Path(path).resolve()
    return str(whole) if name is None else f"{whole}:{name}"


if __name__ == "__main__":
    cli.run(main)
