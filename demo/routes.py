"""What the page asks for over HTTP: its files, answers as JSON, pictures as JPEG."""

import asyncio
import functools
import logging
import tempfile
from pathlib import Path

import anyio
from starlette.responses import FileResponse, JSONResponse, Response

from demo import limits
from demo.opening import examples
from demo.service import SHOWN
from demo.stored_captions import listed
from halo_search.server.limits import SECONDS

WEB = Path(__file__).parent / "web"
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
# The page's own files and pictures alone; of stored vectors, pictures of other addresses too.
POLICY = "default-src 'self'; img-src 'self' data: blob:{}; object-src 'none'; base-uri 'none'"
UPLOADS = ("/own", "/picture")  # paths whose bodies are pictures
ASKING, READING = 4, 24  # questions, and pictures that are read, at a time
_UNEXPECTED = "Something went wrong in the demo itself. What it was is in the server's log."
_AN_HOUR = {"Cache-Control": "private, max-age=3600"}
_NEVER = {"Cache-Control": "no-store"}


def add(server, views, own):
    """Adds the page's routes.

    Args:
        server: a FastAPI application.
        views: a `Views`: the gallery by one model or several.
        own: an `OwnPhotos`.
    """
    asking, reading = anyio.CapacityLimiter(ASKING), anyio.CapacityLimiter(READING)

    def answers(function, limiter=asking):
        """A route's function of its query's values, in a thread, that returns JSON values."""

        @functools.wraps(function)
        async def route(request):
            try:
                values = dict(request.query_params)
                work = functools.partial(function, **values)
                found = await anyio.to_thread.run_sync(work, limiter=limiter)
                return JSONResponse(found, headers=_NEVER)
            except limits.RefusedError as error:
                return JSONResponse({"error": str(error)}, 400)
            except TypeError as error:
                if "argument" not in str(error):
                    return _defect(function)
                return JSONResponse({"error": "This request has other values."}, 400)
            except Exception:
                return _defect(function)

        return route

    def chosen(view="", among_own=""):
        return own.service(among_own) if among_own else views.service(view)

    def ask(q="", view="", among_own=""):
        service, similarity = chosen(view, among_own), views.similarity(view)
        results = min(SHOWN, len(service.gallery.image_names)) or 1  # of none, too
        return service.find_images(q, similarity, results)

    def why(q="", view="", among_own=""):
        return chosen(view, among_own).reasons(q, views.similarity(view))

    def words(q="", view="", among_own=""):
        return chosen(view, among_own).without_words(q, views.similarity(view))

    def similar(item="", view="", among_own=""):
        return {"results": chosen(view, among_own).similar(item)}

    def attention(item="", view="", among_own=""):
        return chosen(view, among_own).attended(item)

    def captions(item="", view=""):
        return views.service(view).captions_of(item)

    def photos(offset="0", among_own="", view=""):
        service = chosen(view, among_own)
        offset = limits.whole(offset, "The offset", 0, 10**9)
        return {"results": service.photos(offset), "total": len(service.gallery.image_names)}

    def map_items(view="", among_own=""):
        service = chosen(view, among_own)
        return {**service.map.items, "sheets": service.gallery.pictures.sheets}

    def map_question(q="", view="", among_own=""):
        service = chosen(view, among_own)
        embedding = service.gallery.of_words([limits.text(q)])
        return service.map.question(embedding)

    for path, function in {
        "/ask": ask,
        "/why": why,
        "/words": words,
        "/similar": similar,
        "/attention": attention,
        "/captions": captions,
        "/photos": photos,
        "/map-items": map_items,
        "/map-question": map_question,
        "/about": functools.partial(about, views),
    }.items():
        server.add_route(path, answers(function))

    def picture(kind, row, among_own="", view="", element="0"):
        service = chosen(view, among_own)
        if kind == "attention":
            return service.attention_picture(row, element)
        pictures = service.gallery.pictures
        count = pictures.sheets if kind == "sheet" else len(pictures)
        row = limits.whole(row, "The photo", 0, count - 1)
        return {"thumbnail": pictures.thumbnail, "large": pictures.large, "sheet": pictures.sheet}[
            kind
        ](row)

    async def picture_route(request):
        values = request.path_params | dict(request.query_params)
        try:
            work = functools.partial(picture, **values)
            body = await anyio.to_thread.run_sync(work, limiter=reading)
        except (limits.RefusedError, KeyError, TypeError):
            return JSONResponse({"error": "There is no such photo."}, 404)
        except Exception:
            return _defect(picture)
        return Response(body, headers=_AN_HOUR, media_type="image/jpeg")

    server.add_route("/photo/{kind}/{row}", picture_route)

    def upload(function):
        """A route that hands on a picture's body as a file, and the query's values."""

        async def route(request):
            with tempfile.NamedTemporaryFile(suffix=".upload") as file:
                if not await _received(request, file):
                    most = limits.MAX_BYTES // 2**20
                    return JSONResponse({"error": f"At most {most} MB per photo are taken."}, 413)
                work = functools.partial(function, file.name)
                return await answers(work, reading)(request)

        return route

    def add_own(path, name="", among_own=""):
        return own.add(among_own, name, path)

    def ask_picture(path, view=""):
        service = views.service(view)
        if service.gallery.captions:
            return service.find_captions(path)
        return {"results": service.similar_to(path), "verdict": None}

    def forget(among_own=""):
        own.forget(among_own)
        return {}

    server.add_route("/own", upload(add_own), ["POST"])
    server.add_route("/picture", upload(ask_picture), ["POST"])
    server.add_route("/forget", answers(forget), ["POST"])
    _add_files(server, views)


