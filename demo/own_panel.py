"""One's own photos: uploaded, embedded, and searched in words."""

import time
from pathlib import Path

from demo import cards, limits, verdict_card
from demo.events import PICTURES, gr, in_sentences, said_on_the_page, uploaded_files
from demo.gallery import Gallery
from demo.service import Service
from halo_search.embeddings.arrays import coordinates, joined

_AT_ONCE = 16  # photos between two steps of the bar
_EMPTY = "Upload some photos first."


def add(service, controls):
    """Adds the tab; arguments as in `text_panel.add`."""

    def take(files, progress=gr.Progress()):  # noqa: B008 -- Gradio finds the bar by its default
        if not files:
            return None, cards.note(_EMPTY)
        start = time.perf_counter()
        own, bad = gallery_of(service.gallery, files, progress)
        seconds = time.perf_counter() - start
        return own, _told(service.gallery, own, bad, seconds)

    def search(own, words, _similarity, results):
        if own is None:
            raise limits.RefusedError(_EMPTY)
        found = Service(own).find_images(words, None, results)
        html = verdict_card.answer(own, found)
        return f'<div aria-live="polite">{html}</div>'

    with gr.Tab("Your photos", id="own"):
        gr.HTML(
            f"<p>Up to {limits.MAX_PHOTOS} photos of {limits.MAX_BYTES // 2**20} MB. They stay "
            "on the machine that runs this demo, for an hour. How likely each fits a question is "
            "learnt from the model's own held-out questions. "
            f"{cards.escape(service.gallery.trained_on or '')}</p>"
        )
        files = uploaded_files(file_types=["image"], label="Photos", height=160)
        state = gr.State(None, time_to_live=3600)
        told = gr.HTML(elem_id="halo-own-told")
        with gr.Row(equal_height=True, elem_classes="halo-search"):
            words = gr.Textbox(
                label="What do you look for in them?",
                placeholder="Describe it, then press Enter",
                max_length=limits.MAX_CHARACTERS,
                scale=5,
                elem_id="halo-own-caption",
            )
            button = gr.Button("Search your photos", variant="primary", scale=1, min_width=110)
        shown = gr.HTML(elem_id="halo-own", js_on_load=verdict_card.PRESSES)
        private = {"api_visibility": "private"}
        files.upload(in_sentences(take), files, [state, told], **private, **PICTURES)
        for event in (button.click, words.submit):
            event(said_on_the_page(search), [state, words, *controls], shown, **private)

    def press(own, words, similarity, results, event: gr.EventData):
        data = event._data or {}
        kept = data.get("kept")
        said = words.split()
        words = data.get("ask") or " ".join(said[i] for i in kept or [] if i < len(said))
        return words, search(own, words, similarity, results)

    shown.click(said_on_the_page(press, 1), [state, words, *controls], [words, shown], **private)


def gallery_of(gallery, paths, progress=lambda share, desc=None: None):
    """A `Gallery` of uploaded files with another's asker, and how many were no pictures."""
    if len(paths) > limits.MAX_PHOTOS:
        raise limits.RefusedError(
            f"{len(paths)} photos are too many: at most {limits.MAX_PHOTOS} are taken."
        )
    kept, parts, pixels = [], [], []
    for place, path in enumerate(map(Path, paths)):
        try:
            pixels.append(limits.picture(path, gallery.pixels))
            kept.append(path)
        except limits.RefusedError:
            continue
        if len(pixels) == _AT_ONCE:
            parts.append(gallery.of_pixels(pixels))
            pixels = []
            progress((place + 1) / len(paths), desc="Reading your photos")
    if pixels:
        parts.append(gallery.of_pixels(pixels))
    if not parts:
        raise limits.RefusedError("None of these files is a picture that can be read.")
    embedding = joined(parts)
    names = [path.stem.replace("_", " ") for path in kept]
    own = Gallery(
        "your photos",
        gallery.asker,
        names,
        kept,
        [],
        {"images": embedding},
        trained_on=gallery.trained_on,
    )
    return own, len(paths) - len(kept)


def _told(gallery, own, bad, seconds):
    count = len(own.image_names)
    text = f"{count} {_plural(count, 'photo')} in {seconds:.1f} s."
    if bad:
        text += f" {bad} {_plural(bad, 'file')} could not be read as pictures."
    probes = gallery.asker.probes
    known = None if probes is None else probes.known.get("i2t")
    html = cards.note(text)
    if known is not None:
        strange = int(known.declined(coordinates(own.embeddings["images"])).sum())
        if strange:
            html += cards.note(
                f"Unlike the pictures that the model has learnt from: {strange} of {count}. What "
                "it says of those is a guess.",
                "warning",
            )
    return html


def _plural(count, noun):
    return noun if count == 1 else f"{noun}s"
