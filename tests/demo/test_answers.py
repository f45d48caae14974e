"""What a question is answered: against the retriever, for points, Gaussians, sets, own photos."""

import dataclasses
import io
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from demo import limits, opening, own_photos, why
from demo.gallery import Gallery, shares_below
from demo.limits import RefusedError
from demo.own_photos import OwnPhotos
from demo.service import Service, _by_probability
from halo_search.confidence.probes import direction_of
from halo_search.embeddings.arrays import principal_plane
from zoo import encoders, similarities

CAPTION = "a small bird with a red crown and black wings"


def test_an_answer_is_that_of_the_retriever(gaussians, service):
    expected = gaussians.retriever("captions").ask(CAPTION, 6)
    found = service.find_images(CAPTION, results=6)
    for name in ("verdict", "reason", "probability", "wanted", "number", "fitting", "first_k"):
        assert found[name] == expected.to_dict()[name]
    results = found["results"]
    assert {result["item"] for result in results} == set(expected.ids.tolist())
    fits = dict(zip(expected.ids.tolist(), expected.fits.tolist(), strict=True))
    assert [result["fits"] for result in results] == [fits[one["item"]] for one in results]
    assert [result["rank"] for result in results] == list(range(1, 7))
    assert found["expected"] == pytest.approx(np.cumsum([one["fits"] for one in results]))
    assert results[0]["name"] == gaussians.image_names[results[0]["item"]]


def test_one_question_is_asked_once(gaussians, service, monkeypatch):
    asked = []
    retriever = gaussians.retriever("captions")
    ask = retriever.ask
    monkeypatch.setattr(retriever, "ask", lambda *args: asked.append(args) or ask(*args))
    monkeypatch.setattr(retriever, "all", lambda *args: pytest.fail("asked twice"))
    service.find_images(CAPTION)
    assert len(asked) == 1


def test_numbers_beside_results_never_rise(service):
    for caption in service.gallery.captions[::20]:
        fits = [result["fits"] for result in service.find_images(caption, results=18)["results"]]
        assert fits == sorted(fits, reverse=True)


def test_results_of_equal_probability_stay_in_order():
    rows, fits, scores = _by_probability([5, 6, 7], np.array([0.2, 0.5, 0.2]), [3.0, 2.0, 1.0])
    assert (rows, fits, scores) == ([6, 5, 7], [0.5, 0.2, 0.2], [2.0, 3.0, 1.0])
    assert _by_probability([5, 6], None, [2.0, 1.0]) == ([5, 6], [None, None], [2.0, 1.0])


def test_a_halo_is_the_interval_of_the_calibration(gaussians, service):
    found = service.find_images(CAPTION, results=3)
    retriever = gaussians.retriever("captions")
    if found["interval"] is None:
        assert [one["interval"] for one in found["results"]] == [None] * 3
        pytest.skip("no interval for this question")
    for one in found["results"]:
        low, high = retriever.confidence.interval(np.array([one["fits"]]))
        assert one["interval"] == pytest.approx([low[0], high[0]])


def test_a_part_of_the_gallery_is_asked(gaussians, service):
    some = list(range(1, len(gaussians.image_names), 2))
    expected = gaussians.retriever("captions").ask(CAPTION, 4, some)
    answer = service.find_images(CAPTION, None, 4, some)
    assert {result["item"] for result in answer["results"]} == set(expected.ids.tolist())
    assert answer["reason"] == expected.reason
    assert service.find_all(CAPTION, 0.1, among="*") == service.find_all(CAPTION, 0.1)
    with pytest.raises(RefusedError, match=r"among must be a pattern of names; .* none"):
        service.find_images(CAPTION, among="2019/*")


def test_captions_of_an_image_and_their_uncertainty(gaussians, service, photo):
    found = service.find_captions(photo, results=3)
    image = gaussians.towers["images"].of_files([photo])
    expected = gaussians.retriever("images").ask(image, 3)
    assert {one["item"] for one in found["results"]} == set(expected.ids.tolist())
    values = np.asarray(gaussians.asker.model.uncertainty(gaussians.embeddings["captions"]))
    for one in found["results"]:
        share = (values < values[one["item"]]).mean()
        assert one["uncertainty"] == pytest.approx(share, abs=0.01)


def test_points_have_no_uncertainty_and_sets_have(points, sets):
    results = Service(points).find_images(CAPTION)["results"]
    assert [one["uncertainty"] for one in results] == [None] * len(results)
    query = sets.of_words([CAPTION])
    expected = np.asarray(similarities.smooth_chamfer(sets.embeddings["images"], query))[:, 0]
    found = Service(sets).find_images(CAPTION, results=3)["results"]
    assert [one["item"] for one in found] == np.argsort(-expected)[:3].tolist()
    assert all(0 <= one["uncertainty"] <= 1 for one in found)


