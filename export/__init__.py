"""Export: a trained model as a SavedModel with signatures, and what serves it.

`python -m export RUN OUT` is the command, `export_model` the function, `docs/serving.md` the guide.
"""

__all__ = ["export_model"]


def __getattr__(name):
    # The clients of this package run where there is neither Keras nor the zoo.
    if name == "export_model":
        from export.saved_model import export_model

        return export_model
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
