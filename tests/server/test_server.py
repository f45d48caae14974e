"""A gallery behind HTTP: answers, limits, sentences for what is wrong, and an end in time."""

import asyncio
import base64
import contextlib
import gzip
import io
import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import pytest
from PIL import Image
from starlette.exceptions import HTTPException

import zoo
from halo_search.errors import InputError
from halo_search.server import address, limits
from halo_search.server import application as server
from halo_search.server.sent_pictures import Decoders


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


def test_questions_that_come_together_are_asked_together(retriever, monkeypatch):
    asked = []
    whole = retriever.ask
    monkeypatch.setattr(retriever, "ask", lambda q, k, _: asked.append(len(q)) or whole(q, k))
    app = server.application(retriever)
    bodies = [{"question": f"a red bird {n}", "k": n % 3 + 1} for n in range(20)]
    responses = call(app, *(("POST", "/ask", {"json": body}) for body in bodies))
    for body, response in zip(bodies, responses, strict=True):
        assert response.json()["question"] == body["question"]
        assert len(response.json()["ids"]) == len(response.json()["fits"]) == body["k"]
    assert sum(asked) == 20
    assert len(asked) < 10


def test_no_answer_depends_on_what_others_ask_meanwhile(retriever):
    app = server.application(retriever)
    bodies = [{"question": "a red bird", "k": 5}, {"question": "bird.jpg", "k": 5}]
    bodies += [{"question": f"a blue bird {n}", "k": 20} for n in range(6)]
    bodies.insert(0, {"question": "a small bird"})  # while it is busy with this the others wait
    _, good, bad, *_ = call(app, *(("POST", "/ask", {"json": one}) for one in bodies))
    assert good.json() == ask(app, **bodies[1]).json()
    assert (bad.status_code, "name of a picture" in bad.json()["error"]) == (422, True)


def test_a_part_is_asked(retriever):
    app, question, some = server.application(retriever), "a red bird", [128, 101, 107, 119]
    expected = retriever.ask(question, 3, some).to_dict()
    assert ask(app, question=question, k=3, among=some).json() == json.loads(json.dumps(expected))
    page = ask(app, questions=[question], all=True, among=some).json()["answers"][0]
    assert set(page["ids"]) <= set(some)
    for among, says in (([7], "lacks 7"), ("b*", "have no names"), ([], "at least one item")):
        response = ask(app, question=question, among=among)
        assert (response.status_code, says in response.json()["error"]) == (422, True)


def test_all_that_fits_comes_in_pages(retriever):
    app = server.application(retriever)
    question = "a small bird with a red crown"
    expected = retriever.all(question, offset=1, limit=2).to_dict()
    found = ask(app, question=question, all=True, offset=1, k=2).json()
    assert (found["ids"], found["total"]) == (expected["ids"], expected["total"])
    many = ask(app, questions=[question, "bird"], all=True, k=3).json()["answers"]
    assert [one["question"] for one in many] == [question, "bird"]
    assert {"total", "offset", "unfit"} <= many[1].keys()
    for body in ({"offset": 3}, {"all": True, "offset": -1}):
        assert ask(app, question=question, **body).status_code == 422


def test_health_and_schema(retriever):
    app = server.application(retriever)
    health, schema = call(app, *(("GET", path, {}) for path in ("/health", "/openapi.json")))
    assert health.json() == {"status": "ok", "items": 30, "side": "images", "calibrated": True}
    assert set(schema.json()["paths"]) == {"/ask", "/health"}


PICTURE = io.BytesIO()
Image.new("RGB", (20, 10), "red").save(PICTURE, "PNG")


