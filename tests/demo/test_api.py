"""The demo's functions through Gradio's API: typed names, the functions' own answers, sentences."""

import re
import shutil
from pathlib import Path

import pytest
from gradio_client import Client, handle_file
from gradio_client.exceptions import AppError
from PIL import Image

from demo import answers

CAPTION = "a small bird with a red crown"


@pytest.fixture(scope="module")
def client(served):
    return Client(served[0], verbose=False)


def test_endpoints_are_typed(client):
    endpoints = client.view_api(return_format="dict", print_info=False)["named_endpoints"]
    names = {"/find_images", "/find_all", "/find_captions", "/describe_gallery", "/draw_map"}
    assert names == set(endpoints)
    types = {
        parameter["parameter_name"]: parameter["python_type"]["type"]
        for parameter in endpoints["/find_images"]["parameters"]
    }
    assert types["caption"] == "str"
    assert types["results"] == "int"
    returned = endpoints["/find_images"]["returns"][0]["python_type"]["type"]
    assert "unknown_words" in returned


def test_find_images_is_the_function(client, served):
    answer = client.predict(caption=CAPTION, results=3, api_name="/find_images")
    assert answer == served[1].find_images(CAPTION, results=3)
    assert len(answer["answer"]["results"]) == 3
    other = client.predict(caption=CAPTION, similarity="csd", results=3, api_name="/find_images")
    assert other["answer"] == served[1].find_images(CAPTION, "csd", 3)["answer"]


def test_all_that_fits_is_the_list_of_the_retriever(client, served):
    service = served[1]
    texts = service.gallery.captions[::6]
    text = max(texts, key=lambda one: service.find_all(one, 0.1)["total"])
    found = client.predict(caption=text, least=0.1, api_name="/find_all")
    assert found == service.find_all(text, 0.1)
    retriever = service.gallery.retriever("captions")
    expected = retriever.all(text, least=0.1)
    assert [one["item"] for one in found["results"]] == expected.answer.ids.tolist()
    assert found["total"] == expected.total > 0
    assert found["unfit"] == expected.unfit
    whole, page = (
        answers.everything(service.gallery, text, "images", 1e-6, None, *part)["results"]
        for part in ((0, 24), (1, 2))
    )
    assert page == whole[1:3]
    assert [one["rank"] for one in page] == [2, 3]
    few, many = service.find_all(text, 0.9), service.find_all(text, 0.1)
    assert (found["few"], found["many"]) == (few["unfit"], many["unfit"])
    assert few["total"] <= found["total"] <= many["total"]
    with pytest.raises(AppError, match=r"The probability has to be from 0\.1 to 0\.9"):
        client.predict(caption=text, least=0.95, api_name="/find_all")


def test_the_pages_program_runs(served, photo, tmp_path, monkeypatch, capsys):
    """The program of docs/demo.md, asking this demo."""
    page = Path(__file__).parents[2] / "docs" / "demo.md"
    (code,) = re.findall(r"```python\n(.*?)```", page.read_text(), re.S)
    monkeypatch.chdir(tmp_path)
    shutil.copy(photo, "bird.jpg")
    assert "http://127.0.0.1:7860" in code
    names = {}
    exec(compile(code.replace("http://127.0.0.1:7860", served[0]), str(page), "exec"), names)
    assert names["found"]["answer"]["probability"] > 0
    assert len(names["captions"]["results"]) == 3
    assert names["captions"]["verdict"] in capsys.readouterr().out


def test_what_is_not_understood_is_said_and_shown(client):
    found = client.predict(caption="a wibble with zorp", api_name="/find_images")
    assert found["answer"]["verdict"] == "not understood"
    assert found["answer"]["probability"] is None
    assert "“wibble” and “zorp”" in found["answer"]["reason"]
    assert len(found["answer"]["results"]) == 8
    assert found["unknown_words"] == ["wibble", "zorp"]


def test_the_gallery_says_how_it_is_judged(client, served):
    about = client.predict(api_name="/describe_gallery")
    assert about["images"] == 18
    assert about["captions"] == 180
    assert about["uncertainty_measure"] == "total_variance"
    confidence = served[1].gallery.retriever("captions").confidence
    assert about["judged"]["captions"]["probes"] == confidence.num_queries
    assert about["judged"]["captions"]["first_k"] == confidence.first_k(0.1)


def test_an_image_finds_captions(client, served, photo):
    answer = client.predict(image=handle_file(str(photo)), results=4, api_name="/find_captions")
    assert answer == served[1].find_captions(photo, results=4)


def test_a_map_has_every_image_it_shows(client):
    drawn, items = client.predict(
        classes=2, with_captions=True, confidence=50, words="a red bird", api_name="/draw_map"
    )
    assert drawn["type"] == "plotly"
    assert "a red bird" in drawn["plot"]
    assert len(items["choices"]) == 2 * 6 + 2 * 3


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"caption": "   "}, "Type a caption first"),
        ({"caption": "word " * 200}, "too long for a caption"),
        ({"caption": 5}, "has to be text"),
        ({"caption": "a bird", "results": 10**9}, "The number of results has to be from 1 to 24"),
        ({"caption": "a bird", "results": "many"}, "has to be a number"),
        ({"caption": "a bird", "similarity": "<b>x"}, "The similarity has to be one of"),
    ],
)
def test_what_is_refused_is_refused_in_a_sentence(client, wrong, sentence):
    with pytest.raises(AppError, match=sentence):
        client.predict(**wrong, api_name="/find_images")


def test_a_defect_keeps_its_details_in_the_log(client, served, monkeypatch, caplog):
    def fail(*_):
        raise RuntimeError("/secret/path")

    monkeypatch.setattr(served[1].gallery, "of_words", fail)
    with pytest.raises(AppError, match="Something went wrong in the demo itself") as raised:
        client.predict(caption="a bird", api_name="/find_images")
    assert "secret" not in str(raised.value)
    assert "/secret/path" in caplog.text


def test_too_many_pixels_or_no_image(client, tmp_path):
    def ask(path):
        return client.predict(image=handle_file(str(path)), api_name="/find_captions")

    text = tmp_path / "notes.png"
    text.write_text("no image at all")
    with pytest.raises(AppError, match="cannot be used: not an image"):
        ask(text)
    large = tmp_path / "large.png"
    Image.new("1", (6000, 5000)).save(large)  # 30 million pixels in a few kilobytes
    with pytest.raises(AppError, match="6000 x 5000 pixels, more than the 16,000,000 allowed"):
        ask(large)
