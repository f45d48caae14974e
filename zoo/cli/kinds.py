"""Types of settings that are numbers; the type of a setting says which numbers its flag accepts.

```python
dim: Size = setting(512, "dimensions of the embedding")
word_dropping: Share = setting(0.1, "probability that a word becomes <unk>")
clip_norm: Positive | None = setting(None, "gradients with a larger norm are scaled to it")
```
"""

from typing import Annotated, Any, NamedTuple, get_args, get_origin


class Kind(NamedTuple):
    """What a number may be: a key of `halo_search.cli.bounds.BOUNDS`."""

    name: str


Size = Annotated[int, Kind("size")]
"""A whole number of at least 1. A plain `int` is a count, of at least 0."""

Share = Annotated[float, Kind("share")]
"""A number from 0 to 1: a share, a probability or a factor of decay."""

Positive = Annotated[float, Kind("positive")]
"""A number above 0. A plain `float` is a rate or a weight, of at least 0."""

Signed = Annotated[float, Kind("signed")]
"""Any finite number, also below 0."""

_PLAIN = {int: "count", float: "rate"}


def kind_of(hint: Any) -> tuple[Any, str | None]:
    """`(type, kind)` of the type hint of one value: `(int, "size")` of `Size`, `(float, "rate")` of
    `float`; the kind is None of a type that is no number."""
    if get_origin(hint) is Annotated:
        plain, *declared = get_args(hint)
        return plain, next(item.name for item in declared if isinstance(item, Kind))
    return hint, _PLAIN.get(hint)
