"""How the page meets people: errors as sentences, uploads of pictures alone."""

import functools
import html
import logging
import os

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")

import gradio as gr

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


def uploaded_image(**options):
    """A `gr.Image` that hands on the path of the upload and decodes nothing.

    Gradio's own opens whatever it is sent, in any format and of any size, before our limits are
    asked; and it fetches the address that a client names in place of an upload. Methods of the
    one component are replaced, since for a subclass Gradio writes a file beside its source.
    """
    image = gr.Image(type="filepath", **options)
    move = image.async_move_resource_to_block_cache

    async def move_upload(url_or_file_path):
        if "://" in str(url_or_file_path or ""):
            raise gr.Error("Send an image, not an address.", print_exception=False)
        return await move(url_or_file_path)

    image.preprocess = lambda payload: None if payload is None else payload.path
    image.async_move_resource_to_block_cache = move_upload
    return image
