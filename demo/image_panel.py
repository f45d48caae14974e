"""A picture to the captions that it finds."""

from demo import cards, chooser, verdict_card
from demo.events import PICTURES, gr, said_on_the_page

_EMPTY = "Choose a picture, or one of the gallery's, to see which captions it finds."
_EMPTY_WITHOUT = "Choose a picture to see which captions it finds."


def add(service, controls):
    """Adds the tab; arguments as in `text_panel.add`."""
    gallery = service.gallery
    empty = gallery.missing.get("captions", _EMPTY if gallery.image_names else _EMPTY_WITHOUT)
    empty = cards.note(empty)

    def search(image, similarity, results):
        if image is None or not gallery.captions:
            return empty
        said = service.find_captions(image, similarity, results)
        html = verdict_card.image_answer(gallery, said, similarity)
        return f'<div aria-live="polite">{html}</div>'

    with gr.Tab("Picture → words", id="image"):
        with gr.Row():
            with gr.Column(scale=1, min_width=260):
                image, taken = chooser.add(gallery, "halo-image", "halo-sample")
            with gr.Column(scale=2, min_width=300):
                shown = gr.HTML(empty, elem_id="halo-captions")
        inputs, options = [image, *controls], {"api_visibility": "private", **PICTURES}
        for event in (taken.then, image.upload):
            event(said_on_the_page(search), inputs, shown, **options)
        for control in controls:
            control.change(
                said_on_the_page(search), inputs, shown, trigger_mode="always_last", **options
            )
