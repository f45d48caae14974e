"""Words to images: a question, a verdict, and words to press."""

from demo import cards, opening, verdict_card
from demo.answers import FEW, MANY
from demo.events import gr, said_on_the_page
from demo.limits import MAX_CHARACTERS, MAX_RESULTS, RefusedError
from demo.stored_captions import listed

_NOTHING = {"caption": None, "kept": None}


def add(service, controls):
    """Adds the tab. Returns a function of the page that answers `?q=` when it opens."""
    gallery = service.gallery
    if "images" in gallery.missing:
        with gr.Tab("Words → pictures", id="text"):
            gr.HTML(cards.note(gallery.missing["images"]), elem_id="halo-answer")
        return lambda page: None
    found = opening.examples(service)
    first = [one.caption for one in found[:2]]

    def answer(asked, similarity, results):
        if asked["caption"] is None:
            short = [service.find_images(text, similarity, min(results, 4)) for text in first]
            html = verdict_card.contrast(gallery, short) if short else ""
        else:
            words, kept, text = _kept(asked)
            if words and not text:
                return cards.note("No word is left: press one to put it back.", "warning")
            answered = service.find_images(text, similarity, results)
            html = verdict_card.answer(gallery, answered, (words, kept), similarity)
        return f'<div aria-live="polite">{html}</div>'

    def ask(caption, *settings):
        asked = {**_NOTHING, "caption": caption}
        return asked, answer(asked, *settings)

    def press(asked, similarity, results, event: gr.EventData):
        event, settings = event._data or {}, (similarity, results)
        if event.get("ask"):
            asked = {**_NOTHING, "caption": event["ask"]}
        elif asked["caption"]:
            places = range(len(asked["caption"].split()))
            asked = {**asked, "kept": [i for i in places if i in event.get("kept", ())]}
        return asked["caption"] or "", asked, answer(asked, *settings)

    with gr.Tab("Words → pictures", id="text"):
        with gr.Row(equal_height=True, elem_classes="halo-search"):
            caption, entered = _question(gallery)
            button = gr.Button("Search", variant="primary", scale=1, min_width=110)
        examples = gr.HTML(
            _examples(found), elem_id="halo-examples", js_on_load=verdict_card.PRESSES
        )
        asked = gr.State(_NOTHING)
        initial = answer(_NOTHING, None, controls[1].value)
        shown = gr.HTML(initial, elem_id="halo-answer", js_on_load=verdict_card.PRESSES)
        with gr.Column(visible=False, elem_id="halo-all") as whole:
            least = gr.Slider(
                *(round(100 * end) for end in (MANY, FEW)),
                50,
                step=5,
                label="All that fits with at least this probability, in percent",
            )
            listed_all = gr.HTML()
            more = gr.Button("Show more", size="sm")
        count = gr.State(MAX_RESULTS)

        def everything(asked, least, similarity, count=MAX_RESULTS):
            nothing = gr.skip(), gr.skip(), gr.Column(visible=False), ""
            if asked["caption"] is None:
                return nothing
            text = _kept(asked)[2]
            try:
                found = service.find_all(text, least / 100, similarity, 0, count)
            except RefusedError:  # which the answer says
                return nothing
            if found["many"] is None:
                return nothing
            html = verdict_card.everything(gallery, found)
            button = gr.Button(visible=found["total"] > count and count < 10 * MAX_RESULTS)
            return count, button, gr.Column(visible=True), html

        def longer(asked, least, similarity, count):
            return everything(asked, least, similarity, count + MAX_RESULTS)

        private = {"api_visibility": "private"}
        settings, outputs = [asked, least, controls[0]], [count, more, whole, listed_all]
        latest = {**private, "trigger_mode": "always_last"}
        for changed in (asked.change, least.change, controls[0].change):
            changed(said_on_the_page(everything, 3), settings, outputs, **latest)
        more.click(said_on_the_page(longer, 3), [*settings, count], outputs, **private)
        for event in (button.click, entered):
            event(said_on_the_page(ask, 1), [caption, *controls], [asked, shown], **private)
        for place in (examples, shown):
            pressed = said_on_the_page(press, 2)
            place.click(pressed, [asked, *controls], [caption, asked, shown], **private)
        again = said_on_the_page(answer)
        for control in controls:
            control.change(again, [asked, *controls], shown, trigger_mode="always_last", **private)

    def open_link(page):
        def linked(similarity, results, request: gr.Request):
            words = request.query_params.get("q")
            if not words:
                return gr.skip(), gr.skip(), gr.skip()
            return words, *ask(words, similarity, results)

        page.load(
            said_on_the_page(linked, 2),
            controls,
            [caption, asked, shown],
            show_progress="hidden",
            **private,
        )

    return open_link


def _kept(asked):
    """`(words, places of those that are asked, the text of these)`."""
    words = asked["caption"].split()
    kept = range(len(words)) if asked["kept"] is None else asked["kept"]
    return words, kept, " ".join(words[i] for i in kept)


def _question(gallery):
    """`(component, event)`: a box for words, or a choice of the captions whose vectors are there.

    What is not listed can be typed into the choice too.
    """
    place = {"scale": 5, "elem_id": "halo-caption"}
    if gallery.reads_words:
        box = gr.Textbox(
            label="What do you look for?",
            placeholder=f"Describe a {gallery.noun}",
            max_length=MAX_CHARACTERS,
            **place,
        )
        return box, box.submit
    choices, label = listed(gallery.captions)
    box = gr.Dropdown(choices, value=None, label=label, allow_custom_value=True, **place)
    return box, box.input


def _examples(found):
    chips = "".join(
        f'<button type="button" class="halo-example" data-ask="{cards.escape(one.caption)}" '
        f'data-key="e{i}"><small>{cards.escape(one.label)}</small> {cards.escape(one.caption)}'
        "</button>"
        for i, one in enumerate(found)
    )
    return f'<div class="halo-examples" role="group" aria-label="Examples">{chips}</div>'