def test_a_model_is_called_as_is_said(points):
    named = dataclasses.replace(points, model_name="Our points")
    assert Service(named).describe_gallery()["model"] == "Our points"


def test_similarities_fit_the_embedding(gaussians, points, sets):
    assert gaussians.similarity_names[0] == "csd"  # the model's own
    wanted = {"match_probability", "wasserstein_2", "euclidean", "kl"}
    assert wanted <= set(gaussians.similarity_names)
    assert {"euclidean", "squared_euclidean", "cosine"} <= set(points.similarity_names)
    assert not {"csd", "kl", "chamfer"} & set(points.similarity_names)
    assert {"chamfer", "maximum_pair", "smooth_chamfer"} <= set(sets.similarity_names)
    assert not {"csd", "euclidean", "cosine"} & set(sets.similarity_names)


@pytest.mark.parametrize("name", ["cosine", "euclidean", "wasserstein_2"])
def test_similarities_without_keras_are_those_of_the_zoo(gaussians, name):
    query = gaussians.of_words([CAPTION])
    scores, ids = gaussians.index("images", name).search(query, 18)
    layer = similarities.get(name)
    expected = np.asarray(layer(gaussians.embeddings["images"], query))[:, 0]
    np.testing.assert_allclose(scores[0], expected[ids[0]], atol=1e-4)


def test_neighbours_are_the_nearest_without_itself(gaussians, service):
    index = gaussians.index("images")
    ids = index.search(gaussians.take("images", [4]), 6)[1][0]
    found = [one["item"] for one in service.similar(4, 5)]
    assert found == [one for one in ids.tolist() if one != 4][:5]
    with pytest.raises(RefusedError, match="The photo has to be from 0 to 17"):
        service.similar(18)


def test_what_a_word_changes_is_asked_without_it(gaussians, service):
    found = service.without_words("red bird crown")
    assert found["words"] == ["red", "bird", "crown"]
    expected = gaussians.retriever("captions").ask("red crown", 1)
    assert found["without"][1]["probability"] == pytest.approx(expected.probability, rel=1e-4)
    assert service.without_words("bird")["without"] == [None]


def test_the_first_example_is_the_surest_right_answer(service, monkeypatch):
    """The surest answer of all is wrong."""
    records = service.gallery.records
    captions = list(records.captions)

    def answers(gallery, texts):
        for place, text in enumerate(texts):
            label = records.caption_labels[captions.index(text)]
            is_right = place > 0
            ids = np.flatnonzero((records.image_labels == label) == is_right)
            yield SimpleNamespace(verdict="likely", probability=0.9 - place / 1000, ids=ids)
            told.append(text)

    told = []
    monkeypatch.setattr(opening, "_answers", lambda *args: list(answers(*args)))
    first = opening.examples(service)[0]
    assert (first.label, first.caption) == ("There", told[1])


def test_reasons_count_the_probes(gaussians, service):
    found = service.reasons(CAPTION)
    retriever = gaussians.retriever("captions")
    pairs = retriever.probes.pairs(direction_of("images"))
    probes = found["probes"]
    total = probes["num_right"] + probes["num_wrong"]
    assert total == len(pairs["matches"])
    assert (sum(probes["right"]), sum(probes["wrong"])) == (
        probes["num_right"],
        probes["num_wrong"],
    )
    probed, *_ = why.ask_probes(retriever.index, pairs["queries"], pairs["own"], pairs["matches"])
    assert probes["num_right"] == probed.correct.sum()
    assert probes["low"] <= found["score"] <= probes["high"]
    best = probed.scores.top[probed.correct, 0]
    assert probes["lower"] == pytest.approx((best < found["score"]).mean())


def test_the_map_is_the_principal_plane(gaussians, service):
    mean = gaussians.embeddings["images"]["mean"]
    plane = principal_plane(mean)
    expected = (mean - plane.origin) @ plane.axes
    found = service.map.items
    np.testing.assert_allclose(np.stack([found["x"], found["y"]], 1), expected, atol=1e-3)
    assert len(found["ellipses"]) == len(found["halo"]) == 18
    question = service.map.question(gaussians.of_words([CAPTION]))
    assert np.isfinite([question["x"], question["y"]]).all()
    assert 0 <= question["halo"] <= 1


def test_the_map_of_points_and_of_sets(points, sets):
    found = Service(points).map.items
    assert found["ellipses"] is found["elements"] is found["halo"] is None
    found = Service(sets).map.items
    elements = np.asarray(found["elements"])
    assert elements.shape == (18, 3, 2)
    np.testing.assert_allclose(elements.mean(1)[:, 0], found["x"], atol=1e-3)


