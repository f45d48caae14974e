"""Named functions of programs through Gradio: errors as sentences, and no address is fetched."""

import contextlib
import functools
import html
import logging

import gradio as gr
import safehttpx
from gradio import processing_utils, utils

from demo.limits import RefusedError

# Options of events that read pictures: they wait together for processes that decode, and others
# pass them. Gradio's own limit, 4 at a time, lets a few large ones keep all out.
PICTURES = {"concurrency_id": "pictures", "concurrency_limit": 24}

# Gradio imports matplotlib for every event, to draw what this page never does.
utils.MatplotlibBackendMananger = contextlib.nullcontext


async def _fetch_nothing(address, *_):
    raise gr.Error("Send an image, not an address.", print_exception=False)


# Gradio fetches the public addresses that a client names, in `file=` and as an upload.
safehttpx.async_validate_url = processing_utils.async_ssrf_protected_get = _fetch_nothing

_UNEXPECTED = "Something went wrong in the demo itself. What it was is in the server's log."


def in_sentences(function):
    """Decorates functions that the API calls: an error becomes one sentence.

    The message of a defect stays in the log: it may hold paths.
    """

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except RefusedError as error:
            message = html.escape(str(error))
            raise gr.Error(message, title="Not answered", print_exception=False) from None
        except gr.Error:
            raise
        except Exception:
            logging.getLogger(__name__).exception("%s failed", function.__qualname__)
            raise gr.Error(_UNEXPECTED, print_exception=False) from None

    return wrapper


def uploaded_image(**options):
    """A `gr.Image` that hands on the path of the upload and decodes nothing.

    Gradio's own opens whatever it is sent, in any format and of any size, before our limits
    apply. Methods of the one component are replaced, since for a subclass Gradio writes a file
    beside its source.
    """
    image = gr.Image(type="filepath", **options)
    image.preprocess = lambda payload: None if payload is None else payload.path
    return image


def guard_uploads(blocks):
    """No event names a file that is no upload: an image without "meta" skips Gradio's check."""
    check = blocks.validate_inputs

    def validate(function, inputs):
        processing_utils.check_all_files_in_cache(inputs)
        return check(function, inputs)

    blocks.validate_inputs = validate
