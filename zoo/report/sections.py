"""All sections of a run's report, in their order."""

from zoo.report import (
    calibration,
    corruption,
    extremes,
    isotropy,
    plane_section,
    retrieval_section,
    set_algebra,
    words_by_uncertainty,
    worth_sections,
)
from zoo.report.section import Section

OF_ALL = {"retrieval": retrieval_section.section, "calibration": calibration.section}
OF_UNCERTAINTY = {
    "recall by uncertainty": worth_sections.recall_section,
    "risk and coverage": worth_sections.risk_section,
    "true ambiguity": worth_sections.ambiguity_section,
    "erased pixels and lost words": corruption.section,
    "ellipses": plane_section.section,
    "set algebra": set_algebra.section,
    "isotropy": isotropy.section,
    "words": words_by_uncertainty.section,
    "extremes": extremes.section,
}
NO_UNCERTAINTY = (
    "This run's embeddings are points or tokens: they have no uncertainty, so there is nothing to "
    "say about what it is worth. A system with a variance, or one of sets, has more to show here."
)
FEW = "The split has too few images or captions for bins of uncertainty: ten of each are needed."
_FEWEST = 10


def sections_of(run, tell=lambda name: None):
    """The `Section`s that apply to a run, made one after the other.

    Args:
        run: a `ReportedRun`.
        tell: function that is told the name of each section before it is made.

    Yields:
        `Section`s.
    """
    few = min(run.records.num_images, run.records.num_captions) < _FEWEST
    makers = {**OF_ALL, **(OF_UNCERTAINTY if run.is_uncertain and not few else {})}
    for name, make in makers.items():
        tell(name)
        section = make(run)
        if section is not None:
            yield section
    if not run.is_uncertain or few:
        text = FEW if run.is_uncertain else NO_UNCERTAINTY
        yield Section("no_uncertainty", "Uncertainty", text)
