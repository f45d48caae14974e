"""The demo's server: the page, and named functions for programs, by Gradio's server mode."""

from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware

from demo import api, routes
from demo.events import gr, guard_uploads
from demo.limits import MAX_BYTES
from demo.own_photos import OwnPhotos
from demo.views import Views
from halo_search.server.limits import MAX_CONNECTIONS, BoundedBody, Token, hosts_of

_SESSIONS = 500  # programs whose state is kept; Gradio's 10,000 take up to 1.6 GB
STARTUP = "/gradio_api/startup-events"
MAX_BODY, UPLOAD = 2**20, "/gradio_api/upload"  # bytes of a request that is no upload


class Page:
    """The page of a gallery, ready for `launch`; also a context.

    Args:
        gallery: a `Gallery`.
        others: the same pictures by other models, to compare with.

    Attributes:
        views, own: the `Views` of the gallery and the `OwnPhotos` of visitors.
        blocks: the `gradio.Blocks` of the named functions.
    """

    def __init__(self, gallery, *others):
        self.views, self.own = Views([gallery, *others]), OwnPhotos(gallery)
        with gr.Blocks(
            title="Halo Zoo", analytics_enabled=False, delete_cache=(600, 3600), mode="server"
        ) as self.blocks:
            api.add(self.service)
        guard_uploads(self.blocks)

    @property
    def service(self):
        """The `Service` that the page opens with."""
        return self.views.first

    def launch(
        self,
        host="127.0.0.1",
        port=None,
        allowed_hosts=(),
        root_path=None,
        token=None,
        wait=True,
        quiet=False,
    ):
        """Serves the page and returns its address.

        `port` None takes the first free one from 7860; `wait` serves until interrupted.
        """
        self.blocks.queue(default_concurrency_limit=4, max_size=256)
        hosts = hosts_of(host, allowed_hosts)
        limits = [
            Middleware(TrustedHostMiddleware, allowed_hosts=hosts, www_redirect=False),
            # Uploads have bounds of their own, by `max_file_size` and by their routes.
            Middleware(BoundedBody, most=MAX_BODY, but=(UPLOAD, *routes.UPLOADS)),
        ]
        if token is not None:  # the start asks for that path itself
            limits.append(Middleware(Token, token=token, but=(STARTUP,)))
        server = gr.Server(middleware=limits, openapi_url=None, docs_url=None, redoc_url=None)
        routes.add(server, self.views, self.own)
        _, address, _ = self.blocks.launch(
            _app=server,
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
            root_path=root_path,
        )
        # Gradio starts uvicorn without limits; each new connection asks the settings for them.
        self.blocks.server.config.limit_concurrency = MAX_CONNECTIONS
        if not quiet:
            print(f"The demo is at {address} (Ctrl+C ends it)")
        if wait:
            self.blocks.block_thread()
        return address

    def close(self):
        """Ends the server and deletes the photos of visitors."""
        self.blocks.close(verbose=False)
        self.own.close()


def build(gallery, *others):
    """The `Page` of a `Gallery`; arguments as of `Page`."""
    return Page(gallery, *others)
