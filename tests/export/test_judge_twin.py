"""One judge: the retriever, the command line, the demo, the report and an export agree."""

import json

import numpy as np
import pytest
import tensorflow as tf

import zoo
from demo import sources
from demo.service import Service
from export.signatures import Signatures
from zoo import evaluation, report
from zoo.confidence.scores import DEPTH
from zoo.report import opening
from zoo.search.__main__ import main as search

COUNT = 500


@pytest.fixture(scope="module")
def birds():
    model, test = evaluation.open_run("toy_birds_pfe")
    encoded = evaluation.encode(model, test.records, test.source)
    return model, encoded, zoo.Retriever.build(model, encoded.images)


@pytest.fixture(scope="module")
def answers(birds):
    _, encoded, retriever = birds
    rows = np.random.default_rng(0).permutation(encoded.records.num_captions)[: COUNT - 4]
    texts = [encoded.records.captions[row] for row in rows]
    return retriever.ask([*texts, "a bird", "dog", "red crown", "zorp with a wibble"])


def said(answers):
    return np.array([a.probability is not None for a in answers])


def test_an_export_gives_the_retrievers_verdicts(birds, answers):
    model, _, retriever = birds
    texts = [answer.question for answer in answers]
    probes = evaluation.probes_of("toy_birds_pfe")
    confidence = retriever.confidence
    exported = Signatures(model, calibrations={"t2i": confidence}, known=probes.known).concrete()
    encoded = exported["encode_captions"](captions=tf.constant(texts))
    queries = {name: encoded[name].numpy() for name in ("mean", "log_variance")}
    found = retriever.index.search(queries, DEPTH)
    scores = retriever.index.query_scores(queries, *found, copies=confidence.copies)
    given = {
        "best_score": scores.top[:, 0],
        "mean_score": scores.mean,
        "score_variance": scores.variance,
        "following_scores": scores.following,
        "agreement": scores.agreement,
        "uncertainty": encoded["uncertainty"],
    }
    function = exported["confidence_t2i"]
    specs = function.structured_input_signature[0]
    judged = function(*(tf.constant(given[spec.name], tf.float32) for spec in specs))
    verdicts = np.where(judged["answered"], "likely", "unsure")
    verdicts = np.where(judged["nothing_matches"], "nothing matches", verdicts)
    verdicts = np.where(encoded["unknown"], "not understood", verdicts)
    expected = np.array([answer.verdict for answer in answers])
    assert len(set(expected)) == 4
    assert np.mean(verdicts == expected) >= 0.998  # one may lie on a threshold
    there = said(answers)
    probability = [answer.probability for answer in answers if answer.probability is not None]
    np.testing.assert_allclose(judged["probability"].numpy()[there], probability, atol=1e-5)
    lengths = np.array([answer.first_k(0.1) or 0 for answer in answers])[there]
    assert np.mean(judged["first_k"].numpy()[there] == lengths) >= 0.995


def test_the_report_gives_the_retrievers_probabilities(birds, answers):
    model, encoded, retriever = birds
    probes = evaluation.probes_of("toy_birds_pfe")
    confidence = evaluation.calibrated(probes, model.similarity, encoded, "t2i")
    texts = [answer.question for answer in answers]
    queries = retriever.tower("captions").of_texts(texts)
    scores = retriever.index.query_scores(queries, copies=confidence.copies)
    uncertainty = np.asarray(zoo.embeddings.log_uncertainty(queries, model.uncertainty_measure))
    probability = confidence.probability(scores, uncertainty)
    there = said(answers)
    expected = [answer.probability for answer in answers if answer.probability is not None]
    np.testing.assert_allclose(probability[there], expected, atol=1e-5)
    assert confidence.first_k(0.1) == retriever.confidence.first_k(0.1)


def test_the_reports_examples_are_the_retrievers_answers(birds):
    model, encoded, retriever = birds
    probes = evaluation.probes_of("toy_birds_pfe")
    run = report.ReportedRun("birds", encoded, model.similarity, model=model, probes=probes)
    examples = opening.examples(run, 40)
    found = retriever.ask([example.question for example in examples])
    _same([(one.verdict, one.probability) for one in examples], found)
    assert [one.reason for one in examples] == [answer.reason for answer in found]


def test_the_command_line_gives_the_retrievers_verdicts(birds, answers, tmp_path, capsys):
    birds[2].save(tmp_path / "index")
    lines = [answer.question for answer in answers]
    (tmp_path / "questions.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    capsys.readouterr()
    flags = ["--queries", str(tmp_path / "questions.txt"), "--json"]
    search(["query", str(tmp_path / "index"), *flags, "--model", "toy_birds_pfe"])
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    _same([(one["verdict"], one["probability"]) for one in found], answers)


def test_the_demo_gives_the_retrievers_verdicts(answers, tmp_path):
    gallery, _ = sources.load("toy_birds_pfe", cache=tmp_path)
    texts = [answer.question for answer in answers]
    judged = gallery.judge("captions", gallery.of_words(texts), texts)
    _same([(one.verdict, one.probability) for one in judged], answers)
    shown = [Service(gallery, None).find_images(text)["answer"] for text in texts[-8:]]
    _same([(one["verdict"], one["probability"]) for one in shown], answers[-8:])


def _same(found, answers):
    assert len(found) == len(answers)
    same = [one == answer.verdict for (one, _), answer in zip(found, answers, strict=True)]
    assert np.mean(same) >= 0.998  # one may lie on a threshold
    expected = [-1.0 if a.probability is None else a.probability for a in answers]
    probability = [-1.0 if one is None else one for _, one in found]
    np.testing.assert_allclose(probability, expected, atol=1e-5)


def test_pictures_that_ask_captions_are_judged_alike(birds):
    model, encoded, _ = birds
    captions = zoo.Retriever.build(model, encoded.captions, side="captions")
    pictures = {name: values[:100] for name, values in encoded.images.items()}
    found = captions.ask([{name: one[row] for name, one in pictures.items()} for row in range(100)])
    confidence = evaluation.calibrated(captions.probes, model.similarity, encoded, "i2t")
    scores = captions.index.query_scores(pictures, copies=confidence.copies)
    uncertainty = np.asarray(zoo.embeddings.log_uncertainty(pictures, model.uncertainty_measure))
    probability = confidence.probability(scores, uncertainty)
    there = said(found)
    expected = [answer.probability for answer in found if answer.probability is not None]
    assert there.mean() > 0.9
    np.testing.assert_allclose(probability[there], expected, atol=1e-5)
