"""The elements of an image's set: attention and nearest captions."""

from demo import cards, chooser, pictures
from demo.events import gr, in_sentences

_NO_ATTENTION = "This model's image encoder does not tell what its elements attend to."


def add(service):
    """Adds the tab, for models of sets."""

    def describe(image):
        elements, pixels = service.describe_elements(image), service.pixels(image)
        if elements[0]["attention"] is None:
            html = cards.note(_NO_ATTENTION)
            html += pictures.row(*((pixels, "The image", _words(one)) for one in elements))
        else:
            html = pictures.row(
                *(pictures.attended(pixels, one["attention"], _words(one)) for one in elements)
            )
        return f'<div aria-live="polite">{html}</div>'

    with gr.Tab("Elements", id="elements"), gr.Row():
        with gr.Column(scale=1, min_width=260):
            image, taken = chooser.add(
                service.gallery, "halo-elements-image", "halo-elements-sample"
            )
        with gr.Column(scale=2, min_width=300):
            shown = gr.HTML(
                cards.note(
                    "Choose an image to see what each element of its set attends to, and the "
                    "caption that lies nearest to it."
                ),
                elem_id="halo-elements",
            )
        for event in (taken.then, image.upload):
            event(in_sentences(describe), image, shown, api_visibility="private")


def _words(element):
    text = f"Element {element['element']}"
    if element["caption"] is None:
        return text
    return f"{text}: “{element['caption']}” (cosine {cards.number(element['cosine'])})"
