"""Similarities by name, for ranking at test time."""

from zoo.similarities.base import REGISTERED

_FORMER = {"mean": "euclidean"}


def get(name, model=None):
    """A similarity by name: the rows of PCME's table E.1 and PCME++'s table C.4. Raises ValueError
    if the name is unknown, or needs a model that was trained with it.

    ```python
    zoo.similarities.get("csd")
    ```

    Args:
        name: the `identifier` of a class; `zoo.similarities.NAMES` has those of the library.
        model: a `DualEncoder`. When its own similarity has this name it is returned, with its
            learned scale and shift.
    """
    similarity_class = get_class(name)
    model_similarity = getattr(model, "similarity", None)
    if getattr(model_similarity, "identifier", None) == name:
        return model_similarity
    check_name(name)
    return similarity_class.for_ranking(model_similarity)


def check_name(name):
    """Raises ValueError unless a name is that of a similarity that needs no trained model."""
    if get_class(name).needs_model:
        raise ValueError(f"the similarity {name!r} needs a model that was trained with it")


def get_class(name):
    """The class of a similarity by its name. Raises ValueError if the name is unknown; of a former
    name it says what it is now."""
    if name in REGISTERED:
        return REGISTERED[name]
    if new := current_name(name):
        raise ValueError(f"the similarity {name!r} is now called {new!r}")
    raise ValueError(f"the similarity must be one of {', '.join(names())}; received {name!r}")


def current_name(name):
    """The name of today of a similarity by any name that it has had in files, or None."""
    if name in REGISTERED:
        return name
    of_class = {cls.__name__: identifier for identifier, cls in REGISTERED.items()}
    return (_FORMER | of_class).get(name)


def names(which=lambda cls: True):
    """The names under which `get` gives a similarity without a model, sorted, of the classes for
    which `which(class)` is true.

    ```python
    zoo.similarities.names(lambda cls: cls.is_log_odds)
    ```
    """
    known = REGISTERED.items()
    return tuple(sorted(name for name, cls in known if not cls.needs_model and which(cls)))


def name_of(similarity):
    """The name of a similarity layer: its class' `identifier`, else the layer's own name."""
    return getattr(similarity, "identifier", None) or similarity.name


def owner_of(function):
    """The class whose mathematical quantity a function of `zoo.similarities` is, or None."""
    return getattr(function, "owner", None)
