"""The demo's functions through Gradio's API: typed names, the functions' own answers, sentences."""

import re
import shutil
from pathlib import Path

import pytest
from gradio_client import Client, handle_file
from gradio_client.exceptions import AppError
from PIL import Image

CAPTION = "a small bird with a red crown"


@pytest.fixture(scope="module")
def client(served):
    return Client(served[0], verbose=False)


def test_endpoints_are_typed(client):
    endpoints = client.view_api(return_format="dict", print_info=False)["named_endpoints"]
    names = {"/find_images", "/find_all", "/find_captions", "/describe_gallery"}
    assert names == set(endpoints)
    types = {
        parameter["parameter_name"]: parameter["python_type"]["type"]
        for parameter in endpoints["/find_images"]["parameters"]
    }
    assert types["caption"] == "str"
    assert types["results"] == "int"
    assert endpoints["/find_images"]["returns"][0]["python_type"]["type"].startswith("dict")


def test_find_images_is_the_function(client, service):
    answer = client.predict(caption=CAPTION, results=3, api_name="/find_images")
    assert answer == service.find_images(CAPTION, results=3)
    assert len(answer["results"]) == 3
    other = client.predict(caption=CAPTION, similarity="csd", results=3, api_name="/find_images")
    assert other == service.find_images(CAPTION, "csd", 3)


def test_all_that_fits_is_the_list_of_the_retriever(client, service):
    texts = service.gallery.captions[::12]
    text = max(texts, key=lambda one: service.find_all(one, 0.1)["total"])
    found = client.predict(caption=text, least=0.1, api_name="/find_all")
    assert found == service.find_all(text, 0.1)
    expected = service.gallery.retriever("captions").all(text, least=0.1)
    assert [one["item"] for one in found["results"]] == expected.answer.ids.tolist()[:24]
    assert (found["total"], found["unfit"]) == (expected.total, expected.unfit)
    page = service.find_all(text, 0.1, None, 1, 2)["results"]
    assert [one["rank"] for one in page] == [2, 3][: len(page)]
    with pytest.raises(AppError, match=r"The probability has to be from 0\.01 to 1"):
        client.predict(caption=text, least=1.5, api_name="/find_all")


def test_the_pages_program_runs(served, photo, tmp_path, monkeypatch, capsys):
    """The program of docs/demo.md, asking this demo."""
    page = Path(__file__).parents[2] / "docs" / "demo.md"
    (code,) = re.findall(r"```python\n(.*?)```", page.read_text(), re.S)
    monkeypatch.chdir(tmp_path)
    shutil.copy(photo, "bird.jpg")
    assert "http://127.0.0.1:7860" in code
    names = {}
    exec(compile(code.replace("http://127.0.0.1:7860", served[0]), str(page), "exec"), names)
    assert names["found"]["probability"] > 0
    assert len(names["captions"]["results"]) == 3
    assert names["captions"]["verdict"] in capsys.readouterr().out


def test_what_is_not_understood_is_said_and_shown(client):
    found = client.predict(caption="a wibble with zorp", api_name="/find_images")
    assert found["verdict"] == "not understood"
    assert found["probability"] is None
    assert "“wibble” and “zorp”" in found["reason"]
    assert len(found["results"]) == 8
    assert found["unknown_words"] == ["wibble", "zorp"]


def test_the_gallery_says_how_it_is_judged(client, service):
    about = client.predict(api_name="/describe_gallery")
    assert about["images"] == 18
    assert about["captions"] == 180
    assert about["uncertainty_measure"] == "total_variance"
    confidence = service.gallery.retriever("captions").confidence
    assert about["judged"]["captions"]["probes"] == confidence.num_queries
    assert about["judged"]["captions"]["first_k"] == confidence.first_k(0.1)


def test_an_image_finds_captions(client, service, photo):
    answer = client.predict(image=handle_file(str(photo)), results=4, api_name="/find_captions")
    assert answer == service.find_captions(photo, results=4)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"caption": "   "}, "Type a caption first"),
        ({"caption": "word " * 200}, "too long for a caption"),
        ({"caption": 5}, "has to be text"),
        ({"caption": "a bird", "results": 10**9}, "The number of results has to be from 1 to 120"),
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

    monkeypatch.setattr(served[1].service.gallery, "questions", fail)
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
