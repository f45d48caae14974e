"""How well a run retrieves, with intervals."""

from zoo import similarities
from zoo.report.bootstrap import percent
from zoo.report.reported_run import by_direction
from zoo.report.section import Number, Section


def section(run):
    """Recall@1, 5, 10 and R-Precision, each the mean over its queries."""

    def numbers(direction, words):
        ranks = run.ranks[direction]
        asked = ranks.has_positive
        for k in (1, 5, 10):
            estimate = run.estimate(percent, ranks.hits(k)[asked])
            yield Number(f"{words}: Recall@{k}", estimate, "%")
        estimate = run.estimate(percent, ranks.r_precision[asked])
        yield Number(f"{words}: R-Precision", estimate, "%")

    ranking = similarities.name_of(run.similarity)
    text = f"{run.records.summary()}. Ranked by {ranking}; ties count against the model."
    return Section("retrieval", "Retrieval", text, tuple(by_direction(numbers)))
