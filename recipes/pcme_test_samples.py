"""Retrieval of PCME by so many samples of each Gaussian: PCME, figure E.1."""

from zoo import evaluation, similarities
from zoo.metrics import evaluate_retrieval
from zoo.report.style import PALETTE, new_figure, save, styled


def measure(settings):
    """A function `(run, model) -> dict` of retrieval by so many samples of each Gaussian.

    As many are drawn at test time as `--test-samples` say, whatever the training took.
    """

    def of_each(run, model):
        encoded = evaluation.encode(model, run.test.records, run.test.source)
        scale, shift = float(model.similarity.scale), float(model.similarity.shift)
        found = {}
        for count in settings.test_samples:
            similarity = similarities.MatchProbability(scale, shift, count, settings.seed)
            pairs = encoded.pairs(similarity).kept()
            found[str(count)] = evaluate_retrieval(pairs, encoded.relevance)
        save(plot(found), run.folder.plots / "test_samples.png")
        return {"test_samples": found}

    return of_each


@styled
def plot(found):
    """R-Precision of both directions over the number of samples."""
    figure = new_figure(5.0, 3.6)
    axis = figure.subplots()
    counts = sorted(found, key=int)
    for side, name, color in zip(
        ("i2t", "t2i"), ("image to text", "text to image"), PALETTE, strict=False
    ):
        values = [found[count][f"{side}_r_precision"] for count in counts]
        axis.plot([int(count) for count in counts], values, marker="o", color=color, label=name)
    axis.set(xlabel="samples J at test time", ylabel="R-Precision in %", xscale="log")
    axis.set_xticks([int(count) for count in counts], counts)
    axis.legend()
    return figure
