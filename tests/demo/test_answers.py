"""What a query is answered: against the model, for points, Gaussians, sets, own photos."""

import numpy as np
import pytest

import zoo
from demo import answers, cards, limits, map_plot, own_panel, verdict_card
from demo.limits import RefusedError
from demo.reference import Reference
from demo.service import Service
from halo_search.retriever import Judgement
from zoo import similarities

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
        total=len(results) + 30, unfit=0.234, least=0.1, few=None, many=0.5, results=results
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


@pytest.mark.parametrize("kind", ["points", "sets"])
def test_the_map_marks_points_and_every_element_of_sets(kind, request):
    gallery = request.getfixturevalue(kind)
    groups = map_plot.items_of(gallery, classes=2)
    drawing = map_plot.figure(gallery, groups)
    per_item = 3 if kind == "sets" else 1
    shown = [len(part) for _, images, captions in groups for part in (images, captions)]
    assert [len(trace.x) for trace in drawing.data] == [per_item * count for count in shown]
    assert all(trace.mode == "markers" for trace in drawing.data)  # nothing has an ellipse
    _, images, captions = groups[0]
    said = [words[2] for words in drawing.data[0].customdata]
    expected = [gallery.image_names[row] for row in images for _ in range(per_item)]
    assert all(one.startswith(name) for one, name in zip(said, expected, strict=True))
    alone = map_plot.figure(gallery, groups, with_captions=False)
    assert len(alone.data) == len(groups)
    text = gallery.take("captions", captions[:1])
    asked = map_plot.figure(gallery, groups, query=("a bird", text)).data[-1]
    assert asked.customdata[0][2].startswith("Your text: a bird")
    assert len(asked.x) == per_item


def test_photos_are_searched_as_the_gallery_is(gaussians, photo, tmp_path):
    paths = gaussians.image_paths[:17]  # one more than are embedded at once
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(b"no picture")
    own, bad = own_panel.gallery_of(gaussians, [*paths, broken])
    assert bad == 1
    assert len(own.image_names) == 17
    expected = gaussians.take("images", slice(0, 17))["mean"]
    np.testing.assert_allclose(own.embeddings["images"]["mean"], expected, atol=1e-5)
    found = Service(own).find_images("a small red bird with a black crown")
    assert len(found["answer"]["results"]) == 8
    assert 0 < found["answer"]["probability"] < 1
    confidence = own.retriever("captions").confidence
    assert confidence.gallery.size == 17  # learnt among these photos


def test_too_many_or_no_photos_are_refused(gaussians, photo, tmp_path):
    with pytest.raises(limits.RefusedError, match="201 photos are too many: at most 200"):
        own_panel.gallery_of(gaussians, [photo] * 201)
    text = tmp_path / "notes.jpg"
    text.write_text("no picture")
    with pytest.raises(limits.RefusedError, match="None of these files is a picture"):
        own_panel.gallery_of(gaussians, [text])
