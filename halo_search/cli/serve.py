"""`halo search serve`: answers programs over HTTP, JSON in and out (docs/serving.md)."""

import contextlib
import os
import signal
from pathlib import Path
from typing import Any

from halo_search.cli.checks import ALLOWED_HOST, ROOT_PATH, TOKEN, check_index, check_model
from halo_search.cli.numbers import whole_number
from halo_search.cli.parser import naming
from halo_search.cli.query import MOVED
from halo_search.errors import InputError, require
from halo_search.retriever.retriever import Retriever
from halo_search.server.address import listening
from halo_search.server.sent_pictures import Decoders


def add(commands):
    """The command with its flags."""
    command = commands.add_parser("serve", help="answer programs over HTTP, JSON in and out")
    command.add_argument("folder", type=Path, help="folder that `build` wrote")
    command.add_argument(
        "--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)"
    )
    command.add_argument(
        "--port",
        type=whole_number(0, 65_535),
        default=8000,
        help="port; 0 takes a free one (default 8000)",
    )
    command.add_argument("--allowed-host", **ALLOWED_HOST)
    command.add_argument("--token", **TOKEN)
    command.add_argument("--root-path", default="", **ROOT_PATH)
    command.add_argument("--model", help=MOVED)
    command.set_defaults(run=serve)


def serve(options: Any) -> None:
    """Answers requests until SIGTERM or Ctrl+C. An InputError if the folder cannot be read, or the
    address is taken."""
    check_index(options.folder)
    require("fastapi", extra="serve")
    uvicorn = require("uvicorn", extra="serve")
    with contextlib.closing(listening(options.host, options.port)) as server:
        # Here, so that other commands and a wrong address do not wait for FastAPI.
        from halo_search.server.application import GRACE, application, trial
        from halo_search.server.limits import MAX_CONNECTIONS, hosts_of

        with naming("--model", options.model):
            check_model(options.model)
            retriever = Retriever.load(options.folder, options.model)
        try:
            retriever.ask(trial(retriever), 1)
        except ValueError as error:  # before a client finds out
            raise InputError(f"{options.folder}: {error}") from error
        hosts = hosts_of(options.host, options.allowed_host)
        decoders = Decoders()
        config = uvicorn.Config(
            application(retriever, hosts, decoders, options.token),
            root_path=options.root_path,
            limit_concurrency=MAX_CONNECTIONS,
            log_level="warning",
            timeout_graceful_shutdown=GRACE,
            timeout_keep_alive=30,
        )
        # uvicorn raises the signal that ended it once more: to be told to end is no failure. A
        # question under way would keep the interpreter from its end.
        signal.signal(signal.SIGTERM, lambda *_: decoders.close() or os._exit(0))
        host, port = server.getsockname()[:2]
        host = f"[{host}]" if ":" in host else host
        print(f"{options.folder}: {len(retriever):,} items at http://{host}:{port}", flush=True)
        with contextlib.closing(decoders):
            uvicorn.Server(config).run(sockets=[server])
