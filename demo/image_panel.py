"""An image to captions, and what erasing a region of it does."""

from demo import cards, chooser, curves, pictures
from demo.events import gr, in_sentences

# Gradio's own image tells where it was clicked only if it is as large as its box.
_CLICKS = """
element.addEventListener("click", (event) => {
  const picture = event.target.closest(".halo-pictures li:first-child img");
  if (!picture) return;
  const box = picture.getBoundingClientRect();
  const place = (at, from, size) => (100 * (at - from)) / size;
  trigger("click", {
    x: place(event.clientX, box.left, box.width),
    y: place(event.clientY, box.top, box.height),
  });
});
"""
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
                image = chooser.add(gallery, "halo-image", "halo-sample")
                button = gr.Button("Search", variant="primary")
            with gr.Column(scale=2, min_width=300):
                shown = gr.HTML(cards.note(_EMPTY), elem_id="halo-captions")
        with gr.Accordion("Erase a region and watch the uncertainty", open=True, visible=certain):
            gr.HTML(
                "<p>Set the region in percent of the picture, or press Erase and then click on the "
                "first picture below: that moves it.</p>"
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
            erased = gr.HTML(elem_id="halo-erased", js_on_load=_CLICKS)
            plot = gr.Plot(show_label=False, visible=False, elem_id="halo-growing")

        private = {"api_visibility": "private"}
        found = [image, *controls]
        button.click(in_sentences(search), found, shown, **private)
        image.upload(in_sentences(search), found, shown, **private)
        erase_button.click(in_sentences(erase), [image, *box], [erased, plot], **private)
        erased.click(in_sentences(_centred), box[2:], box[:2], **private).then(
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


def _centred(width, height, event: gr.EventData):
    """The left and the top of the region around the place that was clicked."""
    left, top = (
        min(max(place - size / 2, 0), 100) for place, size in ((event.x, width), (event.y, height))
    )
    return round(left), round(top)
