"""The page: what can be asked of one gallery, panel by panel."""

from pathlib import Path

from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware

from demo import (
    api,
    cards,
    image_panel,
    map_panel,
    own_panel,
    text_panel,
)
from demo.events import gr, guard_uploads
from demo.limits import MAX_BYTES, MAX_RESULTS
from demo.service import Service
from halo_search.server.limits import MAX_CONNECTIONS, BoundedBody, Token, hosts_of

_HERE = Path(__file__).parent
_SESSIONS = 500  # visitors whose state is kept: 0.2 MB each, and their photos; Gradio's 10,000
STARTUP = "/gradio_api/startup-events"
MAX_BODY, UPLOAD = 2**20, "/gradio_api/upload"  # bytes of a request that is no upload
_SYSTEM_FONTS = ("ui-sans-serif", "system-ui", "sans-serif")


def build(gallery):
    """The page of a `Gallery`, ready for `launch`: a `gradio.Blocks` whose `service` answers."""
    service = Service(gallery)
    with gr.Blocks(
        title=f"Halo Zoo · ask {gallery.name}",
        analytics_enabled=False,
        fill_width=True,  # style.css says how wide: four pictures of 240 pixels and more
        delete_cache=(600, 3600),
    ) as page:
        gr.HTML(_head(gallery))
        if "photos" in gallery.missing:
            gr.HTML(cards.note(gallery.missing["photos"], "warning"))
        with gr.Accordion("Settings", open=False):
            controls = _settings(service)
        with gr.Tabs(selected="text" if gallery.image_names else "image"):
            open_link = text_panel.add(service, controls)
            if gallery.reads_words and (gallery.captions or "captions" in gallery.missing):
                image_panel.add(service, controls)
            map_panel.add(service)
            if gallery.reads_words:
                own_panel.add(service, controls)
        api.add(service)
        open_link(page)
    page.service = service
    guard_uploads(page)
    return page


def launch(
    page,
    host="127.0.0.1",
    port=None,
    allowed_hosts=(),
    root_path=None,
    token=None,
    wait=True,
    quiet=False,
):
    """Serves a page of `build` and returns its address.

    `port` None takes the first free one from 7860; `wait` serves until interrupted.
    """
    page.queue(default_concurrency_limit=4, max_size=256)
    hosts = hosts_of(host, allowed_hosts)
    limits = [
        Middleware(TrustedHostMiddleware, allowed_hosts=hosts, www_redirect=False),
        Middleware(BoundedBody, most=MAX_BODY, but=(UPLOAD,)),  # which `max_file_size` bounds
    ]
    if token is not None:  # the start asks for that path itself
        limits.append(Middleware(Token, token=token, but=(STARTUP,)))
    _, address, _ = page.launch(
        server_name=host,
        server_port=port,
        share=False,
        prevent_thread_lock=True,
        quiet=True,  # Gradio's own line advises to share the page with the world
        max_file_size=MAX_BYTES,
        state_session_capacity=_SESSIONS,
        allowed_paths=[],
        show_error=False,
        ssr_mode=False,
        pwa=False,
        mcp_server=False,
        enable_monitoring=False,
        run_history=False,
        _frontend=False,  # no look at its own page, which a busy machine does not show in 3 s
        footer_links=[],
        favicon_path=_HERE / "favicon.png",
        theme=_theme(),
        css_paths=_HERE / "style.css",
        js=(_HERE / "page.js").read_text(encoding="utf-8"),
        root_path=root_path,
        app_kwargs={"middleware": limits},
    )
    # Gradio starts uvicorn without limits; each new connection asks the settings for them.
    page.server.config.limit_concurrency = MAX_CONNECTIONS
    if not quiet:
        print(f"The demo is at {address} (Ctrl+C ends it)")
    if wait:
        page.block_thread()
    return address


def _theme():
    """Gradio's, with system fonts, and with text that can be read on its ground."""
    names = ("body_text_color_subdued", "block_info_text_color", "block_label_text_color")
    names += ("block_title_text_color", "input_placeholder_color")
    greys = {name: "*neutral_600" for name in names}
    greys |= {f"{name}_dark": "*neutral_300" for name in names}
    blue = {f"button_primary_background_fill{end}": "#1d4ed8" for end in ("", "_dark")}
    blue |= {f"button_primary_background_fill_hover{end}": "#1e40af" for end in ("", "_dark")}
    return gr.themes.Default(font=_SYSTEM_FONTS, primary_hue="blue").set(**greys, **blue)


def _head(gallery):
    found = f"you see what is found among {len(gallery.image_names):,} pictures"
    if not gallery.image_names:
        many = f"{len(gallery.captions):,} captions"
        text = f"Choose a picture: you see what is found among {many}, and how likely each fits."
    elif gallery.reads_words:
        text = f"Describe a {gallery.noun}: {found}, and how likely each fits."
    else:
        text = f"Choose a caption: {found}, and how likely each fits."
    if gallery.trained_on is not None:
        text += f" {gallery.trained_on}"
    return f'<div class="halo-head"><h1>Halo Zoo</h1><p>{cards.escape(text)}</p></div>'


def _settings(service):
    """The two settings that all searches share: similarity and number of results."""
    gallery = service.gallery
    own = "as trained" if gallery.ids is None else "as the index"
    similarity = gr.Dropdown(
        [
            (name.replace("_", " ") + (f" ({own})" if not i else ""), name)
            for i, name in enumerate(gallery.similarity_names)
        ],
        value=gallery.own_similarity,
        label="Ranked by",
        render=False,
    )
    with gr.Row():
        similarity.render()
        results = gr.Slider(1, MAX_RESULTS, 8, step=1, label="Results")
    return [similarity, results]
