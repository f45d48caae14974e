"""How the page meets people: errors as sentences, uploads of pictures alone."""

import functools
import html
import logging
import os

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")

import gradio as gr

from demo import cards
from demo.limits import RefusedError

_UNEXPECTED = "Something went wrong in the demo itself. What it was is in the server's log."


def in_sentences(function):
    """Decorates what the page and the API call: whatever goes wrong is said in a sentence.

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


def said_on_the_page(function, unchanged=0):
    """Like `in_sentences`, but what is refused stands where the answer would.

    Args:
        function: of an event, whose last output is the HTML of an answer.
        unchanged: how many outputs before that one stay as they are.
    """

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except RefusedError as error:
            refused = f'<div aria-live="polite">{cards.note(error, "error")}</div>'
            return (*[gr.skip()] * unchanged, refused) if unchanged else refused

    return in_sentences(wrapper)


def uploaded_image(**options):
    """A `gr.Image` that hands on the path of the upload and decodes nothing.

    Gradio's own opens whatever it is sent, in any format and of any size, before our limits are
    asked; and it fetches the address that a client names in place of an upload. Methods of the
    one component are replaced, since for a subclass Gradio writes a file beside its source.
    """
    image = uploads_only(gr.Image(type="filepath", **options))
    image.preprocess = lambda payload: None if payload is None else payload.path
    return image


def uploads_only(component):
    """A component of files that takes uploads, and fetches no address that a client names."""
    move = component.async_move_resource_to_block_cache

    async def move_upload(url_or_file_path):
        if "://" in str(url_or_file_path or ""):
            raise gr.Error("Send an image, not an address.", print_exception=False)
        return await move(url_or_file_path)

    component.async_move_resource_to_block_cache = move_upload
    return component