def _add_files(server, views):
    addresses = "" if views.first.gallery.reads_words else " http: https:"
    headers = {
        "Content-Security-Policy": POLICY.format(addresses),
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "no-cache",
    }
    files = {path.relative_to(WEB).as_posix(): path for path in WEB.rglob("*.*")}

    async def page(request):
        return FileResponse(WEB / "index.html", headers=headers, media_type="text/html")

    async def file(request):
        path = files.get(request.path_params["name"])
        if path is None or path.suffix not in TYPES:
            return JSONResponse({"error": "There is no such file."}, 404)
        return FileResponse(path, headers=headers, media_type=TYPES[path.suffix])

    server.add_route("/", page, ["GET", "HEAD"])
    server.add_route("/web/{name:path}", file)


def about(views):
    """What the page has to know once."""
    gallery = views.first.gallery
    stored, ask = [], f"Describe a {gallery.noun}"
    if not gallery.reads_words:
        stored, ask = listed(gallery.captions)
    return {
        "views": views.names,
        "attending": [name for name in views.names if views.service(name).has_attention],
        "noun": gallery.noun,
        "photos": len(gallery.image_names),
        "captions": len(gallery.captions),
        "reads_words": gallery.reads_words,
        "stored_captions": stored,
        "ask": ask,
        "kind": gallery.kind,
        "missing": gallery.missing,
        "examples": [one._asdict() for one in examples(views.first)],
        "limits": {"photos": limits.MAX_PHOTOS, "bytes": limits.MAX_BYTES},
    }


async def _received(request, file):
    """Writes a body to a file; False if it is too large or comes too slowly."""
    size = 0
    try:
        async with asyncio.timeout(SECONDS):
            async for part in request.stream():
                size += len(part)
                if size > limits.MAX_BYTES:
                    return False
                file.write(part)
    except TimeoutError:
        return False
    file.flush()
    return True


def _defect(function):
    """The answer to an error of ours: what it was may hold paths, so it stays in the log."""
    name = getattr(function, "__qualname__", "picture")
    logging.getLogger(__name__).exception("%s failed", name)
    return JSONResponse({"error": _UNEXPECTED}, 500)
