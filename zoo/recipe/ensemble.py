"""Ensembles: the similarities of finished runs, averaged."""

import numpy as np

from zoo import evaluation, metrics
from zoo.files.run_folder import RunFolder
from zoo.metrics.blocks import row_blocks
from zoo.models.presets import from_preset
from zoo.recipe.main import show
from zoo.recipe.ranking_terms import semantic_precision


def ensemble(settings, load):
    """Evaluates the mean similarity of several runs on the held-out split.

    Args:
        settings: a `RetrievalSettings` with `ensemble`, the folders of finished runs whose images
            and captions `load` gives.
        load: function of the settings that gives the `Splits`.

    Returns:
        The results, as metrics.json has them: under `"retrieval"` each run by its folder, and
        `"ensemble"`.

    Raises:
        InputError: if a folder holds no run with a model.

    Reference: DivE (Kim et al., CVPR 2023), section 4.2: two seeds.
    """
    folder = RunFolder.open(settings.out, settings)
    if not folder.finished:
        held_out = load(settings).held_out
        mean, retrieval = 0.0, {}
        for path in settings.ensemble:
            model = from_preset(RunFolder.existing(path).path)
            split = evaluation.encode(model, held_out.records, held_out.source)
            pairs = split.pairs(model.similarity)
            matrix = np.empty(pairs.shape, np.float32)
            for start, rows in row_blocks(pairs):
                matrix[start : start + len(rows)] = rows
            retrieval[str(path)] = metrics.evaluate_retrieval(matrix, split.relevance)
            mean = mean + matrix / len(settings.ensemble)
        retrieval["ensemble"] = metrics.evaluate_retrieval(mean, split.relevance)
        results = {
            "retrieval": retrieval,
            "chance": metrics.chance(split.relevance),
            "split": held_out.records.summary(),
        }
        if settings.asp:
            results["asp"] = semantic_precision(settings, held_out.records, mean)
        folder.finish(results)
    show(folder.metrics)
    return folder.metrics
