"""Answers for programs: a gallery behind HTTP, JSON in and out (docs/serving.md).

What is wrong is `{"error": a sentence}`. uvicorn bounds connections and headers, Starlette the
server's names; how long a request may take to come a proxy has to bound (SECURITY.md).
"""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, NamedTuple

import numpy as np

from halo_search.confidence.judge import FIT
from halo_search.errors import require
from halo_search.retriever.retriever import Retriever
from halo_search.server.sent_pictures import Decoders, picture_of

require("fastapi", extra="serve")
require("uvicorn", extra="serve")

import fastapi  # noqa: E402
from fastapi.exceptions import RequestValidationError  # noqa: E402
from fastapi.responses import JSONResponse  # noqa: E402
from pydantic import (  # noqa: E402
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StrictInt,
    model_validator,
)
from starlette.exceptions import HTTPException as StarletteHTTPException  # noqa: E402
from starlette.middleware.trustedhost import TrustedHostMiddleware  # noqa: E402

from halo_search.server.limits import BoundedBody, Token  # noqa: E402

MAX_BODY = 16 * 2**20  # bytes; a picture is a third longer in base64
MAX_PICTURES = 32  # that wait to be decoded
MAX_QUESTIONS = 256
MAX_CHARACTERS = 2_000  # of a question
MAX_K = 1_000
MAX_RESULTS = 10_000  # of one answer, which waits in memory until it is read: some 1 MB
AT_ONCE = 16  # questions of a list that keep others waiting
MAX_WAITING = 1_024  # questions of lists that wait
GRACE = 1  # seconds that a request under way has after SIGTERM


def _not_empty(text):
    """A text with a letter that can be seen; else a ValueError."""
    if not any(letter.isprintable() and not letter.isspace() for letter in text):
        raise ValueError("expected a text; received an empty one")
    return text


Text = Annotated[str, Field(max_length=MAX_CHARACTERS), AfterValidator(_not_empty)]


class Question(BaseModel):
    """One of `question`, `questions` and `image`."""

    model_config = ConfigDict(extra="forbid")
    question: Text | None = Field(None, description="a text")
    questions: list[Text] | None = Field(
        None,
        description="texts, answered in their order",
        min_length=1,
        max_length=MAX_QUESTIONS,
    )
    image: str | None = Field(None, description="a picture's file in base64, or as a data: URL")
    k: int = Field(10, ge=1, le=MAX_K, description="how many results", strict=True)
    all: bool = Field(False, description="all that fits, k results a page", strict=True)
    among: list[StrictInt] | list[str] | Text | None = Field(
        None, description="ids or names of items, or a pattern of names: asks these alone"
    )
    offset: int = Field(0, ge=0, description="results of all that fits to pass over", strict=True)

    @model_validator(mode="after")
    def _is_consistent(self):
        """Raises ValueError unless there is one question, and not too many results are wanted."""
        given = [n for n in ("question", "questions", "image") if getattr(self, n) is not None]
        if len(given) != 1:
            received = " and ".join(given) or "none of them"
            raise ValueError(f"expected question, questions or image; received {received}")
        if self.offset and not self.all:
            raise ValueError("offset goes with all")
        if self.k * len(self.questions or [0]) > MAX_RESULTS:
            received = f"{len(self.questions)} questions with k {self.k}"
            raise ValueError(f"at most {MAX_RESULTS:,} results per request; received {received}")
        return self


class Waiting(NamedTuple):
    """A request that waits for its answers."""

    questions: list[Any]  # of one kind
    wanted: tuple[type, int, Any]  # the kind, `k` and `among`: requests alike go together
    future: asyncio.Future


class Together:
    """Asks a retriever in batches: questions that come while it is busy wait, and those that want
    as many results of the same part go together. No answer depends on what goes with it.

    Attributes:
        waiting: the requests that wait.
        listed: how many questions of lists are under way.
    """

    def __init__(self, retriever: Retriever):
        self.retriever = retriever
        self.waiting: list[Waiting] = []
        self.listed = 0
        self._running: asyncio.Task | None = None  # keeps the task from the collector
        self._page_turn = asyncio.Lock()  # one page of all that fits at a time

    async def ask(self, questions: list[Any], k: int, among: Any = None) -> list[Any]:
        """`questions`, of one kind, with `k` results each: a list of `Answer`s."""
        future = asyncio.get_running_loop().create_future()
        self.waiting.append(Waiting(questions, (type(questions[0]), k, among), future))
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._run())
        return await future

    async def answers(self, asked: Question, listed: Sequence[Any]) -> list[dict[str, Any]]:
        """The answers to what is listed, a few at a time; others come in between. A
        StarletteHTTPException where too many of lists wait."""
        values, many = [], len(asked.questions or ())
        if many and self.listed and self.listed + many > MAX_WAITING:
            raise StarletteHTTPException(
                503, "too many lists are waiting; try again in a few seconds"
            )
        self.listed += many
        try:
            for start in range(0, len(listed), 1 if asked.all else AT_ONCE):
                if asked.all:
                    page = listed[start], asked.offset, asked.k, FIT, asked.among
                    async with self._page_turn:
                        answers = [await asyncio.to_thread(self.retriever.all, *page)]
                else:
                    some = listed[start : start + AT_ONCE]
                    answers = await self.ask(some, asked.k, asked.among)
                values += [answer.to_dict() for answer in answers]
        finally:
            self.listed -= many
        return values

    async def _run(self):
        """Answers until nothing waits."""
        while self.waiting:
            await self._answer(self._next_batch())

    async def _answer(self, batch):
        """Asks the questions of requests that are alike, and hands each request its answers."""
        questions = [question for request in batch for question in request.questions]
        _, k, among = batch[0].wanted
        try:
            answers = iter(await asyncio.to_thread(self.retriever.ask, questions, k, among))
        except Exception as error:
            if len(batch) > 1:  # one request failed, which the others need not know
                for request in batch:
                    await self._answer([request])
            elif not batch[0].future.done():
                batch[0].future.set_exception(error)
            return
        for request in batch:
            of_request = [next(answers) for _ in request.questions]
            if not request.future.done():
                request.future.set_result(of_request)

    def _next_batch(self):
        """A short request and those like it, as many as one batch holds; the oldest first."""
        self.waiting.sort(key=lambda request: len(request.questions))
        wanted, count, batch, rest = self.waiting[0].wanted, 0, [], []
        for request in self.waiting:
            size = len(request.questions)
            fits = request.wanted == wanted and (not batch or count + size <= AT_ONCE)
            (batch if fits else rest).append(request)
            count += size * fits
        self.waiting = rest
        return batch


