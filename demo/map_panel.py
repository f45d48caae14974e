"""The map of the gallery."""

from demo import cards, map_plot
from demo.events import gr, in_sentences
from demo.limits import RefusedError, text
from demo.reference import OF_SIGMA

_HINT = "Point at a marker, or choose an item below, to see it here."


def add(service):
    """Adds the tab."""
    gallery = service.gallery
    gaussian = gallery.kind == "a Gaussian"
    labelled = gallery.records is not None and gallery.records.class_names is not None

    if "map" in gallery.missing:
        with gr.Tab("Map", id="map"):
            gr.HTML(cards.note(gallery.missing["map"]), elem_id="halo-no-map")
        return

    def draw(classes, with_captions, confidence, words, seed):
        if len(gallery.names(gallery.main_side)) < 2:
            raise RefusedError("A map needs at least two items.")
        with_captions = with_captions or not gallery.image_names
        groups = map_plot.items_of(gallery, int(classes), int(seed))
        query = None
        if words and words.strip():
            words = text(words)
            query = (words, gallery.of_words([words]))
        share = confidence / 100
        figure = map_plot.figure(gallery, groups, with_captions, share, query)
        items = [
            (f"{name}: {gallery.names(side)[row]}", f"{side} {row}")
            for name, *rows in groups
            for side, members in zip(("images", "captions"), rows, strict=True)
            if side == "images" or with_captions
            for row in members
        ]
        return figure, gr.update(choices=items, value=None)

    def show(item):
        side, row = item.split()
        return _card(gallery, side, int(row))

    with gr.Tab("Map", id="map") as tab:
        with gr.Row():
            classes = gr.Slider(
                1, 7, 5, step=1, label="Classes" if labelled else "Groups of eight", min_width=130
            )
            confidence = gr.Slider(
                5,
                95,
                25,
                step=5,
                label="Share inside an ellipse (%)",
                visible=gaussian,
                min_width=130,
            )
            words = gr.Textbox(
                label="Place a text of your own",
                visible=gallery.reads_words,
                min_width=200,
            )
            with_captions = gr.Checkbox(
                value=False,
                label="Captions too",
                visible=bool(gallery.captions and gallery.image_names),
                min_width=110,
            )
        if gallery.measure in OF_SIGMA:
            gr.HTML(
                "<p>Ellipses exaggerate: over nine tenths of the gallery they differ threefold, "
                "where σ differs by a few percent.</p>"
            )
        with gr.Row():
            redraw = gr.Button("Draw", variant="primary", min_width=110)
            more = gr.Button("Show others", min_width=110)
        seed = gr.State(0)
        plot = gr.Plot(show_label=False, elem_id="halo-map")
        card = gr.HTML(_hover(cards.escape(_HINT)), elem_id="halo-card")
        item = gr.Dropdown([], label="Items on the map", value=None, elem_id="halo-items")
        inputs = [classes, with_captions, confidence, words, seed]
        draw, private = in_sentences(draw), {"api_visibility": "private"}
        redraw.click(draw, inputs, [plot, item], api_name="draw_map")
        tab.select(draw, inputs, [plot, item], **private)
        words.submit(draw, inputs, [plot, item], **private)
        for control in (classes, confidence):
            control.release(draw, inputs, [plot, item], **private)
        with_captions.input(draw, inputs, [plot, item], **private)
        others = more.click(lambda seed: int(seed) + 1, seed, seed, **private)
        others.then(draw, inputs, [plot, item], **private)
        item.input(in_sentences(show), item, card, **private)


def _card(gallery, side, row):
    said = cards.escape(map_plot.say(gallery, side, row))
    if side == "captions":
        return _hover(said)
    return _hover(said, cards.picture(gallery.thumbnail(row), gallery.describe(row)))


def _hover(said, picture='<img alt="" hidden>'):
    return f'<div class="halo-hover" aria-live="polite">{picture}<p>{said}</p></div>'
