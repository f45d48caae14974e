"""An image to captions, and what erasing a region of it does."""

import numpy as np
from PIL import Image

from demo import cards, curves, pictures
from demo.events import gr, in_sentences, uploaded_image

_SAMPLES = 6
_EMPTY = "Choose an image, or one of the gallery's, to see which captions it finds."


def add(service, controls):
    """Adds the tab; arguments as in `text_panel.add`."""
    gallery = service.gallery
    certain = gallery.encoders.measure is not None

    def search(image, similarity, results, decline_above):
        answer = service.find_captions(image, similarity, results, decline_above)
        parts = [cards.certainty(gallery, answer, "images", decline_above)]
        if answer["declined"]:
            parts.append(cards.declined(answer, decline_above, gallery.references["images"]))
        else:
            parts.append(cards.results(gallery, answer, "captions"))
        return f'<div aria-live="polite">{"".join(parts)}</div>'

    def erase(image, left, top, width, height):
        answer, erased = service.erase_region(image, left, top, width, height)
        return _erased(service, image, answer, erased)

    with gr.Tab("Image → captions", id="image"):
        with gr.Row():
            with gr.Column(scale=1, min_width=260):
                image = uploaded_image(
                    label="An image",
                    sources=["upload", "clipboard"],
                    height=260,
                    buttons=[],
                    elem_id="halo-image",
                )
                samples = gr.Dropdown(
                    _samples(gallery),
                    value=None,
                    label="Or one of the gallery's",
                    info="In front, how many are more certain." if certain else None,
                    elem_id="halo-sample",
                )
                button = gr.Button("Search", variant="primary")
            with gr.Column(scale=2, min_width=300):
                shown = gr.HTML(cards.note(_EMPTY), elem_id="halo-captions")
        with gr.Accordion("Erase a region and watch the uncertainty", open=True, visible=certain):
            gr.HTML(
                "<p>Click on the image above to move the region, or set it here, in percent.</p>"
            )
            with gr.Row():
                box = [
                    gr.Slider(low, 100, value, step=1, label=name, min_width=130)
                    for name, low, value in (
                        ("Left", 0, 30),
                        ("Top", 0, 30),
                        ("Width", 1, 40),
                        ("Height", 1, 40),
                    )
                ]
            erase_button = gr.Button("Erase", elem_id="halo-erase")
            erased = gr.HTML(elem_id="halo-erased")
            plot = gr.Plot(show_label=False, visible=False, elem_id="halo-growing")

        private = {"api_visibility": "private"}
        found = [image, *controls]
        button.click(in_sentences(search), found, shown, **private)
        image.upload(in_sentences(search), found, shown, **private)
        samples.input(
            in_sentences(lambda row: str(gallery.image_paths[row])), samples, image, **private
        )
        erase_button.click(in_sentences(erase), [image, *box], [erased, plot], **private)
        image.select(in_sentences(_centred), [image, *box[2:]], box[:2], **private).then(
            in_sentences(erase), [image, *box], [erased, plot], **private
        )


def _erased(service, image, answer, erased):
    gallery, reference = service.gallery, service.gallery.references["images"]
    symbol = reference.symbol
    before, after = answer["uncertainty"], answer["uncertainty_without_region"]
    change = reference.change(after - before)
    pixels = service.pixels(image)
    said = f"The image without the region: {symbol} {cards.number(after)}"
    html = cards.certainty(gallery, {**answer, "uncertainty": after}, "images") + pictures.row(
        (pixels, "The image as the model sees it", f"{symbol} {cards.number(before)}"),
        (erased, said, f"{symbol} {cards.number(after)} ({change})"),
        pictures.change_by_place(pixels, answer["change_by_place"], reference),
    )
    growing = curves.growing_erasure(
        answer["erased_percent"],
        answer["uncertainty_by_erased_percent"],
        reference,
    )
    return f'<div aria-live="polite">{html}</div>', gr.update(value=growing, visible=True)


def _centred(image, width, height, event: gr.SelectData):
    """The region around the place that was clicked, in percent of the middle square."""
    with Image.open(image) as picture:
        size = np.array(picture.size)
    side = size.min()
    place = 100 * (np.array(event.index[:2]) - (size - side) / 2) / side
    left, top = np.clip(place - np.array([width, height]) / 2, 0, 100)
    return round(left), round(top)


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
