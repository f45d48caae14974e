"""One run of a recipe: its folder, its data, its replicas, and its phases."""

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from halo_search.errors import InputError
from halo_search.files.atomic import locked
from halo_search.files.environment import cache_folder
from zoo import encoders, evaluation, metrics
from zoo.data import datasets
from zoo.data.records.features import cached
from zoo.data.records.records import write_skipped
from zoo.data.records.sources import Features
from zoo.evaluation.printing import show_results
from zoo.models.run_folder import RunFolder
from zoo.training.checks import check_rankings, one_line
from zoo.training.execution import Execution, on_one_device
from zoo.training.history import read_history
from zoo.training.resume import fit_phase
from zoo.training.validation import FILE_NAME, BestEpoch, Validation, restore_best


def start(settings: Any, data_description: dict[str, Any], select: str | None = None) -> "Run":
    """Starts or resumes a run: opens its folder, sets the seed and the precision, and reads the
    splits, so that what is wrong with the data shows before anything is trained.

    ```python
    run = zoo.training.start(settings, describe_data(settings))
    if run.finished:
        return zoo.training.show(run)
    with run.replicas():
        run.model = build(settings, run.train).with_auxiliaries(*settings.ranking_terms())
        zoo.training.run_phases(run, phases, batches, optimizer, settings.seed)
    return zoo.training.finish(run, **settings.evaluation(), report=zoo.plots.draw_run)
    ```

    Args:
        settings: a `RetrievalSettings`; its fields become `config.json`.
        data_description: what to read, for `zoo.data.open`.
        select: which epoch's weights are kept, `"best"` or `"last"`; default: `settings.select`.

    Raises InputError if the folder holds another run, data or devices are not there, or the test
    split lacks the benchmark of `settings.annotations_dir`.
    """
    execution = Execution.of(settings)
    is_new = execution.is_chief and not Path(settings.out).exists()
    if execution.is_chief:
        folder = RunFolder.open(settings.out, settings, data=data_description)
    else:
        folder = RunFolder(settings.out)
    run = Run(folder, execution, (select or settings.select) == "best")
    run.rankings = getattr(settings, "test_similarities", ())
    if not folder.finished:
        keras.utils.set_random_seed(settings.seed)
        if settings.mixed_precision:
            keras.config.set_dtype_policy(settings.mixed_precision)
        try:
            run.open_data(data_description, settings.annotations_dir)
        except InputError:
            if is_new:  # nothing is in it that a second call could use
                folder.discard()
            raise
        if settings.annotations_dir is not None and settings.benchmark()["instances"] is None:
            print("PMRP is left out: no annotations/instances_val2014.json in --data-dir")
    return run


def check_benchmark(records, annotations_dir):
    """Raises InputError, before hours of training, unless a test split holds COCO's benchmark."""
    try:
        metrics.check_coco_ids(records.image_ids, records.caption_ids, annotations_dir)
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"--annotations-dir {annotations_dir}: {records.name}: {error}") from error


