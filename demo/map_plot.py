"""The gallery in the plane, with confidence ellipses (Plotly)."""

import html

import numpy as np
import plotly.graph_objects as go

from demo.reference import OF_SIGMA, number
from halo_search.embeddings.arrays import ellipse_axes, principal_plane
from zoo.embeddings import kind

# The report's colours but for black, and a blue that can be told from dark ground too.
COLORS = ("#2A86C8", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8A8A8A")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "star", "circle")
INK = "#7d8590"  # text and lines that can be read on either ground
_CORNERS = 40
_IMAGES_OF_CLASS, _CAPTIONS_OF_CLASS = 8, 3
_THUMBNAIL_LIMIT = 120  # beyond that many the page would grow by megabytes


def items_of(gallery, classes=6, seed=0):
    """Some items of some classes, or of all: `(class name, image rows, caption rows)` each."""
    rng = np.random.default_rng(seed)
    records = gallery.records
    if records is None or records.class_names is None:
        items = gallery.names(gallery.main_side)
        chosen = np.sort(rng.permutation(len(items))[: classes * _IMAGES_OF_CLASS])
        if gallery.main_side == "captions":
            return [("captions", np.array([], int), chosen)]
        own = [gallery.captions_of_image[image][:1] for image in chosen]
        return [("images", chosen, np.array([row for rows in own for row in rows], int))]
    from zoo.data.text.prompts import spoken  # which needs Keras

    labels = np.unique(records.image_labels)
    chosen = np.sort(rng.permutation(labels)[:classes]) if seed else labels[:classes]
    groups = []
    for label in chosen:
        images = np.flatnonzero(records.image_labels == label)[:_IMAGES_OF_CLASS]
        captions = np.flatnonzero(records.caption_labels == label)
        captions = np.sort(rng.permutation(captions)[:_CAPTIONS_OF_CLASS])
        name = spoken(records.class_names[label]).capitalize()
        groups.append((name, images, captions))
    return groups


def figure(gallery, groups, with_captions=True, confidence=0.5, query=None):
    """The map of `groups`, with `confidence` of each Gaussian in its ellipse, as a Plotly figure.

    Each marker has `[escaped text, picture, text]`; `query`, `(text, embedding)`, is a star.
    """
    plane = principal_plane(_middle(gallery.embeddings[gallery.main_side]))
    drawing = go.Figure()
    pictures = sum(len(images) for _, images, _ in groups) <= _THUMBNAIL_LIMIT
    for place, (name, images, captions) in enumerate(groups):
        color, symbol = COLORS[place % len(COLORS)], SYMBOLS[place % len(SYMBOLS)]
        said = [
            [say(gallery, "images", row), gallery.thumbnail(int(row)) if pictures else ""]
            for row in images
        ]
        if len(images):
            embedding = gallery.take("images", images)
            wider = _exaggeration(gallery, "images", embedding)
            _add(drawing, plane, embedding, said, name, color, symbol, confidence, "solid", wider)
        if with_captions and len(captions):
            said = [[say(gallery, "captions", row), ""] for row in captions]
            embedding = gallery.take("captions", captions)
            open_symbol = f"{symbol}-open"
            wider = _exaggeration(gallery, "captions", embedding)
            _add(
                drawing, plane, embedding, said, name, color, open_symbol, confidence, "dot", wider
            )
    if query is not None:
        text, embedding = query
        values = gallery.uncertainty(embedding)
        reference = gallery.references.get("captions") or gallery.references.get("images")
        said = f"Your text: {text}"
        if values is not None:
            said += f" · {reference.symbol} {number(values[0])}"
        said, wider = [[said, ""]], _exaggeration(gallery, "captions", embedding)
        _add(drawing, plane, embedding, said, "your text", INK, "star", confidence, "dash", wider)
        drawing.data[-1].marker.size = 16
    shares = plane.explained
    titles = [
        f"principal axis {i + 1}" + ("" if shares is None else f" ({100 * shares[i]:.0f} %)")
        for i in range(2)
    ]
    return styled(drawing, *titles, equal=True)


def styled(drawing, x, y, equal=False, height=520):
    """One look for all of the demo's figures, on light and on dark ground."""
    axis = {"gridcolor": "rgba(125,133,144,0.25)", "zeroline": False, "linecolor": INK}
    drawing.update_layout(
        template="none",
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"family": "system-ui, sans-serif", "size": 13, "color": INK},
        margin={"l": 60, "r": 12, "t": 12, "b": 48},
        legend={"orientation": "h", "y": 1.02, "x": 0, "yanchor": "bottom"},
        hoverlabel={"font": {"family": "system-ui, sans-serif"}},
        height=height,
        dragmode="pan",
    )
    for update, letter, title in ((drawing.update_xaxes, "x", x), (drawing.update_yaxes, "y", y)):
        decimals = _decimals(np.concatenate([np.asarray(t[letter], float) for t in drawing.data]))
        words = {"text": title, "font": {"size": 14}, "standoff": 8}
        update(title=words, tickformat=f".{decimals}f", **axis)
    if equal:
        drawing.update_yaxes(scaleanchor="x", scaleratio=1)
    return drawing


