"""A gallery behind HTTP: answers, limits, sentences for what is wrong, and an end in time."""

import asyncio
import base64
import io
import json

import httpx
import numpy as np
import pytest
from PIL import Image

import zoo
from zoo.retriever import server


@pytest.fixture(scope="module")
def retriever():
    model = zoo.from_preset("toy_birds_pfe")
    photos = np.random.default_rng(0).integers(0, 256, (30, 64, 64, 3), dtype="uint8")
    return zoo.Retriever.build(model, photos, ids=range(100, 130))


def call(app, *requests):
    """The responses to `(method, path, arguments)`, sent at once."""

    async def all_of_them():
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await asyncio.gather(*(client.request(m, p, **a) for m, p, a in requests))

    return asyncio.run(all_of_them())


def ask(app, **body):
    (response,) = call(app, ("POST", "/ask", {"json": body}))
    return response


def test_answers_are_the_retriever_s(retriever):
    app = server.application(retriever)
    questions = ["a red bird", "xqzw", "a small bird with a blue crown"]
    expected = [json.loads(json.dumps(one.to_dict())) for one in retriever.ask(questions, 5)]
    found = ask(app, questions=questions, k=5).json()["answers"]
    for one, other in zip(found, expected, strict=True):
        assert one["scores"] == pytest.approx(other.pop("scores"), rel=1e-5)
        assert one["probability"] == pytest.approx(other.pop("probability"), abs=1e-5)
        assert {name: one[name] for name in other} == other
    assert ask(app, question=questions[0], k=2).json()["ids"] == expected[0]["ids"][:2]
    assert ask(app, questions=[]).json() == {"answers": []}


def test_questions_that_come_together_are_asked_together(retriever, monkeypatch):
    asked = []
    whole = retriever.ask
    monkeypatch.setattr(retriever, "ask", lambda q, k: asked.append(len(q)) or whole(q, k))
    app = server.application(retriever)
    bodies = [{"question": f"bird {number}", "k": number % 3 + 1} for number in range(20)]
    responses = call(app, *(("POST", "/ask", {"json": body}) for body in bodies))
    for body, response in zip(bodies, responses, strict=True):
        assert response.json()["question"] == body["question"]
        assert len(response.json()["ids"]) == body["k"]
    assert sum(asked) == 20
    assert len(asked) < 10


def test_health_page_and_schema(retriever):
    app = server.application(retriever)
    health, page, schema = call(
        app, *(("GET", path, {}) for path in ("/health", "/", "/openapi.json"))
    )
    assert health.json() == {"status": "ok", "items": 30, "side": "images", "calibrated": True}
    assert "http://localhost/ask" in page.text
    assert set(schema.json()["paths"]) == {"/ask", "/health"}


PICTURE = io.BytesIO()
Image.new("RGB", (20, 10), "red").save(PICTURE, "PNG")


@pytest.mark.parametrize(
    ("content", "status", "says"),
    [
        (b'{"question": "a bird"', 422, "the body is not JSON"),
        (b"", 422, ""),
        (b"[1, 2]", 422, ""),
        (b"\xff\xfe", 422, ""),
        (b"[" * 100_000, 422, ""),
        (b'{"question": 3}', 422, "question: Input should be a valid string"),
        (b'{"query": "a bird"}', 422, "query: Extra inputs"),
        (b"{}", 422, "expected question, questions or image; received none of them"),
        (b'{"question": "a", "questions": []}', 422, "received question and questions"),
        (b'{"question": "a", "k": 0}', 422, "k: Input should be greater than or equal to 1"),
        (b'{"question": "a", "k": 1e9}', 422, "k: "),
        (b'{"question": "a", "k": NaN}', 422, "k: "),
        (b'{"question": "\\ud800"}', 422, "unable to parse raw data as a unicode"),
        (json.dumps({"question": "a" * 3000}).encode(), 422, "at most 2000 characters"),
        (json.dumps({"questions": ["a"] * 300}).encode(), 422, "at most 256 items"),
        (b'{"image": "no base64!"}', 422, "expected the base64 of a picture's bytes"),
        (json.dumps({"image": base64.b64encode(b"x" * 9).decode()}).encode(), 422, "not an image"),
        (b" " * (server.MAX_BODY + 1), 413, "bytes at most"),
    ],
)
def test_what_is_wrong_is_a_sentence(retriever, content, status, says):
    app = server.application(retriever)
    headers = {"Content-Type": "application/json"}
    bad, good = call(
        app,
        ("POST", "/ask", {"content": content, "headers": headers}),
        ("POST", "/ask", {"json": {"question": "a bird"}}),
    )
    assert bad.status_code == status
    assert set(bad.json()) == {"error"}
    assert says in bad.json()["error"]
    assert good.status_code == 200


def test_a_picture_asks_as_the_retriever_is_asked(retriever):
    body = {"image": base64.b64encode(PICTURE.getvalue()).decode()}
    picture = Image.open(PICTURE)
    expected = retriever.ask(picture, 3)
    assert ask(server.application(retriever), **body, k=3).json()["ids"] == expected.ids.tolist()


def test_other_names_paths_and_methods(retriever):
    app = server.application(retriever, hosts=("127.0.0.1",))
    (response,) = call(app, ("GET", "/health", {"headers": {"Host": "evil.example"}}))
    assert response.status_code == 400
    found = call(server.application(retriever), ("GET", "/ask", {}), ("GET", "/nothing", {}))
    assert [one.status_code for one in found] == [405, 404]
    assert all(set(one.json()) == {"error"} for one in found)
