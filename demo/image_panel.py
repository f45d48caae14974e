"""An image to captions, and what erasing a region of it does."""

from pathlib import Path

from demo import cards, chooser, curves, pictures, verdict_card
from demo.events import gr, in_sentences, said_on_the_page

_BOX = (Path(__file__).parent / "box.js").read_text(encoding="utf-8")
_NO_ERASING = (
    "No part of a picture can be erased here: there is no uncertainty of photos to compare with."
)
_EMPTY = "Choose a picture, or one of the gallery's, to see which captions it finds."
_EMPTY_WITHOUT = "Choose a picture to see which captions it finds."


def add(service, controls):
    """Adds the tab; arguments as in `text_panel.add`."""
    gallery = service.gallery
    certain = "images" in gallery.references
    empty = gallery.missing.get("captions", _EMPTY if gallery.image_names else _EMPTY_WITHOUT)
    empty = cards.note(empty)

    def search(image, similarity, results):
        if image is None or not gallery.captions:
            return empty
        said = service.find_captions(image, similarity, results)
        html = verdict_card.image_answer(gallery, said, similarity)
        return f'<div aria-live="polite">{html}</div>'

    def erase(image, left, top, width, height):
        if image is None or not certain:
            return "", gr.update(visible=False)
        answer, erased = service.erase_region(image, left, top, width, height)
        return _erased(service, image, answer, erased)

    with gr.Tab("Picture → words", id="image"):
        with gr.Row():
            with gr.Column(scale=1, min_width=260):
                image, taken = chooser.add(gallery, "halo-image", "halo-sample")
            with gr.Column(scale=2, min_width=300):
                shown = gr.HTML(empty, elem_id="halo-captions")
        if not certain and gallery.measure is not None:
            gr.HTML(cards.note(_NO_ERASING))
        with gr.Column(visible=certain):
            gr.HTML(
                "<h3>Erase a part of it</h3><p>Drag a box over the first picture below. The model "
                "then sees grey there, and its uncertainty moves.</p>"
            )
            erased = gr.HTML(elem_id="halo-erased", js_on_load=_BOX)
            with gr.Accordion("Set the box by numbers, in percent", open=False), gr.Row():
                box = [
                    gr.Slider(low, 100, value, step=1, label=name, min_width=130)
                    for name, low, value in (
                        ("Left", 0, 30),
                        ("Top", 0, 30),
                        ("Width", 1, 40),
                        ("Height", 1, 40),
                    )
                ]
            plot = gr.Plot(show_label=False, visible=False, elem_id="halo-growing")

        private = {"api_visibility": "private"}
        found, parts = [image, *controls], [image, *box]
        search_here, erase_here = said_on_the_page(search), in_sentences(erase)
        for chosen in (taken, image.upload):
            later = chosen.then if chosen is taken else chosen
            later(search_here, found, shown, **private).then(
                erase_here, parts, [erased, plot], **private
            )
        for control in controls:
            control.change(search_here, found, shown, trigger_mode="always_last", **private)
        for number in box:
            number.release(erase_here, parts, [erased, plot], **private)
        erased.click(in_sentences(_drawn), None, box, **private).then(
            erase_here, parts, [erased, plot], **private
        )


def _erased(service, image, answer, erased):
    gallery, reference = service.gallery, service.gallery.references["images"]
    symbol = reference.symbol
    before, after = answer["uncertainty"], answer["uncertainty_without_region"]
    change = reference.change(after - before)
    pixels = service.pixels(image)
    said = f"The picture without the region: {symbol} {cards.number(after)}"
    html = cards.certainty(gallery, {**answer, "uncertainty": after}, "images") + pictures.row(
        (pixels, "The picture as the model sees it", f"{symbol} {cards.number(before)}"),
        (erased, said, f"{symbol} {cards.number(after)} ({change})"),
        pictures.change_by_place(pixels, answer["change_by_place"], reference),
    )
    growing = curves.growing_erasure(
        answer["erased_percent"],
        answer["uncertainty_by_erased_percent"],
        reference,
    )
    return f'<div aria-live="polite">{html}</div>', gr.update(value=growing, visible=True)


def _drawn(event: gr.EventData):
    """The left, top, width and height of the box that was dragged."""
    if "left" not in (event._data or {}):
        return [gr.skip()] * 4
    data = event._data
    return [
        min(max(round(float(data[name])), 0), 100) for name in ("left", "top", "width", "height")
    ]