def _decimals(values, ticks=5):
    """As many decimals as a step between ticks needs: 0.100 beside 0.105, and 20 beside 40."""
    step = np.nanmax(values) - np.nanmin(values)
    return int(np.clip(np.ceil(-np.log10(max(step, 1e-9) / ticks)), 0, 6))


def _add(drawing, plane, embedding, said, name, color, symbol, confidence, dash, wider):
    """Markers and ellipses of some items; of sets all elements, each with its item's text."""
    is_query, is_image = symbol == "star" and dash == "dash", dash == "solid"
    if "elements" in embedding:
        count = embedding["elements"].shape[1]
        points = (embedding["elements"].reshape(-1, plane.origin.size) - plane.origin) @ plane.axes
        said = [words for words in said for _ in range(count)]
        if "mask" in embedding:
            real = embedding["mask"].reshape(-1)
            points, said = points[real], [w for w, keep in zip(said, real, strict=True) if keep]
    elif "log_variance" in embedding:
        points, covariance = plane.project(embedding["mean"], embedding["log_variance"])
        covariance = covariance * wider[:, None, None] ** 2
        outline = _outlines(points, covariance, confidence)
        drawing.add_scatter(
            x=outline[:, 0],
            y=outline[:, 1],
            mode="lines",
            line={"color": color, "width": 2 if is_query else 1, "dash": dash},
            opacity=1.0 if is_query else 0.45,
            hoverinfo="skip",
            showlegend=False,
            legendgroup=name,
        )
    else:
        points = (embedding["mean"] - plane.origin) @ plane.axes
    drawing.add_scatter(
        x=points[:, 0],
        y=points[:, 1],
        mode="markers",
        marker={"color": color, "symbol": symbol, "size": 9 if is_image else 7},
        # Plotly reads a little HTML in hover labels; the card below the map takes text as it is.
        customdata=[[html.escape(words), picture, words] for words, picture in said],
        hovertemplate="%{customdata[0]}<extra></extra>",
        name=html.escape(name),
        showlegend=is_image or is_query,
        legendgroup=name,
    )


def _exaggeration(gallery, side, embedding):
    """What ellipses are widened by, so that over the middle nine tenths σ differs threefold.

    Learned σ differ by a tenth of themselves, which nobody sees.
    """
    values, reference = gallery.uncertainty(embedding), gallery.references.get(side)
    if reference is None or reference.measure not in OF_SIGMA:
        return np.ones(len(next(iter(embedding.values()))))
    to_sigma = OF_SIGMA[reference.measure]
    low, middle, high = (reference.value_at(p) ** to_sigma for p in (5, 50, 95))
    power = np.log(3) / np.log(high / low) if high > low > 0 else 1.0
    share = np.clip(np.asarray(values) ** to_sigma, low, high) / middle
    return share ** max(power - 1.0, 0.0)


def _outlines(centres, covariances, confidence):
    """All ellipses as one line, broken by NaN."""
    width, height, angle = ellipse_axes(covariances, confidence)
    turn = np.linspace(0, 2 * np.pi, _CORNERS)
    x, y = 0.5 * width[:, None] * np.cos(turn), 0.5 * height[:, None] * np.sin(turn)
    cos, sin = (f(np.radians(angle))[:, None] for f in (np.cos, np.sin))
    outlines = np.stack([x * cos - y * sin, x * sin + y * cos], -1) + centres[:, None]
    broken = np.full((len(centres), 1, 2), np.nan)
    return np.concatenate([outlines, broken], 1).reshape(-1, 2)


def _middle(embedding):
    """The means; of sets the elements."""
    if kind(embedding) != "a set":
        return embedding["mean"]
    return embedding["elements"].reshape(-1, embedding["elements"].shape[-1])


def say(gallery, side, row):
    said, reference = gallery.names(side)[row], gallery.references.get(side)
    if reference is None:
        return said
    value = reference.values[row]
    share = reference.percentile(value)
    return f"{said} · {reference.symbol} {number(value)}, less certain than {share:.0f} %"
