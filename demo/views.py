"""The views of a gallery: it by one model or by several, ranked by their similarities."""

from demo.limits import RefusedError
from demo.service import Service


class Views:
    """Services over the same pictures.

    A view's name is a model's and a similarity's, joined by " · ".

    Args:
        galleries: `Gallery`s with the same images in the same order; the first is what the page
            opens with.
    """

    def __init__(self, galleries):
        services = [Service(gallery) for gallery in galleries]
        self.first = services[0]
        self._views = {}
        for service in services:
            for similarity in service.gallery.similarity_names:
                name = f"{service.model_name} · {similarity.replace('_', ' ')}"
                if name in self._views:  # two models of one name
                    name = f"{name} ({len(self._views)})"
                self._views[name] = service, similarity

    @property
    def names(self):
        """All names, the one that the page opens with first."""
        return list(self._views)

    def service(self, name):
        """The `Service` of a view; of "" the first."""
        return self._view(name)[0]

    def similarity(self, name):
        """The name of a view's similarity; of "" the first model's own."""
        return self._view(name)[1]

    def _view(self, name):
        if not name:
            return next(iter(self._views.values()))
        if name not in self._views:
            raise RefusedError(f"There is no view {name[:80]!r}.")
        return self._views[name]
