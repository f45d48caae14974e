"""`halo report` from end to end, on a recipe's smoke run, and its complaints."""

import re

import numpy as np
import pytest

import pcme_2d
from halo_search.cli import report as command
from synthetic_run import encoded, picture, records
from zoo import cli, data, evaluation
from zoo.data import Split, toy_birds
from zoo.evaluation.printing import ASKED, sentence, verdict
from zoo.metrics.confidence import abstention_auc
from zoo.models.run_folder import RunFolder
from zoo.plots import principal_plane, report, style
from zoo.similarities import ClosedFormSampledDistance

SMALL = ["--smoke", "--image-size=16", "--word-dim=4", "--max-words=12", "--num-samples=2"]
SIMILARITY = ClosedFormSampledDistance()


@pytest.fixture(scope="module")
def birds(tmp_path_factory):
    root = tmp_path_factory.mktemp("birds") / "toy"
    return toy_birds.generate(root, num_classes=16, images_per_class=8, image_size=16)


@pytest.fixture(autouse=True)
def _small_birds_are_the_embedded_ones(birds, monkeypatch):
    monkeypatch.setattr(toy_birds, "generate", lambda root: birds)


@pytest.fixture(scope="module")
def finished(birds, tmp_path_factory):
    """A run as the recipe leaves it, but for the training, which its report does not look at."""
    out = tmp_path_factory.mktemp("runs") / "plane"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(toy_birds, "generate", lambda root: birds)
        settings = cli.parse(pcme_2d.Settings, [*SMALL, f"--out={out}"])
        description = pcme_2d.describe_data(settings)
        run = RunFolder.open(out, settings, data=description)
        run.save_model(pcme_2d.pcme_cub.build(settings, data.open(description, "train")))
        run.finish({"split": data.open(description, "test").records.summary()})
    return run


@pytest.mark.slow
def test_nine_classes_in_two_dimensions(finished):
    model, split = evaluation.open_run(finished.path)
    shown = evaluation.encode(model, split.records, split.source)
    assert shown.images["mean"].shape == (18, 2)
    assert split.records.num_classes == 9
    assert finished.config["hardware"]["cpus"] >= 1
    # Seen classes, unseen images: what was held out is not in the training split.
    train, test = (data.open(finished.data, name).records for name in ("train", "test"))
    assert not set(train.image_ids) & set(test.image_ids)
    assert train.num_images == 9 * 5  # of 7
    assert principal_plane(shown.images["mean"]).explained is None


