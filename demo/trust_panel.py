"""When to trust the model: risk against coverage."""

from demo import cards, curves
from demo.events import gr, in_sentences


def add(service):
    """Adds the tab."""
    quality = service.quality

    def show(direction):
        drawing, sentence = curves.risk_coverage(quality.curves(), direction)
        return drawing, cards.note(f"{sentence} ({quality.source.capitalize()}.)")

    with gr.Tab("When to trust it", id="trust") as tab:
        if quality.why_not:
            gr.HTML(cards.note(quality.why_not), elem_id="halo-trust")
            return
        gr.HTML(
            "<p>If the model may refuse the queries that it is least certain of, how many of the "
            "others does it get wrong? The lower the curve, the better its uncertainty.</p>"
        )
        direction = gr.Radio(
            [("Captions find images", "t2i"), ("Images find captions", "i2t")],
            value="t2i",
            label="Direction",
        )
        sentence = gr.HTML(elem_id="halo-trust")
        plot = gr.Plot(show_label=False, elem_id="halo-risk")
        for event in (tab.select, direction.input):
            event(in_sentences(show), direction, [plot, sentence], api_visibility="private")
