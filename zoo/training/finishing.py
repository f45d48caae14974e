"""The end of a run: evaluate, write down, print."""

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from zoo import evaluation
from zoo.data import datasets
from zoo.evaluation.printing import show_results
from zoo.files import RunFolder
from zoo.training.history import read_history
from zoo.training.run import Run, check_benchmark


def finish(
    run: Run,
    similarities: Sequence[str] = ("own",),
    annotations_dir: str | os.PathLike | None = None,
    instances: Any = None,
    measure_more: Callable | None = None,
    report: Callable | None = None,
) -> dict[str, Any] | None:
    """Saves the trained model, so that nothing can lose it, evaluates it once on the test split,
    and prints the results.

    Args:
        run: a `zoo.training.Run` whose phases are done.
        similarities, annotations_dir, instances: see `zoo.evaluation.measure`.
        measure_more: function `(run, model) -> dict` of further results.
        report: function `(run, results, encoded, model)` that draws what was evaluated, such as
            `zoo.plots.draw_run`; None draws nothing.

    Returns:
        The results, as metrics.json has them; None where a worker is not the chief.
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
            run.folder, reader, run.validation, run.test, encoded, run.train, whole=model
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
    """Evaluates the mean similarity of finished runs once, and prints the results.

    Args:
        folder: the `RunFolder` to write; its `data` say what to evaluate on.
        runs: folders of the finished runs.
        annotations_dir, instances: see `zoo.evaluation.measure`.

    Raises:
        InputError: if a folder holds no run with a model, or, before anything is encoded, the test
            split lacks what the benchmark of `annotations_dir` asks for.
    """
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
