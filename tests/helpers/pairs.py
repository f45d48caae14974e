"""Pictures and captions of a table or a folder, whole: what splits are divided from."""

from zoo.data.loaders.gather import gather
from zoo.data.loaders.layouts import recognised
from zoo.data.loaders.own_pairs import read_layout
from zoo.data.records import Problems


def load_pairs(
    table, images=None, columns=("image", "caption"), size=8, skip_bad=False, separator=None
):
    """A `Loaded` of all that can be used; absent photos are left out, and a line says so."""
    problems = Problems(skip_bad)
    layout = recognised(table, images, columns, separator)
    listed, _ = read_layout(layout, problems, columns[1])
    return gather(layout.source.name, listed, layout.images, size, problems)