class Run:
    """What a recipe works with, made by `start`.

    ```python
    run = zoo.training.start(settings, {"loader": "toy_birds"})
    with run.replicas():
        run.model = build(settings, run.train)
        run.run_phase(run.model, "training", stream, epochs=3)
    ```

    Attributes:
        folder, execution: the `RunFolder` and the `Execution`.
        train, validation, test: the splits, `zoo.data.Split`s. A recipe may replace them.
        model: the whole model, to be set by the recipe before it fits.
        reads_features: whether the splits hold features of the model's frozen backbones.
        left_out: what the loaders left out, counted by split and kind.
        rankings: names of the similarities to rank by in the end.
    """

    def __init__(
        self, folder: RunFolder, execution: Execution | None = None, keeps_best: bool = True
    ):
        self.folder = folder
        self.execution = execution or Execution()
        self.keeps_best = keeps_best
        self.train = self.validation = self.test = self.model = None
        self.reads_features = False
        self.left_out = {}
        self.rankings = ()

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to do."""
        return self.folder.finished

    def open_data(
        self,
        data_description: dict[str, Any],
        annotations_dir: str | os.PathLike | None = None,
    ) -> None:
        """Opens the three splits, and writes what was left out of them."""
        self.train, self.validation, self.test = (
            datasets.open(data_description, split) for split in datasets.SPLITS
        )
        if annotations_dir is not None:  # before anything is written
            check_benchmark(self.test.records, annotations_dir)
        if self.execution.is_chief:
            splits = {
                split.records.name: split.records
                for split in (self.train, self.validation, self.test)
            }
            self.left_out = write_skipped(self.folder, *splits.values())

    @contextlib.contextmanager
    def replicas(self) -> Iterator[None]:
        """The scope to build and fit the model in: on the replicas, the run folder locked. Raises
        InputError if another process trains in the folder, or the settings do not fit."""
        with self.locked(), self.execution.devices.scope(), one_line(self.folder.path):
            yield

    def locked(self) -> contextlib.AbstractContextManager:
        """Holds the run folder for this process, where it writes it."""
        return locked(self.folder.path) if self.execution.is_chief else contextlib.nullcontext()

    def read_features(
        self, train: datasets.Split, validation: datasets.Split, test: datasets.Split
    ) -> None:
        """Continues with splits whose sources are stored `Features` of the frozen backbone, and
        whose records may have `caption_vectors` of the captions' one."""
        self.train, self.validation, self.test = train, validation, test
        self.reads_features = True

    def reader(self, model: Any = None) -> Any:
        """A whole `DualEncoder`, by default `self.model`, as it reads the splits of this run: where
        they are features, that of the heads alone, which shares its weights."""
        model = self.model if model is None else model
        if not self.reads_features:
            return model
        reader = model.with_image_encoder(encoders.head_alone(model.image_encoder))
        if self.train.records.caption_vectors is None:
            return reader
        return reader.with_caption_encoder(encoders.head_alone(model.caption_encoder))

    def without_backbone(self) -> tuple[Any, tuple[datasets.Split, ...]]:
        """What a phase with a frozen image backbone fits: the rest, a `DualEncoder` that shares the
        weights, and `(train, validation)` as it reads them."""
        encoder = self.model.image_encoder
        heads = self.model.with_image_encoder(encoders.head_alone(encoder))
        return heads, self.stored_features(encoder.get_layer("backbone"))

    def stored_features(self, backbone: keras.Model) -> tuple[datasets.Split, ...]:
        """The training and the validation split as features of a frozen backbone, computed once
        and kept in the user's cache folder, which all runs share."""
        folder = cache_folder("features")
        return tuple(
            datasets.Split(
                split.records, Features(cached(folder, backbone, split.records, split.source))
            )
            for split in (self.train, self.validation)
        )

    def run_phase(
        self,
        model: keras.Model,
        phase: str,
        stream: Callable,
        epochs: int,
        callbacks: Sequence[keras.callbacks.Callback] = (),
        stateful_callbacks: dict[str, Any] | None = None,
        validation: Any = None,
    ) -> None:
        """Trains one phase with `fit_phase`, and adds what belongs to the run: after each epoch,
        retrieval on the validation split goes to the logs, and the best epoch's weights are kept.

        Args:
            model: compiled; `self.model` or a part that shares its weights.
            phase, epochs: its name and its number of epochs.
            stream: the training batches, a `zoo.data.Stream`.
            callbacks, stateful_callbacks: further ones, see `fit_phase`.
            validation: the validation split as `model` reads it; default: the run's.
        """
        batch_size = getattr(stream, "size", None)
        if batch_size is not None:  # the split may have fewer rows than --batch-size
            self.execution.check_batch(batch_size)
        check_rankings(self.model, self.rankings)
        checkpoints = self.folder.checkpoints
        validation_callbacks = [Validation(validation or self.validation)]
        if self.keeps_best:
            is_chief = self.execution.is_chief
            validation_callbacks.append(BestEpoch(checkpoints, self.model, phase, is_chief))
        fit_phase(
            self.folder,
            model,
            phase,
            stream,
            epochs,
            stream.steps_per_epoch,
            [*callbacks, *validation_callbacks],
            stateful_callbacks,
            self.execution,
        )

    def trained(self) -> tuple[keras.Model, dict[str, Any] | None]:
        """The trained model on one device, and what its best epoch was or None. Only the chief of
        several workers may use it."""
        model = on_one_device(self.model) if self.execution.is_spread else self.model
        if not self.keeps_best:
            return model, None
        return model, restore_best(self.folder.checkpoints / FILE_NAME, model)


def finish(
    run: Run,
    similarities: Sequence[str] = ("own",),
    annotations_dir: str | os.PathLike | None = None,
    instances: Any = None,
    measure_more: Callable | None = None,
    report: Callable | None = None,
) -> dict[str, Any] | None:
    """Saves the trained model, so that nothing can lose it, evaluates it once on the test split,
    and prints and returns the results, as metrics.json has them; None of a worker that is no chief.

    Args:
        run: a `zoo.training.Run` whose phases are done.
        similarities, annotations_dir, instances: see `zoo.evaluation.measure`.
        measure_more: function `(run, model) -> dict` of further results.
        report: function `(run, results, encoded, model)` that draws them; None draws nothing.
    """
    if not run.execution.is_chief:
        run.execution.wait_for_all()
        return None
    with run.locked():
        model, best = run.trained()
        run.folder.save_model(model)
        reader = run.reader(model)
        results, encoded = evaluation.measure(
            reader, run.test, similarities, annotations_dir, instances
        )
        results["left_out"] = run.left_out
        if best is not None:
            results["best_epoch"] = best
        results["confidence"] = evaluation.calibrate_run(
            run.folder, reader, run.validation, run.test, encoded, run.train, complete_model=model
        )
        if report is not None:
            report(run, results, encoded, model)
        if run.folder.history_path.exists():  # not where nothing is trained
            history = read_history(run.folder.history_path)
            results["seconds"] = float(np.nansum(history["seconds"]))
        if measure_more is not None:
            results |= measure_more(run, model)
        run.folder.finish(results)
    show_results(results)
    print(f"Everything is in {run.folder.path}")
    run.execution.wait_for_all()
    return results


def finish_ensemble(
    folder: RunFolder,
    runs: Sequence[str | os.PathLike],
    annotations_dir: str | os.PathLike | None = None,
    instances: Any = None,
) -> dict[str, Any]:
    """Evaluates the mean similarity of finished `runs` once, and prints the results. `folder` is
    the `RunFolder` to write, whose `data` say what to evaluate on; the rest as of `finish`. Raises
    InputError if one has no model, or the test split lacks the benchmark of `annotations_dir`."""
    if folder.finished:
        print(f"{folder.path} is finished")
    else:
        split = datasets.open(folder.data, "test")
        if annotations_dir is not None:
            check_benchmark(split.records, annotations_dir)
        folder.finish(evaluation.ensemble(runs, split, annotations_dir, instances))
    show_results(folder.metrics)
    return folder.metrics


def show(run: Run) -> dict[str, Any]:
    """Prints and returns the results of a finished `zoo.training.Run`."""
    results = run.folder.metrics
    if run.execution.is_chief:
        print(f"{run.folder.path} is finished")
        show_results(results)
    return results
