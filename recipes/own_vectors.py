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
layouts of `--data-dir` are those of `own_pairs.py`. Rerun the command to resume a stopped run.
"""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import own_vectors_files
import own_vectors_methods
from halo_search.files.vector_files import located
from zoo import cli, plots, training
from zoo.cli import Size, differs, setting
from zoo.data import Stream, batches

import keras

METHODS = tuple(own_vectors_methods.METHODS)
FILES = ("images", "captions", "pairs", "labels", "splits", "texts", "paths")  # their flags


@dataclass(frozen=True, kw_only=True)
class Settings(training.RunSettings):
    """What to read and what to train on it. Files are `FILE` or `FILE:NAME`, see
    `zoo.data.vectors`."""

    annotations_dir: ClassVar[None] = None

    # Run and evaluation
    out: Path = differs(Path("runs/own_vectors"))
    held_out: Literal["test", "val"] = setting(
        "test", "split to evaluate on; choose settings on val"
    )
    select: Literal["best", "last"] = setting(
        "best", "whose weights to keep: of the epoch with the best validation, or of the last"
    )

    # Data: files of vectors, or a model and the photos that it encodes
    images: str | None = setting(None, "vectors of images (N, dim); without: those of Toy Birds")
    captions: str | None = setting(None, "vectors of captions (M, dim)")
    pairs: str | None = setting(None, "rows (P, 2) of image and caption; default: i with i")
    labels: str | None = setting(None, "class of each image, which its captions share")
    splits: str | None = setting(None, "train, validation or test of each image; default: random")
    texts: str | None = setting(None, "what the captions say, for pages and lists")
    paths: str | None = setting(None, "paths or addresses of the pictures, likewise")
    model: str | None = setting(None, "model whose vectors of --data-dir are stored and read")
    image_dir: Path | None = setting(
        None, "with --model: folder of the pictures; default: found at or below --data-dir"
    )

    # Model and training
    method: Literal[METHODS] = setting("none", "what to make of the vectors")
    dim: Size | None = setting(
        None, "dimensions of the embedding; default: as wide as the captions"
    )
    batch_size: Size = setting(1024, "pairs; of data with classes as many of each")
    learning_rate: float = setting(5e-4, "peak learning rate of AdamW, with cosine decay")
    epochs: Size = setting(10, "epochs over all captions; the method none trains none", smoke=1)
    steps_per_epoch: Size | None = setting(
        None, "steps per epoch; default: all captions once", smoke=2
    )

    def __post_init__(self):
        if self.model is not None:
            if self.data_dir is None:
                raise ValueError("--model needs --data-dir, a folder of photos with captions")
            for name in FILES:
                if getattr(self, name) is not None:
                    raise ValueError(f"--{name} applies to stored vectors; omit it with --model")
            return
        if self.image_dir is not None:
            raise ValueError("--image-dir needs --model")
        if (self.images is None) != (self.captions is None):
            raise ValueError("--images and --captions must be given together")
        if self.data_dir is not None and self.images is None:
            raise ValueError("--data-dir is the folder of --images and --captions; give them too")


def main(argv=None):
    start = time.process_time()
    settings = cli.parse(Settings, argv, description=__doc__)
    run = training.start(settings, describe_data(settings))
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


def describe_data(settings):
    """The description of the vectors for `zoo.data.open`: of the given files, of those that
    `--model` writes first, or of Toy Birds."""
    if settings.model is not None:
        return describe_vectors_of_model(settings)
    if not settings.images:
        return own_vectors_files.toy()
    files = {name: getattr(settings, name) for name in FILES}
    return {
        "loader": "vectors",
        **{name: absolute(spec, settings.data_dir) for name, spec in files.items() if spec},
        "held_out": settings.held_out,
        "seed": settings.seed,
    }


def describe_vectors_of_model(settings):
    """Writes a model's vectors of `--data-dir` to `OUT_vectors`, and returns their description."""
    photos = {"root": str(settings.data_dir.resolve()), "seed": settings.seed}
    if settings.image_dir is not None:
        photos["images"] = str(settings.image_dir.resolve())
    folder = settings.out.with_name(f"{settings.out.name}_vectors").resolve()
    files = own_vectors_files.write(settings.model, folder, photos=photos)
    return {**files, "held_out": settings.held_out}


def train_phases(settings, run):
    """One phase, on the batches of `batches_of`."""
    phase = training.Phase(
        "training", epochs=settings.epochs, rate=training.cosine_decay(settings.learning_rate)
    )

    def training_batches(train_split, seed):
        return batches_of(settings, train_split, seed)

    def optimizer(model, learning_rate):
        return keras.optimizers.AdamW(learning_rate, weight_decay=1e-4, global_clipnorm=1.0)

    training.run_phases(
        run, [phase], batches=training_batches, optimizer=optimizer, seed=settings.seed
    )


def batches_of(settings, train_split, seed):
    """The stream of batches: all pairs; of data with classes, pairs of as many classes as the batch
    holds, equally many of each."""
    records = train_split.records
    by_class = records.class_names is not None
    batch_size, options = settings.batch_size, {}
    if by_class:
        pairs_per_class = max(1, batch_size // records.num_classes)
        batch_size = pairs_per_class * min(batch_size, records.num_classes)
        options["pairs_per_class"] = pairs_per_class
    return Stream(
        batches.class_pairs if by_class else batches.image_caption_pairs,
        train_split,
        None,  # the captions are vectors
        batch_size,
        seed=seed,
        steps=settings.steps_per_epoch,
        options=options,
    )


def absolute(spec, folder):
    """`FILE` or `FILE:NAME`, relative to a folder or to this one, with its absolute path."""
    if folder is not None:
        spec = folder / spec
    path, name = located(spec)
    absolute_path = Path(path).resolve()
    return str(absolute_path) if name is None else f"{absolute_path}:{name}"


if __name__ == "__main__":
    cli.run(main)
