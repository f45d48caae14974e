"""Retrieval on Toy Scenes by every true match."""

from zoo import evaluation, metrics
from zoo.data import toy_scenes
from zoo.recipe.splits import drawn_scenes


def against_truth(settings, folder, model, splits):
    """Retrieval by all the scenes that a caption is true of, not its own alone.

    Args:
        settings, folder, model, splits: as `zoo.recipe.run` gives them to `measure_more`.

    Returns:
        `{"true_matches": …}` as `zoo.metrics.evaluate_retrieval` has it; on data of one's own
        (`settings.data_dir`), whose truth nobody knows, and on classes, nothing.
    """
    records = splits.held_out.records
    if settings.data_dir is not None or records.class_names is not None:
        return {}
    split = evaluation.encode(model, records, splits.held_out.source)
    truth = toy_scenes.truth_matrix(drawn_scenes(settings), records)
    pairs = split.pairs(model.similarity).kept()
    return {"true_matches": metrics.evaluate_retrieval(pairs, truth)}