class Pictures:
    """Decodes pictures in a few processes, and asks one at a time: each may take much memory."""

    def __init__(self, together, decoders):
        self.together, self.turn, self.waiting = together, asyncio.Lock(), 0
        self.decoders, self.threads = decoders, ThreadPoolExecutor(MAX_PICTURES, "picture")

    async def asked(self, asked: Question) -> dict[str, Any]:
        """The answer to a picture in base64; an InputError if it cannot be read, a
        StarletteHTTPException if too many wait."""
        if self.waiting >= MAX_PICTURES:
            raise StarletteHTTPException(
                503, "too many pictures are waiting; try again in a few seconds"
            )
        self.waiting += 1
        try:
            loop = asyncio.get_running_loop()
            more = asked.image, self.decoders
            picture = await loop.run_in_executor(self.threads, picture_of, *more)
            async with self.turn:
                return (await self.together.answers(asked, [picture]))[0]
        finally:
            self.waiting -= 1


def application(
    retriever: Retriever,
    hosts: Sequence[str] = ("*",),
    decoders: Decoders | None = None,
    token: str | None = None,
) -> fastapi.FastAPI:
    """The server as an ASGI application. It answers requests to the host names `hosts`, see
    `hosts_of`, and where there is a token only those that carry it."""
    app = fastapi.FastAPI(
        title="Halo Zoo",
        summary="A gallery that says how sure it is",
        docs_url=None,
        redoc_url=None,
    )
    together = Together(retriever)
    pictures = Pictures(together, decoders or Decoders())

    @app.post("/ask", summary="Ask the gallery")
    async def ask(asked: Question) -> Any:
        try:
            if asked.image is not None:
                return JSONResponse(await pictures.asked(asked))
            if asked.question is not None:
                return JSONResponse((await together.answers(asked, [asked.question]))[0])
            return JSONResponse({"answers": await together.answers(asked, asked.questions)})
        except ValueError as error:
            return _error(422, str(error))

    @app.head("/health", include_in_schema=False)
    @app.get("/health", summary="Whether it answers, and about what")
    async def health() -> Any:
        try:
            await together.ask([trial(retriever)], 1)
        except Exception as error:
            return JSONResponse({"status": "failing", "error": str(error)}, 503)
        facts = {"items": len(retriever), "side": retriever.side}
        return {"status": "ok", **facts, "calibrated": retriever.confidence is not None}

    app.add_exception_handler(RequestValidationError, _not_valid)
    app.add_exception_handler(StarletteHTTPException, _refused)
    app.add_exception_handler(Exception, _failed)
    app.add_middleware(BoundedBody, most=MAX_BODY)
    if token is not None:
        app.add_middleware(Token, token=token)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(hosts), www_redirect=False)
    return app


def trial(retriever):
    """A question that any gallery answers, to see whether it does."""
    return "a" if retriever.side == "images" else np.zeros((8, 8, 3), "uint8")


def _error(status, sentence):
    """A response with one sentence on one line."""
    return JSONResponse({"error": " ".join(str(sentence).split())}, status)


async def _not_valid(request, error):
    """The sentence about a body that is none, is compressed, or has a wrong field."""
    kind = request.headers.get("content-type", "")
    if kind.partition(";")[0].strip().lower() != "application/json":
        reason = f"received {kind!r}" if kind else "it is missing"
        return _error(415, f"the header Content-Type must be application/json; {reason}")
    if "content-encoding" in request.headers:
        return _error(415, "the body must not be compressed")
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"] if part != "body")
    if first["type"] == "json_invalid":
        return _error(422, f"the body is not JSON, at character {where}: {first['ctx']['error']}")
    reason = first["msg"].removeprefix("Value error, ")
    return _error(422, f"{where}: {reason}" if where else reason)


async def _failed(request, error):
    """The sentence about a defect of the server."""
    return _error(500, "the server failed; its log says why")


async def _refused(request, error):
    """The sentence about a request that a limit refused; 422 for a body that cannot be read."""
    if error.status_code == 400 and "content-encoding" in request.headers:
        return _error(415, "the body must not be compressed")
    return _error(422 if error.status_code == 400 else error.status_code, error.detail)
