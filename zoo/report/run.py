"""The end of a run: evaluate, draw, write down, show."""

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from zoo import data, evaluation, training
from zoo.files import RunFolder
from zoo.report import confidence
from zoo.report.curves import training_curves
from zoo.report.results import draw, print_results
from zoo.report.style import save


def train(
    settings: Any,
    data: dict[str, Any],
    build: Callable,
    fit: Callable,
    prepare: Callable | None = None,
    measure_more: Callable | None = None,
    select: str | None = None,
) -> dict[str, Any] | None:
    """A recipe from start to end: the data, the model, its phases, the evaluation.

    ```python
    def main(argv=None):
        settings = zoo.cli.parse(Settings, argv, description=__doc__)
        return zoo.report.train(settings, settings.data("cub", "toy_birds"), build, fit)
    ```

    Args:
        settings: a `RetrievalSettings`.
        data: what to read, a description for `zoo.data.open`.
        build: function `(settings, train split) -> DualEncoder`.
        fit: function `(settings, run)` that trains `run.model`, by `zoo.training.fit`.
        prepare: function of the run that may replace its splits.
        measure_more: function `(run, model) -> dict` of further results.
        select: see `zoo.training.start`.

    Returns:
        The results, as `finish`.
    """
    run = training.start(settings, data, select)
    if run.finished:
        return show(run)
    if prepare is not None:
        prepare(run)
    with run.replicas():
        model = build(settings, run.train)
        run.model = model.with_auxiliaries(*settings.ranking_terms())
        fit(settings, run)
    return finish(run, **settings.evaluation(), measure_more=measure_more)


def finish(
    run: training.Run,
    similarities: Sequence[str] = ("own",),
    annotations_dir: str | os.PathLike | None = None,
    instances: Any = None,
    measure_more: Callable | None = None,
) -> dict[str, Any] | None:
    """Saves the trained model, evaluates it once on the test split, draws, and prints the results.

    The model is saved first, so that nothing that goes wrong afterwards can lose it.

    Args:
        run: a `zoo.training.Run` whose phases are done.
        similarities, annotations_dir, instances: see `zoo.evaluation.measure`.
        measure_more: function `(run, model) -> dict` of further results.

    Returns:
        The results, as metrics.json has them; of several workers the chief alone has them, None
        is what the others return.
    """
    if not run.execution.is_chief:
        run.execution.wait_for_all()
        return None
    with run.locked():
        results = _finish(run, similarities, annotations_dir, instances, measure_more)
    show_results(results)
    print(f"Everything is in {run.folder.path}")
    run.execution.wait_for_all()
    return results


def _finish(run, similarities, annotations_dir, instances, measure_more):
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
    split = run.test
    draw(run.folder.plots, results, encoded, model, split.picture, split.true_matches)
    if run.folder.history_path.exists():  # not where nothing is trained
        history = training.read_history(run.folder.history_path)
        save(training_curves(history), run.folder.plots / "training_curves.png")
        results["seconds"] = float(np.nansum(history["seconds"]))
    if measure_more is not None:
        results |= measure_more(run, model)
    run.folder.finish(results)
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
            split does not hold what the benchmark of `annotations_dir` asks for.
    """
    if folder.finished:
        print(f"{folder.path} is finished")
    else:
        split = data.open(folder.data, "test")
        if annotations_dir is not None:
            training.check_benchmark(split.records, annotations_dir)
        folder.finish(evaluation.ensemble(runs, split, annotations_dir, instances))
    show_results(folder.metrics)
    return folder.metrics


def show(run: training.Run) -> dict[str, Any]:
    """Prints and returns the results of a finished `zoo.training.Run`."""
    results = run.folder.metrics
    if run.execution.is_chief:
        print(f"{run.folder.path} is finished")
        show_results(results)
    return results


def show_results(results: dict[str, Any]) -> None:
    """Prints the results of a run.

    Args:
        results: as metrics.json has them.
    """
    rows = results["retrieval"]
    if "oracle" in results:
        rows = {**rows, "oracle": results["oracle"]}
    print_results(rows, f"{results['split']}, in %", results["chance"])
    if "best_epoch" in results:
        best = results["best_epoch"]
        print(f"weights of {best['phase']}, epoch {best['epoch']}: validation {best['value']:.1f}")
    for side, quality in results.get("uncertainty", {}).items():
        print(
            f"{side}: Spearman of uncertainty bin and R@1 {_signed(quality['spearman_of_bins'])}; "
            f"area under risk–coverage {100 * quality['risk_coverage']['aurc']:.1f} "
            f"(at random {100 * quality['risk_coverage']['random_aurc']:.1f})"
        )
    for side, found in results.get("confidence", {}).items():
        print(confidence.sentence(side, found))
    rankings = {"": results} | {
        f" by {name}": found for name, found in results.get("by_similarity", {}).items()
    }
    for by, found in rankings.items():
        if "asp" in found:
            both = " / ".join(f"{found['asp'][side]:.1f}" for side in ("i2t", "t2i"))
            print(f"ASP{by} i2t / t2i {both} %, of a random ranking about 50 %")
        if "coco" in found:
            names = ("coco_1k", "coco_5k", "cxc", "eccv")
            truths = {name: _of_truth(found["coco"], name) for name in names}
            print_results(truths, f"by COCO's truths{by}, in %; R-P by CxC's is RPC2")
    if "ambiguity_spearman" in results:
        rho = _signed(results["ambiguity_spearman"])
        print(f"Spearman of caption uncertainty and true number of matches {rho}")


def _signed(rho):
    """Of values that are all equal there is no ρ; JSON keeps it as null."""
    return "undefined" if rho is None or np.isnan(rho) else f"{rho:+.2f}"


def _of_truth(results, name):
    prefix = f"{name}_"
    return {
        key.removeprefix(prefix): value for key, value in results.items() if key.startswith(prefix)
    }