@pytest.mark.slow
def test_a_report_is_a_page_with_its_figures_beside_it(finished, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(style.save, "__defaults__", (40,))  # that there is a picture is enough
    out = tmp_path / "one"
    command.main([str(finished.path), "--out", str(out), "--resamples=5"])
    text = (out / "report.md").read_text()
    shown = re.findall(r"!\[[^\]]+\]\((\w+)\.png\)", text)
    assert set(shown) == {
        "confidence",  # of 18 images no confidence is learnt, so there is the captions' curve alone
        "recall_by_uncertainty",
        "risk_coverage",
        "ambiguity",
        "confidence_ellipses",
        "text_to_image",
        "image_to_text",
    }
    assert {path.name for path in out.iterdir()} == {
        "report.md",
        "written.json",
        *(f"{name}.png" for name in shown),
    }
    headings = re.findall("^## (.*)", text, re.M)
    assert headings[:3] == ["Verdict", "Retrieval, in %", "Confidence"]
    assert headings[-2:] == ["Next", "Figures"]
    assert f"halo search build PHOTOS INDEX --model {finished.path}" in text
    assert len(text.split("## Figures")[0].splitlines()) < 60  # a screen or two
    assert str(out / "report.md") in capsys.readouterr().out


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Writes the report on random embeddings, and returns its page."""

    def write(shown, similarity=SIMILARITY, **options):
        results = evaluation.evaluate(Model(similarity), shown, ("own",))
        results["split"] = shown.records.summary()
        monkeypatch.setattr(evaluation, "measure", lambda *given: (results, shown))
        split = Split(shown.records, None, picture=options.pop("picture", None))
        monkeypatch.setattr(style.save, "__defaults__", (20,))
        path = report.write_report(
            tmp_path, Model(similarity), split, "birds", resamples=20, **options
        )
        return path.read_text()

    return write


class Model:
    """What evaluation and figures read of a model."""

    def __init__(self, similarity):
        self.similarity = similarity


def rows_of(text):
    cells = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return {(row[0], place): row[1:] for place, row in enumerate(cells)}


def cells(text, name):
    return [values for (label, _), values in rows_of(text).items() if label == name]


def split(seed, images=120, kind="gaussian", labels=12):
    return encoded(records(images=images, labels=labels, seed=seed), kind=kind)


def test_numbers_are_those_of_the_terminal(written):
    shown = split(2)
    probes = evaluation.make_probes(None, split(1))
    text = written(shown, probes=probes, picture=picture)
    recall = evaluation.evaluate(Model(SIMILARITY), shown, ("own",))["retrieval"]["csd"]
    (i2t,), (t2i,) = cells(text, "image → text"), cells(text, "text → image")
    assert i2t[0].startswith(f"{recall['i2t_recall@1']:.1f} [")
    assert t2i[3].startswith(f"{recall['t2i_r_precision']:.1f} [")
    assert i2t[-1] == "120"
    for place, side in enumerate(ASKED):
        confidence = evaluation.calibrated(probes, SIMILARITY, shown, side)
        answers = evaluation.Answers.of(shown, SIMILARITY, side, copies=confidence.copies)
        found = evaluation.calibration.measure(confidence, answers)
        assert f"- {ASKED[side]}: {verdict(found)}" in text
        nauc = abstention_auc(evaluation.calibration.said_of(confidence, answers), answers.correct)
        assert f"nAUC {nauc:.2f} [".replace("-", "−") in text
        (nauc,) = re.findall(r"nAUC (−?\d\.\d\d) \[", verdict(found))
        on_the_terminal = sentence(side, found)
        assert f"nAUC {nauc} " in on_the_terminal
        (right,), (true,), (enough,) = (
            cells(text, name)
            for name in (
                "How often is the first answer right?",
                "How true is the probability that it is?",
                "How many results contain a right one in 90 % of cases?",
            )
        )
        assert right[place] == f"{100 * found['right']:.0f} %"
        assert true[place].startswith(f"off by {100 * found['calibration_error']:.1f} points")
        assert enough[place] == f"{found['smallest_k']['k']:,}"
    assert "no probes" not in text


def test_what_to_do_next_follows_from_what_was_measured(written):
    text = written(split(2))
    assert "- The run has no probes" in text
    assert "Image to text: 120 queries. Hold out more" in text
    assert "Text to image: 360 queries" not in text
    chance = split(2)
    for side in (chance.images, chance.captions):  # embeddings that say nothing of their labels
        rng = np.random.default_rng(5)
        side["mean"] = rng.normal(size=side["mean"].shape).astype("float32")
    text = written(chance)
    assert "- Text to image: no better than chance." in text
    assert text.count("show several results") + text.count("leave out answers") >= 1


def test_a_constant_uncertainty_is_called_not_informative(written):
    shown = split(2)
    for side, count in (("image", 120), ("caption", 360)):
        object.__setattr__(shown, f"{side}_uncertainty", np.full(count, 0.05))
    text = written(shown)
    assert text.count("This uncertainty is not informative") == 2
    assert "ρ undefined" in text or "ρ = " in text


def test_too_few_queries_have_no_confidence(written):
    text = written(split(2, images=12, labels=4))
    assert "Image to text: no confidence: a calibration needs at least 20 queries" in text
    assert cells(text, "How true is the probability that it is?")[0][0] == "not known"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["toy_birds_pcme"], "--out must name a folder"),
        (
            ["toy_birds_pcme", "--out=x", "--resamples=1"],
            "--resamples: expected a whole number from 2; received '1'",
        ),
    ],
)
def test_bad_input_is_one_line_and_code_two(arguments, message, error_of, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    errors = error_of(cli.run, command.main, arguments).strip().splitlines()
    assert message in errors[-1]
    assert errors[-1].startswith("error: ")
