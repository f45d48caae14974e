"""The page: what can be asked of one gallery, panel by panel."""

import logging
import threading
from pathlib import Path

from demo import api, elements_panel, image_panel, map_panel, text_panel, trust_panel
from demo.cards import escape
from demo.events import gr
from demo.limits import MAX_BYTES, MAX_RESULTS
from demo.service import DECLINE_ABOVE, Service
from demo.uncertainty_quality import UncertaintyQuality

_HERE = Path(__file__).parent
_SYSTEM_FONTS = ("ui-sans-serif", "system-ui", "sans-serif")


def build(gallery, metrics=None):
    """The page of a gallery, ready for `launch`.

    Args:
        gallery: a `Gallery`.
        metrics: what its run measured, or None.

    Returns:
        A `gradio.Blocks`; its `service` answers, and measures the quality of its uncertainty in
        the background.
    """
    service = Service(gallery, UncertaintyQuality(gallery, metrics))
    with gr.Blocks(
        title=f"Halo Zoo · {gallery.name}", analytics_enabled=False, delete_cache=(600, 3600)
    ) as page:
        gr.HTML(_head(gallery))
        with gr.Accordion("Settings: ranking, number of results, when to decline", open=False):
            controls = _settings(gallery)
        with gr.Tabs():
            text_panel.add(service, controls)
            if gallery.encoders.reads_words:
                image_panel.add(service, controls)
            if gallery.kind == "a set":
                elements_panel.add(service)
            map_panel.add(service)
            trust_panel.add(service)
        api.add(service)
    page.service = service
    return page


def launch(page, host="127.0.0.1", port=None, wait=True, quiet=False):
    """Serves a page.

    Args:
        page: of `build`.
        host: the address to listen on: this machine alone unless told otherwise.
        port: None takes the first that is free from 7860 on.
        wait: whether to serve until interrupted.
        quiet: whether to print no address.

    Returns:
        The address.
    """
    page.queue(default_concurrency_limit=4, max_size=256)
    _, address, _ = page.launch(
        server_name=host,
        server_port=port,
        share=False,
        prevent_thread_lock=True,
        quiet=True,  # Gradio's own line advises to share the page with the world
        max_file_size=MAX_BYTES,
        allowed_paths=[],
        show_error=False,
        ssr_mode=False,
        pwa=False,
        mcp_server=False,
        enable_monitoring=False,
        run_history=False,
        footer_links=[],
        theme=_theme(),
        css_paths=_HERE / "style.css",
        js=(_HERE / "page.js").read_text(encoding="utf-8"),
    )
    if not quiet:
        print(f"The demo is at {address} (Ctrl+C ends it)")
    threading.Thread(target=_measure, args=(page.service.quality,), daemon=True).start()
    if wait:
        page.block_thread()
    return address


def _theme():
    """Gradio's, with system fonts and with grey text that can be read on its ground."""
    names = ("body_text_color_subdued", "block_info_text_color", "block_label_text_color")
    names += ("block_title_text_color", "input_placeholder_color")
    greys = {name: "*neutral_600" for name in names}
    greys |= {f"{name}_dark": "*neutral_300" for name in names}
    return gr.themes.Default(font=_SYSTEM_FONTS, primary_hue="blue").set(**greys)


def _measure(quality):
    try:
        quality.curves()
    except Exception:  # the sentences then do without it
        logging.getLogger(__name__).exception("the quality of the uncertainty was not measured")


def _head(gallery):
    what = {
        "a point": "points, which have no uncertainty",
        "a Gaussian": "Gaussians",
        "a set": "sets of vectors",
    }[gallery.kind]
    measure = ""
    if gallery.encoders.measure:
        name = gallery.encoders.measure.replace("_", " ")
        symbol = next(iter(gallery.references.values())).symbol
        measure = f" Uncertainty {symbol}: {name}." if symbol != name else f" Uncertainty: {name}."
    text = (
        f"Model {gallery.model.name} on {gallery.name}: {len(gallery.image_names):,} images, "
        f"{len(gallery.captions):,} captions, embedded as {what}.{measure}"
    )
    return f'<div class="halo-head"><h1>Halo Zoo</h1><p>{escape(text)}</p></div>'


def _settings(gallery):
    """The three settings that all searches share: similarity, number of results, threshold."""
    with gr.Row():
        similarity = gr.Dropdown(
            [
                (name.replace("_", " ") + (" (as trained)" if not i else ""), name)
                for i, name in enumerate(gallery.similarity_names)
            ],
            value=gallery.own_similarity,
            label="Similarity at test time",
            info="What results are ranked by.",
        )
        results = gr.Slider(
            1, MAX_RESULTS, 8, step=1, label="Results", info="How many items to show."
        )
        decline = gr.Slider(
            50,
            100,
            DECLINE_ABOVE,
            step=1,
            label="Decline above this percentile of uncertainty",
            info="100 answers everything.",
            visible=gallery.encoders.measure is not None,
        )
    return [similarity, results, decline]
