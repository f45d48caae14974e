"""What a report opens with: the terminal's words and figures, six examples, short on any screen."""

import re

import numpy as np
import pytest

from browser import VIEWS, chromium, find_chromium
from synthetic_run import encoded, picture, records
from zoo.evaluation import make_probes
from zoo.evaluation.calibration import calibrated, measure
from zoo.evaluation.printing import ASKED, SAID, sentence, verdict
from zoo.metrics import INFORMATIVE
from zoo.report import ReportedRun, markup, opening, style
from zoo.report.page import sections_of, write_report
from zoo.similarities import ClosedFormSampledDistance


@pytest.fixture(scope="module")
def shown():
    return encoded(records(images=120, labels=40, seed=2))


@pytest.fixture(scope="module")
def reported(shown):
    probes = make_probes(None, encoded(records(images=120, labels=40, seed=1)))
    options = {"picture": picture, "probes": probes, "resamples": 10}
    return ReportedRun("birds", shown, ClosedFormSampledDistance(), **options)


@pytest.fixture(scope="module")
def section(reported):
    return opening.section(reported)


def found_by_hand(reported, side):
    """As the end of a run measures it, see `zoo.evaluation.calibrate_run`."""
    confidence = calibrated(reported.probes, reported.similarity, reported.split, side)
    return measure(confidence, reported.judged[side].answers)


def test_the_verdict_is_the_terminals(reported, section):
    for side, said in zip(ASKED, section.verdicts, strict=True):
        found = found_by_hand(reported, side)
        assert said == f"{ASKED[side]}: {verdict(found)}"
        on_the_terminal = sentence(side, {**found, "half_of_test": {"why_not": ""}})
        (nauc,) = re.findall(r"nAUC (−?\d\.\d\d) \[", said)
        assert f"nAUC {nauc} " in on_the_terminal


@pytest.mark.parametrize("kind", SAID)
def test_every_kind_of_verdict_is_a_sentence(kind):
    nauc = np.nan if kind == "undefined" else 0.2
    said = verdict({"nauc": nauc, "nauc_interval": [-0.1, 0.4], "verdict": kind})
    assert said.endswith(".")
    assert ("nAUC 0.20 [−0.10, 0.40]" in said) == (kind != "undefined")
    assert (str(INFORMATIVE) in said) == (kind == "weak")
    assert verdict({"why_not": "no query has a match"}) == "no confidence: no query has a match."


def test_one_number_a_question(reported, section):
    (table,) = section.tables
    rows = {row[0]: row[1:] for row in table.rows}
    assert len(rows) == 4
    for place, side in enumerate(ASKED):
        found = found_by_hand(reported, side)
        right, true, enough, answered = (row[place] for row in rows.values())
        assert right.startswith(f"{100 * reported.ranks[side].hits(1).mean():.1f} [")
        assert f"off by {100 * found['calibration_error']:.1f} points" in true
        assert f"right {100 * found['right']:.0f} %" in true
        assert enough == f"{found['smallest_k']['k']:,}"
        certified = found["certified_threshold"]
        if certified is None:
            assert answered == "cannot be promised"
        else:
            assert answered.startswith(f"{100 * certified['answered']:.0f} %")


def test_no_other_section_gives_another_number_for_how_true_it_is(reported):
    """The report once had an error of 6 points beside an ECE of 75, of two probabilities."""
    wrong = [
        (one.name, number.label)
        for one in sections_of(reported)
        for number in one.numbers
        if "ECE" in number.label and "raw probability" not in number.label
    ]
    assert not wrong


def test_six_examples_from_sure_to_unsure(reported, section):
    one = reported.judged["t2i"]
    assert len(section.examples) == 6
    said = [example.probability for example in section.examples]
    assert said == sorted(said, reverse=True)
    tenth = np.quantile(one.probability, [0.02, 0.98])
    assert tenth[0] < said[-1] < said[0] < tenth[1]  # not the extremes, but what is usual
    logits = np.asarray(reported.similarity(reported.split.images, reported.split.captions))
    labels = reported.records.image_labels
    for example in section.examples:
        row = list(reported.records.captions).index(example.question)
        assert example.verdict in ("likely", "unsure", "nothing matches")
        assert example.reason.endswith(".")
        if list(reported.records.captions).count(example.question) > 1:
            continue
        order = np.argsort(-logits[:, row], kind="stable")
        right = labels[order] == reported.records.caption_labels[row]
        assert [found.right for found in example.found] == right[:3].tolist()
        assert example.rank == 1 + np.flatnonzero(right)[0]
        np.testing.assert_array_equal(example.found[0].picture, picture(order[0]))


def test_a_run_without_probes_or_pictures_opens_too(shown):
    plain = ReportedRun("birds", shown, ClosedFormSampledDistance(), resamples=10)
    section = opening.section(plain)
    assert "the run has no probes" in section.text
    assert "cross-fitted" in section.text
    (table,) = section.tables
    assert set(table.rows[2][1:]) == {"cannot be promised"}
    assert all(found.picture is None and found.text for found in section.examples[0].found)
    few = encoded(records(images=6, captions_per_image=1, labels=2))
    section = opening.section(ReportedRun("few", few, ClosedFormSampledDistance(), resamples=10))
    assert section.verdicts[0].startswith("Image to text: no confidence: ")
    assert not section.figures
    assert len(section.examples) == 6


@pytest.fixture(scope="module")
def page(reported, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(markup, "DPI", 40)  # that there is a picture is enough
        patch.setattr(style.save, "__defaults__", (40,))
        return write_report([reported], tmp_path_factory.mktemp("report"))


@pytest.mark.slow
def test_all_but_the_opening_is_folded(page):
    text = page.read_text()
    first, *folded = text.split("<details>")
    assert len(folded) >= 8
    assert first.count('<li class="') == 6
    assert "Recall@10" not in first
    assert "Recall@10" in folded[0]
    assert "<details open" not in text


@pytest.mark.slow
@pytest.mark.skipif(find_chromium() is None, reason="no chromium is installed")
def test_it_is_six_screens_and_as_wide_as_a_phone(page):
    pytest.importorskip("playwright", reason="playwright is not installed")
    grounds = {}
    with chromium() as browser:
        for name, view in VIEWS.items():
            context = browser.new_context(**view)
            visited = context.new_page()
            visited.goto(page.as_uri())
            width, height = visited.evaluate(
                "[document.documentElement.scrollWidth, document.documentElement.scrollHeight]"
            )
            assert width <= view["viewport"]["width"], name
            assert height <= 6 * view["viewport"]["height"], name
            grounds[name] = visited.evaluate("getComputedStyle(document.body).backgroundColor")
            shown = visited.evaluate("document.querySelector('picture img').currentSrc.length")
            grounds[name] += f" {shown}"
            small = visited.evaluate(
                "Math.min(...[...document.querySelectorAll('p, td, figcaption, span')].map("
                "one => parseFloat(getComputedStyle(one).fontSize)))"
            )
            assert small >= 12, name
            visited.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
            width = visited.evaluate("document.documentElement.scrollWidth")
            assert width <= view["viewport"]["width"], f"{name}, unfolded"
            context.close()
    assert grounds["light"] == grounds["phone"]
    assert grounds["light"].split(" ")[-1] != grounds["dark"].split(" ")[-1]  # other drawings
    assert grounds["light"].rpartition(" ")[0] != grounds["dark"].rpartition(" ")[0]
