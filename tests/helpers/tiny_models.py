"""Every builder of `zoo.models` at a tiny size, so that every one of them is exported."""

import inspect

from zoo import models

BUILDERS = tuple(
    name
    for name in models.__all__
    if inspect.isfunction(getattr(models, name))
    and "tokenizer" in inspect.signature(getattr(models, name)).parameters
)
SIZE = 32
_TINY = {"dim": 8, "word_dim": 6, "image_size": SIZE}

COUNT = 100  # pictures and captions that are compared


def tiny(name, tokenizer, **chosen):
    """The system `name`; a builder that knows other words for its sizes is to be added here.

    Args:
        name: of the builder.
        tokenizer: of the captions.
        **chosen: options of the builder.
    """
    builder = getattr(models, name)
    known = inspect.signature(builder).parameters
    takes_all = any(one.kind is one.VAR_KEYWORD for one in known.values())
    options = {key: value for key, value in _TINY.items() if takes_all or key in known}
    return builder("tiny", tokenizer=tokenizer, **{**options, **chosen})
