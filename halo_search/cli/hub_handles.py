"""Names of models on a hub, refused in a second where there is no network: who fetches models
imports Keras first, and its clients try for minutes."""

import os
import re
import socket
import threading
from pathlib import Path

from halo_search.errors import InputError

HUGGING_FACE, KAGGLE = "hf://", "kaggle://"
SECONDS = 1.5  # that a hub may take to accept a connection
_FORMS = {
    HUGGING_FACE: ("USER/MODEL", re.compile(r"[\w.-]+/[\w.-]+")),
    KAGGLE: ("USER/MODEL/FRAMEWORK/VARIATION", re.compile(r"[\w.-]+(/[\w.-]+){3,4}")),
}


def check_handle(name: str) -> None:
    """Raises InputError for a handle that is none, or of a model that is not in the hub's cache
    while the hub cannot be reached. Any other name is one of KerasHub's, which are on Kaggle."""
    hub = next((hub for hub in _FORMS if name.startswith(hub)), None)
    if hub is not None:
        form, pattern = _FORMS[hub]
        if not pattern.fullmatch(name.removeprefix(hub)):
            raise InputError(f"{name!r}: a handle must be {hub}{form}")
    if _cache_of(hub, name).exists():
        return
    address = _hugging_face() if hub == HUGGING_FACE else "https://www.kaggle.com"
    reason = _why_unreachable(address)
    if reason is not None:
        raise InputError(
            f"{name!r}: cannot be fetched: the hub cannot be reached ({reason}). Without a "
            "network, fetch that folder on another machine and give its path"
        )


def _cache_of(hub, name):
    """Where the hub's client has what it fetched of a model; of a name, of any of KerasHub's."""
    if hub == HUGGING_FACE:
        home = os.environ.get("HF_HOME", "~/.cache/huggingface")
        root = Path(os.environ.get("HF_HUB_CACHE", f"{home}/hub")).expanduser()
        return root / f"models--{name.removeprefix(hub).replace('/', '--')}"
    root = Path(os.environ.get("KAGGLEHUB_CACHE", "~/.cache/kagglehub")).expanduser() / "models"
    return root / ("keras" if hub is None else "/".join(name.removeprefix(hub).split("/")[:2]))


def _hugging_face():
    return os.environ.get("HF_ENDPOINT", "https://huggingface.co")


def _why_unreachable(address):
    """Why no connection to an address, or to the proxy for it, comes about; None if one does."""
    import urllib.parse  # here: commands on a model that lies on this disk need neither
    import urllib.request

    url = urllib.parse.urlsplit(address)
    proxy = urllib.request.getproxies().get(url.scheme)
    if proxy is not None and not urllib.request.proxy_bypass(url.hostname):
        url = urllib.parse.urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    result = []

    def connect():
        try:
            port = url.port or (443 if url.scheme == "https" else 80)
            socket.create_connection((url.hostname, port), SECONDS).close()
            result.append(None)
        except OSError as error:
            result.append(f"{url.hostname}: {error.strerror or error}")

    # The system's resolver has no time limit, so a thread asks it.
    thread = threading.Thread(target=connect, daemon=True)
    thread.start()
    thread.join(SECONDS)
    return result[0] if result else f"{url.hostname}: no answer in {SECONDS:g} s"