@pytest.mark.parametrize(
    ("content", "status", "says"),
    [
        (b'{"question": "a bird"', 422, "the body is not JSON"),
        (b'{"question": 3}', 422, "question: Input should be a valid string"),
        (b'{"query": "a bird"}', 422, "query: Extra inputs"),
        (b"{}", 422, "expected question, questions or image; received none of them"),
        (b'{"question": "a", "questions": ["b"]}', 422, "received question and questions"),
        (b'{"question": "a", "k": 0}', 422, "k: Input should be greater than or equal to 1"),
        (json.dumps({"question": "a" * 3000}).encode(), 422, "at most 2000 characters"),
        (json.dumps({"questions": ["a"] * 300}).encode(), 422, "at most 256 items"),
        (b'{"questions": []}', 422, "questions: List should have at least 1 item"),
        (b'{"question": ""}', 422, "question: expected a text; received an empty one"),
        (b'{"questions": ["a bird", " "]}', 422, "questions.1: expected a text"),
        (b'{"image": "no base64!"}', 422, "expected the base64 of a picture's file"),
        (b'{"image": ""}', 422, "received nothing"),
        (b'{"image": "data:image/png,abc"}', 422, "a data: URL without ;base64"),
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


ENCODED = base64.b64encode(PICTURE.getvalue()).decode()


@pytest.mark.parametrize(
    "text",
    [
        ENCODED,
        ENCODED.rstrip("="),
        "\r\n".join(ENCODED[at : at + 20] for at in range(0, len(ENCODED), 20)),
        f"data:image/png;base64,{ENCODED}",
        f"\n DATA:image/png;charset=x;base64,{ENCODED}\n",
        base64.urlsafe_b64encode(PICTURE.getvalue()).decode(),
    ],
)
def test_a_picture_asks_as_the_retriever_is_asked(retriever, text):
    expected = retriever.ask(Image.open(PICTURE), 3)
    found = ask(server.application(retriever), image=text, k=3).json()
    assert found["ids"] == expected.ids.tolist()


def test_pictures_wait_for_their_turn_and_keep_no_question_out(retriever, monkeypatch):
    """They are decoded off the event loop; of too many the last are refused."""

    def slow(text, decoders):
        time.sleep(0.05)
        return np.zeros((8, 8, 3), "uint8")

    monkeypatch.setattr(server, "picture_of", slow)
    monkeypatch.setattr(server, "MAX_PICTURES", 5)
    app = server.application(retriever)
    *pictures, question = call(
        app,
        *(("POST", "/ask", {"json": {"image": str(n)}}) for n in range(8)),
        ("POST", "/ask", {"json": {"question": "a bird"}}),
    )
    assert sorted(one.status_code for one in pictures) == [200] * 5 + [503] * 3
    assert question.status_code == 200
    refused = next(one for one in pictures if one.status_code == 503)
    assert "too many pictures are waiting" in refused.json()["error"]


@pytest.mark.parametrize(
    ("host", "status"),
    [("LOCALHOST:8000", 200), ("[::1]", 200), ("z.example", 200), ("a.b", 400)],
)
def test_loopback_and_what_is_allowed_is_answered(retriever, host, status):
    app = server.application(retriever, limits.hosts_of("127.0.0.1", ["z.example"]))
    (response,) = call(app, ("GET", "/health", {"headers": {"Host": host}}))
    assert response.status_code == status


def test_a_server_for_others_answers_to_any_name_unless_told_which():
    assert limits.hosts_of("0.0.0.0") == ["*"]
    assert limits.hosts_of("0.0.0.0", ["a.example"])[-1] == "a.example"
    assert "*" not in limits.hosts_of("0.0.0.0", ["a.example"])


@pytest.mark.parametrize("header", [None, "Bearer b", "Bearer", "Basic eDpi", "Basic %", "a"])
def test_a_token_is_asked_for(retriever, header):
    app = server.application(retriever, token="a")
    sent = [{"Authorization": header} if header else {}, {"Authorization": "Bearer a"}]
    sent.append({"Authorization": "Basic eDph"})  # x:a, as a browser sends a password
    asked = (
        ("GET", path, {"headers": one}) for path in ("/openapi.json", "/health") for one in sent
    )
    assert [one.status_code for one in call(app, *asked)] == [401, 200, 200] * 2


def test_lists_wait_behind_single_questions_and_are_bounded(retriever, monkeypatch):
    monkeypatch.setattr(server, "MAX_WAITING", 100)
    order, whole = [], retriever.ask
    monkeypatch.setattr(retriever, "ask", lambda q, k, _: order.append(len(q)) or whole(q, k))
    app = server.application(retriever)
    many = ("POST", "/ask", {"json": {"questions": ["a bird"] * 80, "k": 1}})
    one = ("POST", "/ask", {"json": {"question": "a bird"}})
    assert [found.status_code for found in call(app, many, many, one)] == [200, 503, 200]
    assert max(order) <= server.AT_ONCE
    assert order.index(1) < 3
    response = ask(app, questions=["a"] * 200, k=300)
    assert (response.status_code, "10,000 results" in response.text) == (422, True)


def test_health_asks(retriever, monkeypatch):
    monkeypatch.setattr(retriever, "ask", lambda *_: 1 / 0)
    get, head = call(server.application(retriever), ("GET", "/health", {}), ("HEAD", "/health", {}))
    assert (get.status_code, head.status_code) == (503, 503)
    assert get.json() == {"status": "failing", "error": "division by zero"}


def test_a_picture_that_takes_long_is_ended_and_no_other_waits():
    picture, photo = io.BytesIO(), io.BytesIO()
    Image.new("RGB", (2000, 1500)).save(photo, "JPEG")  # large, but as cameras write it
    Image.new("L", (4000, 4000), 99).save(picture, "JPEG", progressive=True)
    *_, scan = picture.getvalue().rpartition(b"\xff\xda")
    slow = picture.getvalue()[:-2] + (b"\xff\xda" + scan[:-2]) * 85 + b"\xff\xd9"
    decoders = Decoders(per_pixel=0)
    with contextlib.closing(decoders):
        assert decoders.decoded(PICTURE.getvalue()).shape == (10, 20, 3)
        with ThreadPoolExecutor(9) as pool:
            ended = [pool.submit(decoders.decoded, slow) for _ in range(4)]  # one after the other
            assert decoders.decoded(PICTURE.getvalue()).shape == (10, 20, 3)
            assert decoders.decoded(photo.getvalue()).shape == (1500, 2000, 3)
            with pytest.raises(InputError, match="not an image"):
                decoders.decoded(b"x")
            assert not all(one.done() for one in ended)
            for one in ended:
                with pytest.raises(InputError, match="takes too long"):
                    one.result(60)
            waiting = pool.submit(decoders.decoded, slow)
            time.sleep(0.1)
            start = time.monotonic()
            decoders.close()
            with pytest.raises(InputError, match="takes too long"):
                waiting.result(60)
            assert time.monotonic() - start < 1
    with contextlib.closing(decoders):  # it starts again
        assert decoders.decoded(PICTURE.getvalue()).shape == (10, 20, 3)


def test_a_body_that_comes_slowly_is_left(retriever, monkeypatch):
    async def parts():
        for _ in range(100):
            await asyncio.sleep(0.05)
            yield b" "

    monkeypatch.setattr(limits, "SECONDS", 0.2)
    headers = {"Content-Type": "application/json"}
    app = server.application(retriever)
    (response,) = call(app, ("POST", "/ask", {"content": parts(), "headers": headers}))
    assert response.status_code == 408
    assert response.json() == {"error": "a body must come within 0.2 s"}


def test_a_kept_connection_sends_at_once():
    with (
        address.listening("127.0.0.1", 0) as listening,
        socket.create_connection(listening.getsockname()),
        listening.accept()[0] as accepted,
    ):
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # a client that does not read
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 30_000


def test_a_fault_of_the_server_is_json(retriever, monkeypatch):
    monkeypatch.setattr(retriever, "ask", lambda *_: 1 / 0)
    response = ask(server.application(retriever), question="a bird")
    assert response.status_code == 500
    assert response.json() == {"error": "the server failed; its log says why"}


@pytest.mark.parametrize("kind", [None, "application/x-www-form-urlencoded", "gzip"])
def test_a_body_that_is_not_said_to_be_json(retriever, kind):
    headers, content = {} if kind is None else {"Content-Type": kind}, b'{"question": "a bird"}'
    says = "Content-Type must be application/json"
    if kind == "gzip":
        headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
        content, says = gzip.compress(content), "must not be compressed"
    request = "POST", "/ask", {"content": content, "headers": headers}
    (response,) = call(server.application(retriever), request)
    assert (response.status_code, says in response.json()["error"]) == (415, True)


def test_other_paths_and_methods(retriever):
    found = call(server.application(retriever), ("GET", "/ask", {}), ("GET", "/nothing", {}))
    assert [one.status_code for one in found] == [405, 404]
    assert all(set(one.json()) == {"error"} for one in found)


def test_a_body_in_parts_is_counted_as_a_whole():
    parts = [{"body": b"123456", "more_body": True}, {"body": b"789", "more_body": True}] * 2
    seen = []

    async def read(scope, receive, send):
        for _ in range(4):
            seen.append(await receive())

    async def receive():
        return parts[len(seen)]

    scope = {"type": "http", "path": "/ask", "headers": []}
    with pytest.raises(HTTPException) as refused:
        asyncio.run(limits.BoundedBody(read, 10)(scope, receive, None))
    assert (refused.value.status_code, len(seen)) == (413, 2)