def test_a_picture_is_pale_where_an_element_does_not_look(sets, points, monkeypatch):
    service, row = Service(sets), 4
    pixels, maps = service._attention.maps(row)
    model = sets.asker.model
    expected = encoders.with_attention(model.image_encoder).predict(pixels[None], verbose=0)
    np.testing.assert_allclose(maps.reshape(3, -1), expected["attention"][0], atol=1e-6)
    np.testing.assert_allclose(maps.sum(axis=(1, 2)), 1, atol=1e-5)
    assert service.attended(row)["most"] == pytest.approx(maps.max(axis=(1, 2)) * maps[0].size)
    planted = np.zeros((1, 2, 2), np.float32)
    planted[0, 0, 1] = 1  # the upper right quarter
    monkeypatch.setattr(service._attention, "maps", lambda row: (pixels, planted))
    shown = np.asarray(Image.open(io.BytesIO(service.attention_picture(row, 0))), float)
    whole = np.asarray(Image.fromarray(pixels).resize((448, 448), Image.Resampling.BILINEAR), float)
    away = np.abs(shown - whole).mean(axis=-1)
    assert away[:100, -100:].mean() < 4 < away[-100:, :100].mean()
    with pytest.raises(RefusedError, match="no such element"):
        service.attention_picture(row, 1)
    with pytest.raises(RefusedError, match="Only the elements of a set"):
        Service(points).attended(row)
    monkeypatch.setattr(encoders, "map_size", lambda encoder: None)  # as over regions
    with pytest.raises(RefusedError, match="does not say what its elements look at"):
        Service(sets).attended(row)


def test_shares_count_equal_values_half():
    found = shares_below([0.5, 2.0, 3.0, 9.0], [1.0, 2.0, 2.0, 4.0])
    assert found.tolist() == [0.0, 0.5, 0.75, 1.0]


@pytest.fixture
def own(gaussians, tmp_path, monkeypatch):
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path))
    albums = OwnPhotos(gaussians)
    yield albums
    albums.close()


def test_photos_are_searched_as_the_gallery_is(gaussians, own, tmp_path):
    key = ""
    for path in gaussians.image_paths[:5]:
        added = own.add(key, path.name, path)
        key = added["key"]
    assert (added["item"], added["photos"]) == (4, 5)
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(b"no picture")
    with pytest.raises(RefusedError, match="cannot be used: not an image"):
        own.add(key, "broken.jpg", broken)
    service = own.service(key)
    expected = gaussians.take("images", slice(0, 5))["mean"]
    np.testing.assert_allclose(service.gallery.embeddings["images"]["mean"], expected, atol=1e-5)
    found = service.find_images("a small red bird with a black crown")
    assert len(found["results"]) == 5
    assert isinstance(service.gallery, Gallery)


def test_photos_of_a_visitor_are_deleted(gaussians, own, photo, tmp_path, monkeypatch):
    key = own.add("", "bird.jpg", photo)["key"]
    other = own.add("", "bird.jpg", photo)["key"]
    assert other != key
    assert len(list(tmp_path.rglob("*.jpg"))) == 2
    own.forget(other)
    assert len(list(tmp_path.rglob("*.jpg"))) == 1
    # Here alone: by the process's clock, event loops of other tests would sleep an hour.
    later = own_photos.monotonic() + own_photos.SECONDS + 1
    monkeypatch.setattr(own_photos, "monotonic", lambda: later)
    with pytest.raises(RefusedError, match="These photos are deleted"):
        own.service(key)
    assert list(tmp_path.rglob("*.jpg")) == []


def test_an_album_is_deleted_though_nobody_comes_again(gaussians, photo, tmp_path, monkeypatch):
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path))
    started = []
    monkeypatch.setattr(
        own_photos.threading,
        "Timer",
        lambda *args: started.append(args) or type("Timer", (), {"start": lambda self: None})(),
    )
    albums = OwnPhotos(gaussians)
    key = albums.add("", "bird.jpg", photo)["key"]
    ((seconds, forget, (forgotten,)),) = started
    assert (seconds, forgotten) == (3600, key)
    forget(forgotten)
    assert list(tmp_path.rglob("*.jpg")) == []


def test_a_photo_of_many_bytes_is_read_whole(own, tmp_path):
    picture = Image.effect_noise((400, 300), 60)
    picture.save(tmp_path / "large.png")
    assert (tmp_path / "large.png").stat().st_size > 100_000
    assert limits.picture(tmp_path / "large.png").shape == (300, 400, 3)


def test_too_many_photos_are_refused(own, photo, monkeypatch):
    monkeypatch.setattr(limits, "MAX_PHOTOS", 2)
    key = own.add("", "1.jpg", photo)["key"]
    own.add(key, "2.jpg", photo)
    with pytest.raises(RefusedError, match="At most 2 photos are taken"):
        own.add(key, "3.jpg", photo)
