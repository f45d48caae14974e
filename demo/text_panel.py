"""Words to images, and which words matter."""

import numpy as np

from demo import cards
from demo.events import gr, in_sentences
from demo.service import DECLINE_ABOVE

_FALLBACK = "a small bird with a red crown and black wings"


def add(service, controls):
    """Adds the tab.

    Args:
        service: the `Service`.
        controls: the components of similarity, number of results and threshold.
    """
    gallery = service.gallery
    examples = _examples(gallery)
    first = service.find_images(examples[len(examples) // 2])
    certain = gallery.encoders.measure is not None and gallery.encoders.reads_words

    def search(caption, similarity, results, decline_above):
        answer = service.find_images(caption, similarity, results, decline_above)
        return _shown(gallery, answer, decline_above)

    def stay(caption, kept):
        answer = service.keep_words(caption, [int(place.split(".")[0]) - 1 for place in kept])
        text = f"“{answer['caption']}”" if answer["caption"] else ""
        return cards.note(text) + cards.certainty(gallery, answer, "captions")

    with gr.Tab("Words → images", id="text"):
        with gr.Row(equal_height=True):
            caption = gr.Textbox(
                value=first["caption"],
                label="A caption",
                placeholder="Describe what you look for, then press Enter",
                max_length=400,
                scale=5,
                elem_id="halo-caption",
            )
            button = gr.Button("Search", variant="primary", scale=1, min_width=110)
        label = "Examples, from certain to uncertain" if certain else "Examples"
        example = gr.Radio(examples, label=label, elem_id="halo-examples")
        html, words, boxes, kept = _shown(gallery, first, DECLINE_ABOVE)
        shown = gr.HTML(html, elem_id="halo-images")
        with gr.Accordion("Which words matter", open=True, visible=certain):
            words = gr.HTML(words, elem_id="halo-words")
            boxes = gr.CheckboxGroup(
                **{k: v for k, v in boxes.items() if k != "__type__"},
                label="Words that stay",
                info="Take words away and watch the uncertainty move.",
                elem_id="halo-kept",
            )
            kept = gr.HTML(kept, elem_id="halo-kept-certainty")
        outputs = [shown, words, boxes, kept]
        for event in (button.click, caption.submit):
            event(in_sentences(search), [caption, *controls], outputs, api_visibility="private")
        example.input(lambda text: text, example, caption, api_visibility="private").then(
            in_sentences(search), [caption, *controls], outputs, api_visibility="private"
        )
        boxes.input(in_sentences(stay), [caption, boxes], kept, api_visibility="private")


def _shown(gallery, found, decline_above):
    """What the tab shows of a `TextAnswer`: results, words, boxes, and no changed caption."""
    answer, reference = found["answer"], gallery.references.get("captions")
    parts = [cards.certainty(gallery, answer, "captions", decline_above)]
    parts += [cards.note(caveat, "warning") for caveat in found["caveats"]]
    if answer["declined"]:
        parts.append(cards.declined(answer, decline_above, reference, found))
    else:
        parts.append(cards.results(gallery, answer, "images"))
    details = ""
    if reference and gallery.encoders.reads_words:
        details = cards.words(found, reference)
        if not answer["declined"]:
            details += "<p>What would narrow it down:</p>" + cards.suggestions(found, reference)
    choices = [f"{i + 1}. {word}" for i, word in enumerate(found["caption"].split())]
    return (
        f'<div aria-live="polite">{"".join(parts)}</div>',
        details,
        gr.update(choices=choices, value=choices),
        "",
    )


def _examples(gallery):
    """Captions of the gallery from the most to the least certain, or any where there are none."""
    if not gallery.captions:
        return [_FALLBACK]
    usual = range(*np.percentile([len(c) for c in gallery.captions], (5, 90)).astype(int))
    reference = gallery.references.get("captions")
    values = reference.values if reference else np.arange(len(gallery.captions))
    order = [i for i in np.argsort(values, kind="stable") if len(gallery.captions[i]) in usual]
    places = np.linspace(0, len(order) - 1, 5).round().astype(int) if order else []
    return list(dict.fromkeys(gallery.captions[order[place]] for place in places)) or [
        gallery.captions[0]
    ]
