"""Which files a client may name: those that lie in Gradio's folder of what was uploaded."""

import re
from pathlib import Path

from demo.limits import RefusedError

_DIGEST = re.compile(r"[0-9a-f]{64}")
_REFUSED = "Only a picture that was uploaded here is read. Send an image, not {}."


def is_upload(folder, path):
    """Whether a path names a file as an upload is kept: `folder/<SHA-256 of its bytes>/<name>`.

    Links are followed first. The digest is what keeps an upload its owner's: nobody can name it
    who does not have its bytes.

    Args:
        folder: Gradio's folder of temporary files.
        path: what a client sent.
    """
    try:
        real = Path(path).resolve(strict=True)
        own = Path(folder).resolve()
        return (
            real.parent.parent == own
            and _DIGEST.fullmatch(real.parent.name) is not None
            and real.is_file()
        )
    except (OSError, ValueError, RuntimeError):  # not there, no name of a file, a circle of links
        return False


def check(folder, values):
    """Looks for files in the values of an event, whatever they are and however deep.

    Args:
        folder: see `is_upload`.
        values: what a client sent, of JSON's types.

    Raises:
        RefusedError: if one is a file that is no upload.
    """
    waiting = [values]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            # "meta" is what Gradio knows a file by, but a component takes one without it.
            if "path" in value or "meta" in value:
                _check_file(folder, value)
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value


def _check_file(folder, file):
    path = file.get("path")
    if "://" in str(path or file.get("url") or "") or str(file.get("url")).startswith("data:"):
        raise RefusedError(_REFUSED.format("an address"))
    if not isinstance(path, str) or not is_upload(folder, path):
        raise RefusedError(_REFUSED.format("the name of a file"))
