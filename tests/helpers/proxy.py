"""A reverse proxy that serves another server below a path, as nginx does with `proxy_pass`."""

import contextlib
import threading
import time

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

METHODS = ["GET", "HEAD", "POST", "DELETE"]


@contextlib.contextmanager
def below(address, path):
    """The address of a server on a free port that hands `path` on to `address`, and nothing else.

    Bodies are handed on as they come, so events are not held back.
    """
    client = httpx.AsyncClient(base_url=address, timeout=60)

    async def forward(request):
        target = httpx.URL(path=f"/{request.path_params['rest']}", query=request.url.query.encode())
        headers = [pair for pair in request.headers.raw if pair[0] != b"host"]
        sent = client.build_request(
            request.method, target, headers=headers, content=request.stream()
        )
        answer = await client.send(sent, stream=True)
        if request.method == "HEAD":
            return Response(status_code=answer.status_code, headers=dict(answer.headers))
        response = StreamingResponse(answer.aiter_raw(), answer.status_code)
        response.raw_headers = answer.headers.raw
        return response

    application = Starlette(routes=[Route(f"{path}/{{rest:path}}", forward, methods=METHODS)])
    server = uvicorn.Server(uvicorn.Config(application, port=0, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}{path}"
    server.should_exit = True
    thread.join()
