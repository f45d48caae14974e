"""The way of a run: open its folder, train, evaluate, draw, save, show."""

import keras
import numpy as np

from zoo import evaluation, metrics, report, training
from zoo.data.skipped import write_skipped
from zoo.files.run_folder import RunFolder
from zoo.recipe import ranking_terms
from zoo.training.execution import Execution, on_one_device


def run(settings, load, build, fit, measure_more=None):
    """Runs a recipe, or goes on with it, or shows what it reached if it is finished.

    Args:
        settings: a `RetrievalSettings`.
        load: function of the settings that gives the `Splits`.
        build: function `(settings, train) -> DualEncoder`, `train` being the training `Split`.
        fit: function `(settings, run, model, train)` that compiles and trains the model.
        measure_more: function `(settings, run, model, splits) -> dict` of further results.

    Returns:
        The results, as metrics.json has them; of several workers the chief alone has them, None
        is what the others return.
    """
    execution = Execution.of(settings)
    if execution.is_chief:
        folder = RunFolder.open(settings.out, settings)
    else:
        folder = RunFolder(settings.out)
    folder.execution = execution
    if folder.finished:
        return _is_finished(folder)
    keras.utils.set_random_seed(settings.seed)
    if settings.mixed_precision:
        keras.config.set_dtype_policy(settings.mixed_precision)
    splits = ranking_terms.with_semantics(settings, load(settings))
    if execution.is_chief:
        left_out = write_skipped(folder, *(split.records for split in splits))
    with execution.devices.scope():
        model = ranking_terms.with_ranking_terms(settings, build(settings, splits.train))
        folder.checks = ranking_terms.asp_checks(settings, splits.held_out)
        fit(settings, folder, model, splits.train)
    if not execution.is_chief:
        execution.wait_for_all()
        return None
    if execution.is_spread:
        model = on_one_device(model)
    results = evaluate(settings, folder, model, splits.held_out)
    results["left_out"] = left_out
    if measure_more is not None:
        results |= measure_more(settings, folder, model, splits)
    folder.save_model(model)
    folder.finish(results)
    show(results)
    print(f"Everything is in {folder.path}")
    execution.wait_for_all()
    return results


def _is_finished(folder):
    if folder.execution.is_chief:
        print(f"{folder.path} is finished")
        show(folder.metrics)
    return folder.metrics


def evaluate(settings, folder, model, held_out):
    """Retrieval metrics, what the uncertainties are worth, and all figures, of one split."""
    split = evaluation.encode(model, held_out.records, held_out.source)
    results = evaluation.evaluate(model, split, settings.test_similarities)
    results["split"] = held_out.records.summary()
    if settings.asp or settings.annotations_dir:
        pairs = split.pairs(model.similarity).kept()
    if settings.asp:
        results["asp"] = ranking_terms.semantic_precision(settings, held_out.records, pairs)
    if settings.annotations_dir:
        results["coco"] = metrics.coco_benchmark(
            pairs,
            held_out.records.image_ids,
            held_out.records.caption_ids,
            settings.annotations_dir,
        )
    fits = held_out.fits
    if fits is not None and split.caption_uncertainty is not None:
        results["ambiguity_spearman"] = evaluation.spearman_of_matches(split, fits)
    report.draw(folder.plots, results, split, model, held_out.picture, fits)
    history = training.read_history(folder.history_path)
    report.save(report.training_curves(history), folder.plots / "training_curves.png")
    results["seconds"] = float(np.nansum(history["seconds"]))
    return results


def show(results):
    """Prints the results of a run."""
    report.print_results(results["retrieval"], f"{results['split']}, in %", results["chance"])
    for side, worth in results.get("uncertainty", {}).items():
        print(
            f"{side}: Spearman of uncertainty bin and R@1 {_signed(worth['spearman_of_bins'])}; "
            f"area under risk–coverage {100 * worth['risk_coverage']['aurc']:.1f} "
            f"(at random {100 * worth['risk_coverage']['random_aurc']:.1f})"
        )
    if "asp" in results:
        both = " / ".join(f"{results['asp'][side]:.1f}" for side in ("i2t", "t2i"))
        print(f"ASP i2t / t2i {both} %, of a random ranking about 50 %")
    if "coco" in results:
        truths = {name: _of_truth(results["coco"], name) for name in ("coco_5k", "cxc", "eccv")}
        report.print_results(truths, "by COCO's truths, in %; R-P by CxC's is RPC2")
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
