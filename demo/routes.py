"""The addresses that the page and its clients use; Gradio has more."""

import re

API = "/gradio_api"
UPLOAD = f"{API}/upload"
FILE = f"{API}/file="

_READ = re.compile(
    "|".join(
        (
            r"/|/config/?|/theme\.css|/favicon\.ico|/robots\.txt|/manifest\.json",
            r"/(assets|static|svelte)/.+",
            rf"{API}/(info|app_id|openapi\.json|user|token|login_check)/?",
            rf"{API}/(startup-events|upload_progress|queue/data|queue/status)",
            rf"{API}/heartbeat/[^/]+",
            rf"{API}/call/(v2/)?\w+/\w+",
            rf"{re.escape(FILE)}.+",
        )
    ),
    re.S,
)
_WRITE = re.compile(rf"{API}/(upload|queue/join|cancel|reset/?|call/(v2/)?\w+/?)")


def is_known(method, path):
    """Whether a request is one that the page, `gradio_client` or a documented call makes."""
    pattern = _READ if method in ("GET", "HEAD") else _WRITE if method == "POST" else None
    return pattern is not None and pattern.fullmatch(path) is not None
