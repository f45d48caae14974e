"""Pictures of the documents, light and dark."""

from pathlib import Path

from zoo.plots.style import darken, save


def save_both(figure, path, dpi=150):
    """Saves a figure as `path`, and as `…_dark.png` beside it; it is dark afterwards.

    Returns:
        Both paths.
    """
    path = Path(path)
    save(figure, path, dpi=dpi)
    darken(figure)
    other = path.with_stem(f"{path.stem}_dark")
    figure.savefig(other, dpi=dpi, facecolor=figure.get_facecolor())
    return path, other
