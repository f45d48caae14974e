"""Choosing an image: an upload, or one of the gallery's."""

import numpy as np
from gradio import processing_utils

from demo.events import gr, in_sentences, uploaded_image

_SAMPLES = 6


def add(gallery, image_id, sample_id):
    """Adds a place for an upload and a list of some of the gallery's images, which fill it.

    Args:
        gallery: a `Gallery`.
        image_id, sample_id: of the two elements on the page.

    Returns:
        The component of the image.
    """
    image = uploaded_image(
        label="An image",
        sources=["upload", "clipboard"],
        height=260,
        buttons=[],
        elem_id=image_id,
    )
    samples = gr.Dropdown(
        _samples(gallery),
        value=None,
        label="Or one of the gallery's",
        info="In front, how many are more certain." if gallery.references else None,
        elem_id=sample_id,
    )

    def take(row):
        # Gradio hands out files of its own folder, and of others only if all of them are allowed.
        return processing_utils.save_file_to_cache(gallery.image_paths[row], image.GRADIO_CACHE)

    samples.input(in_sentences(take), samples, image, api_visibility="private")
    return image


def _samples(gallery):
    """Some of the gallery's images, from the most to the least certain."""
    count = len(gallery.image_names)
    reference = gallery.references.get("images")
    order = np.argsort(reference.values, kind="stable") if reference else np.arange(count)
    rows = order[np.linspace(0, count - 1, min(_SAMPLES, count)).round().astype(int)]
    if reference is None:
        return [(gallery.image_names[row], int(row)) for row in rows]
    return [
        (
            f"{reference.percentile(reference.values[row]):.0f} %: {gallery.image_names[row]}",
            int(row),
        )
        for row in rows
    ]
