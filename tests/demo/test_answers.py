"""What a query is answered: against the model itself, for points, Gaussians and sets."""

import numpy as np
import pytest

import zoo
from demo import answers, cards, verdict_card
from demo.limits import RefusedError
from demo.reference import Reference
from demo.service import Service
from zoo import similarities
from zoo.retriever import Judgement

FITS = np.linspace(0.9, 0.1, 9)  # of nine results, five of which fit
SURE = Judgement(FITS, 0.8, "likely", "About 9 in 10.", 5.2, length=lambda error: 100)
CAPTION = "a small bird with a red crown and black wings"


def test_images_come_in_the_models_own_order(gaussians, caption_embedding):
    answer = answers.search(gaussians, caption_embedding, "images", SURE, k=5)
    logits = np.asarray(
        gaussians.asker.model.similarity(gaussians.embeddings["images"], caption_embedding)
    )
    order = np.argsort(-logits[:, 0])[:5]
    assert [result["item"] for result in answer["results"]] == order.tolist()
    assert [result["rank"] for result in answer["results"]] == [1, 2, 3, 4, 5]
    for result in answer["results"]:
        logit = logits[result["item"], 0]
        assert result["similarity"] == pytest.approx(logit, abs=1e-4)
        assert result["name"] == gaussians.image_names[result["item"]]


def test_captions_of_an_image_and_their_uncertainty(gaussians, photo):
    image = gaussians.towers["images"].of_files([photo])
    answer = answers.search(gaussians, image, "captions", SURE, k=3)
    model = gaussians.asker.model
    logits = np.asarray(model.similarity(image, gaussians.embeddings["captions"]))[0]
    assert [r["item"] for r in answer["results"]] == np.argsort(-logits)[:3].tolist()
    values = np.asarray(model.uncertainty(gaussians.embeddings["captions"]))
    for result in answer["results"]:
        value = values[result["item"]]
        assert result["uncertainty"] == pytest.approx(value, rel=1e-6)
        assert result["uncertainty_percentile"] == pytest.approx(
            100 * (values < value).mean(), abs=1
        )
    own = np.asarray(model.uncertainty(gaussians.embeddings["images"]))
    asked = float(model.uncertainty(image)[0])
    assert answer["uncertainty"] == pytest.approx(asked, rel=1e-6)
    assert answer["uncertainty_percentile"] == pytest.approx(100 * (own < asked).mean(), abs=3)


def test_a_model_of_points_says_that_it_has_no_uncertainty(points):
    answer = answers.search(points, points.of_words([CAPTION]), "images", SURE)
    assert answer["meaning"] == answers.POINTS
    assert answer["uncertainty"] is None
    assert answer["results"][0]["uncertainty"] is None


def test_a_set_has_circular_variance(sets):
    query = sets.of_words([CAPTION])
    answer = answers.search(sets, query, "images", SURE, k=3)
    expected = np.asarray(similarities.smooth_chamfer(sets.embeddings["images"], query))[:, 0]
    assert [r["item"] for r in answer["results"]] == np.argsort(-expected)[:3].tolist()
    value = float(zoo.embeddings.uncertainty(query, "circular_variance")[0])
    assert answer["uncertainty"] == pytest.approx(value, abs=1e-6)
    assert "circular variance" in answer["meaning"]


def test_similarities_fit_the_embedding(gaussians, points, sets):
    assert gaussians.similarity_names[0] == "csd"  # the model's own
    wanted = {"match_probability", "wasserstein_2", "euclidean", "kl"}
    assert wanted <= set(gaussians.similarity_names)
    assert set(points.similarity_names) == {"euclidean", "squared_euclidean", "cosine"}
    assert {"chamfer", "maximum_pair", "smooth_chamfer"} <= set(sets.similarity_names)
    assert not {"csd", "euclidean", "cosine"} & set(sets.similarity_names)


@pytest.mark.parametrize("enough", [2, 10**9])
def test_every_result_has_a_number_and_is_pale_past_the_last_that_fits(
    gaussians, caption_embedding, enough
):
    said = SURE._replace(length=lambda error: enough)
    answer = answers.search(gaussians, caption_embedding, "images", said, k=8)
    assert [result["fits"] for result in answer["results"]] == FITS[:8].tolist()
    assert (answer["probability"], answer["fitting"], answer["number"]) == (0.9, 5, 5.2)
    assert answer["first_k"] == (enough if enough < 10**9 else None)
    html = cards.results(gaussians, answer, "images")
    items = html.split("<li")[1:]
    assert [item.startswith(' class="halo-past"') for item in items] == [False] * 5 + [True] * 3
    for item, fits in zip(items, FITS, strict=False):
        assert f'style="width:{100 * fits:.0f}%"' in item
        assert f"fits {100 * fits:.0f}\xa0%" in item


@pytest.mark.parametrize("verdict", ["nothing matches", "not understood"])
def test_a_refused_question_shows_its_pictures(gaussians, caption_embedding, verdict):
    said = SURE._replace(verdict=verdict, reason="A reason.")
    answer = answers.search(gaussians, caption_embedding, "images", said, k=4)
    assert (answer["verdict"], answer["reason"], answer["first_k"]) == (verdict, "A reason.", None)
    assert [result["fits"] for result in answer["results"]] == [None] * 4
    assert answer["probability"] == 0.9  # the number beside the verdict


def test_the_list_of_all_that_fits_says_what_to_expect(gaussians):
    results = answers.everything(gaussians, CAPTION, "images", 0.1)["results"]
    found = answers.Everything(
        total=len(results) + 30,
        unfit=0.234,
        least=0.1,
        few=None,
        many=0.5,
        results=results,
    )
    html = verdict_card.everything(gaussians, found)
    assert "<b>Many</b>: 50\xa0% do not fit" in html
    assert "<b>Few</b>: nothing is as likely" in html
    said = f"{len(results) + 30} {gaussians.noun}s fit with a probability of 10\xa0% or more"
    assert f"{said}: expect 77\xa0% of the list to fit." in html
    assert "30 more are not shown yet" in html
    empty = {**found, "total": 0, "unfit": None, "results": []}
    said = f"No {gaussians.noun} fits with a probability of 10\xa0% or more.</p>"
    assert said in verdict_card.everything(gaussians, empty)


def test_a_part_of_the_gallery_is_asked(gaussians):
    service, some = Service(gaussians), list(range(1, len(gaussians.image_names), 2))
    expected = gaussians.retriever("captions").ask(CAPTION, 4, some)
    answer = service.find_images(CAPTION, None, 4, some)["answer"]
    assert [result["item"] for result in answer["results"]] == expected.ids.tolist()
    assert set(expected.ids) <= set(some)
    assert answer["reason"] == expected.reason
    assert service.find_all(CAPTION, 0.1, among="*") == service.find_all(CAPTION, 0.1)
    with pytest.raises(RefusedError, match=r"among must be a pattern of names; .* none"):
        service.find_images(CAPTION, among="2019/*")


def test_percentile_counts_equal_values_half():
    reference = Reference([1.0, 2.0, 2.0, 4.0], "geometric_mean", "captions")
    assert reference.percentile(0.5) == 0.0
    assert reference.percentile(2.0) == 50.0
    assert reference.percentile(3.0) == 75.0
    assert reference.percentile(9.0) == 100.0
