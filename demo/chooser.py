"""Choosing an image: an upload, or one of the gallery's by its thumbnail."""

import numpy as np
from gradio import processing_utils

from demo.cards import escape
from demo.events import gr, in_sentences, uploaded_image
from demo.gallery import GONE
from demo.limits import RefusedError
from halo_search.files.decoding import check_images

_SAMPLES = 6
_PRESSES = """
element.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-row]");
  if (button) trigger("click", { row: Number(button.dataset.row) });
});
"""


def add(gallery, image_id, sample_id):
    """Adds an upload and thumbnails of the gallery that fill it.

    Returns `(the component of the image, the event of a thumbnail that was pressed)`.
    """
    image = uploaded_image(
        label="A picture",
        sources=["upload", "clipboard"],
        height=260,
        buttons=[],
        elem_id=image_id,
    )
    samples = gr.HTML(_thumbnails(gallery), elem_id=sample_id, js_on_load=_PRESSES)

    def take(event: gr.EventData):
        row = int(event._data["row"])
        if not 0 <= row < len(gallery.image_paths):
            return gr.skip()
        if gallery.larger is None:
            path = gallery.image_paths[row]
            if check_images([path])[0] is not None:
                raise RefusedError("That picture is not at its path any more.")
            # Gradio hands out files of its own folder, and of others only if all are allowed.
            return processing_utils.save_file_to_cache(path, image.GRADIO_CACHE)
        return processing_utils.save_pil_to_cache(
            gallery.larger(gallery.image_paths[row]), image.GRADIO_CACHE, format="png"
        )

    return image, samples.click(in_sentences(take), None, image, api_visibility="private")


def _thumbnails(gallery):
    """Some of the gallery's images, from the most to the least certain."""
    count = len(gallery.image_names)
    reference = gallery.references.get("images")
    order = np.argsort(reference.values, kind="stable") if reference else np.arange(count)
    rows = order[np.linspace(0, count - 1, min(_SAMPLES, count)).round().astype(int)]
    pictures = {row: gallery.thumbnail(int(row)) for row in rows}
    pictures = {row: picture for row, picture in pictures.items() if picture != GONE}
    if not pictures:
        return ""
    pressed = "".join(
        f'<button type="button" data-row="{row}" data-key="s{row}" '
        f'aria-label="Take {escape(gallery.describe(row))}">'
        f'<img src="{picture}" alt="" width="256" height="256"></button>'
        for row, picture in pictures.items()
    )
    note = ", from the most to the least certain" if reference else ""
    return (
        f"<p>Or one of the gallery's{note}:</p>"
        '<div class="halo-samples" role="group" aria-label="Pictures of the gallery">'
        f"{pressed}</div>"
    )
