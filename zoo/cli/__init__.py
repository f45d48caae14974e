"""The command line: a frozen dataclass is also the flags of a command, and errors are one line.

```python
@dataclass(frozen=True, kw_only=True)
class Settings(zoo.training.RunSettings):
    learning_rate: float = setting(1e-4, "peak learning rate", source="PCME, appendix C.2")
    epochs: Size = setting(50, "epochs of fine-tuning", source="PCME, appendix C.2", toy=8, smoke=1)

def main(argv=None):
    settings = parse(Settings, argv, description=__doc__)
    ...

if __name__ == "__main__":
    run(main)
```
"""

import dataclasses
import types
import typing
from collections.abc import Sequence
from typing import Any, Literal, TypeVar

from halo_search.cli import recipe_flags
from halo_search.cli.parser import OneLineParser, naming, program, run, verbosity
from zoo.cli.kinds import Positive, Share, Signed, Size, kind_of

__all__ = [
    "AS_DEFAULT",
    "OneLineParser",
    "Positive",
    "Share",
    "Signed",
    "Size",
    "differs",
    "inherit",
    "naming",
    "parse",
    "program",
    "run",
    "setting",
    "verbosity",
]

Settings = TypeVar("Settings")


def setting(
    default: Any,
    help: str = "",
    *,
    source: str = "",
    toy: Any = ...,
    smoke: Any = ...,
    identity: bool = True,
    const: Any = None,
) -> Any:
    """A field of a settings dataclass, with what `--help` says of it.

    Args:
        default: the paper's value.
        help: what it is, with its unit.
        source: where the value comes from: the paper and its section, appendix, table or figure, or
            its code, as in `"PCME, section 4.1"` and `"VSE++, released code"`. A semicolon parts
            the places of several values.
        toy: the value on the embedded toy data, that is without `--data-dir`, if another.
        smoke: the value with `--smoke`, if another. A flag that is given wins over both.
        identity: False where two runs that differ in it are still the same run, so that one may
            resume the other (`RunFolder.open`).
        const: the value of the bare flag, for a flag whose value may be left out.
    """
    metadata = {"help": help, "source": source, "identity": identity, "const": const}
    if toy is not ...:
        metadata["toy"] = toy
    if smoke is not ...:
        metadata["smoke"] = smoke
    return dataclasses.field(default=default, metadata=metadata)


AS_DEFAULT: Any = object()  # `differs(toy=AS_DEFAULT)`: the toy data have no value of their own


def differs(default: Any, **changes: Any) -> Any:
    """A setting that a parent of the class has already, with another default."""
    return dataclasses.field(default=default, metadata={"differs": changes})


def inherit(settings_class: type) -> None:
    """Completes the settings of a class that are declared by `differs`. Raises TypeError if no
    parent has the setting."""
    for name, field in list(vars(settings_class).items()):
        if not isinstance(field, dataclasses.Field) or "differs" not in field.metadata:
            continue
        parents = (
            getattr(parent, "__dataclass_fields__", {}) for parent in settings_class.__mro__[1:]
        )
        base = next((fields[name] for fields in parents if name in fields), None)
        if base is None:
            raise TypeError(f"{settings_class.__qualname__}.{name} differs from no parent's")
        metadata = {**base.metadata, **field.metadata["differs"]}
        metadata = {key: value for key, value in metadata.items() if value is not AS_DEFAULT}
        setattr(settings_class, name, dataclasses.field(default=field.default, metadata=metadata))


def parse(
    settings_class: type[Settings],
    argv: Sequence[str] | None = None,
    description: str | None = None,
) -> Settings:
    """Reads a settings dataclass from the command line, one flag a field.

    `learning_rate: float` becomes `--learning-rate`, a `bool` a pair `--flag` / `--no-flag`, a
    `Literal` a choice, a `tuple[int, ...]` several values, and `T | None` also takes `none`.
    The type of a number says what it may be: `Size` is at least 1, `Share` from 0 to 1, `Positive`
    above 0, `Signed` any finite number; a plain `int` or `float` is at least 0 (`zoo.cli.kinds`).
    An unknown flag or a bad value is one line and exit code 2.
    """
    parser = recipe_flags.parser_of(description)
    fields = [field for field in dataclasses.fields(settings_class) if field.init]
    flags = flags_of(settings_class)
    for field, flag in zip(fields, flags, strict=True):
        flag.add(parser, _help(field, flag.is_required))
    given = recipe_flags.given(parser, flags, argv)
    values = {**_variants(fields, given), **given}
    try:
        return settings_class(**values)
    except ValueError as error:  # of __post_init__: a value that is not allowed
        parser.error(str(error))


def flags_of(settings_class: type) -> list[recipe_flags.Flag]:
    """The flags of a settings dataclass."""
    hints = typing.get_type_hints(settings_class, include_extras=True)
    return [
        _flag_of(field, hints[field.name])
        for field in dataclasses.fields(settings_class)
        if field.init
    ]


def _flag_of(field, hint):
    """The flag of a field; its type hint decides on choices, pairs of flags and several values."""
    kind, choices = hint, None
    may_be_none = typing.get_origin(hint) in (typing.Union, types.UnionType)
    if may_be_none:
        (kind,) = [member for member in typing.get_args(hint) if member is not type(None)]
    has_many = typing.get_origin(kind) is tuple
    if has_many:
        kind = typing.get_args(kind)[0]
    kind, bounds = kind_of(kind)
    if typing.get_origin(kind) is Literal:
        choices = list(typing.get_args(kind))
        kind = type(choices[0])
    return recipe_flags.Flag(
        "--" + field.name.replace("_", "-"),
        kind.__name__,
        choices,
        has_many,
        may_be_none,
        bare=field.metadata.get("const"),
        is_required=field.default is field.default_factory is dataclasses.MISSING,
        bounds=bounds,
    )


def _help(field, required):
    """The help of a flag: its text, then its default, its toy and smoke values and its source."""
    metadata = field.metadata
    default = field.default
    if default is dataclasses.MISSING and not required:
        default = field.default_factory()
    values = ["required"] if required else _as_typed(default)
    values += [f"{metadata['toy']} on the toy data"] if "toy" in metadata else []
    values += [f"{metadata['smoke']} with --smoke"] if "smoke" in metadata else []
    values += [f"source: {metadata['source']}"] if metadata.get("source") else []
    text = metadata.get("help", "")
    text = f"{text} ({'; '.join(values)})".strip() if values else text
    return text.replace("%", "%%")  # argparse formats it


def _as_typed(default):
    """What to say of a default, in the words of the command line; nothing of an empty one."""
    if isinstance(default, tuple):
        default = " ".join(map(str, default))
    return [] if default == "" else [f"default {'none' if default is None else default}"]


def _variants(fields, given):
    """The values that replace defaults: `toy` without `--data-dir`, then `smoke` with `--smoke`."""
    values = {}
    names = {field.name for field in fields}
    if "data_dir" in names and given.get("data_dir") is None:
        values.update({f.name: f.metadata["toy"] for f in fields if "toy" in f.metadata})
    if given.get("smoke"):
        values.update({f.name: f.metadata["smoke"] for f in fields if "smoke" in f.metadata})
    return values
