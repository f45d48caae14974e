"""The command line: a frozen dataclass is also the flags of a command, and errors are one line.

```python
@dataclass(frozen=True, kw_only=True)
class Settings(zoo.training.RunSettings):
    learning_rate: float = setting(1e-4, "peak learning rate", source="PCME, appendix C.2")
    epochs: int = setting(50, "epochs of fine-tuning", source="PCME, appendix C.2", toy=8, smoke=1)

def main(argv=None):
    settings = parse(Settings, argv, description=__doc__)
    ...

if __name__ == "__main__":
    run(main)
```
"""

import argparse
import dataclasses
import types
import typing
from collections.abc import Sequence
from typing import Any, Literal, TypeVar

from halo_search.cli.parser import (
    OneLineParser,
    naming,
    program,
    run,
    unknown_flag,
    verbosity,
)
from zoo.cli import bounds

__all__ = [
    "AS_DEFAULT",
    "OneLineParser",
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
    kind: str | None = None,
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
        kind: of a number, a key of `zoo.cli.bounds.BOUNDS`, where its name does not say it.
    """
    metadata = {"help": help, "source": source, "identity": identity, "const": const, "kind": kind}
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
    Numbers are looked at by their kind: a size is at least 1, a share from 0 to 1, a rate at
    least 0 (`zoo.cli.bounds`). An unknown flag or a bad value is one line and exit code 2.
    """
    parser = OneLineParser(
        description=description,
        allow_abbrev=False,
        argument_default=argparse.SUPPRESS,  # so that given flags can be told from defaults
    )
    hints = typing.get_type_hints(settings_class)
    fields = [field for field in dataclasses.fields(settings_class) if field.init]
    for field in fields:
        _add_flag(parser, field, hints[field.name])
    namespace, unknown = parser.parse_known_args(argv)
    if unknown:
        parser.error(unknown_flag(unknown[0], [_flag(field) for field in fields]))
    given = vars(namespace)
    values = {**_variants(fields, given), **given}
    try:
        for field in fields:
            if field.name in given:
                kind = field.metadata.get("kind")
                bounds.check(_flag(field), field.name, given[field.name], kind)
        return settings_class(**values)
    except ValueError as error:  # of __post_init__: a value that is not allowed
        parser.error(str(error))


def _add_flag(parser, field, hint):
    """Adds the flag of a field; its type hint decides on choices, pairs of flags and several
    values."""
    kind: Any = hint
    options: dict[str, Any] = {}
    optional = typing.get_origin(hint) in (typing.Union, types.UnionType)
    if optional:
        (kind,) = [member for member in typing.get_args(hint) if member is not type(None)]
    if typing.get_origin(kind) is tuple:
        kind = typing.get_args(kind)[0]
        options.update(nargs="+", action=_Tuple)
    if kind is bool:  # with None as the third value, where neither is given
        options["action"] = argparse.BooleanOptionalAction
    elif typing.get_origin(kind) is Literal:
        options["choices"] = choices = typing.get_args(kind)
        options["type"] = _converter(type(choices[0]), optional)
        options["metavar"] = "{" + ",".join(map(str, choices)) + "}"
        if optional:
            options["choices"] = (*choices, None)
    else:
        options["type"] = _converter(kind, optional)
        options["metavar"] = getattr(kind, "__name__", str(kind)).upper()
    if field.metadata.get("const") is not None:
        options.update(nargs="?", const=field.metadata["const"])
    required = field.default is field.default_factory is dataclasses.MISSING
    parser.add_argument(_flag(field), required=required, help=_help(field, required), **options)


class _Tuple(argparse.Action):
    def __call__(self, parser, namespace, values, option_string=None):
        setattr(namespace, self.dest, tuple(values))


def _converter(kind, optional):
    """The function that reads a flag's text; "none" is None for an optional flag."""

    def convert(text):
        return None if optional and text.lower() == "none" else kind(text)

    convert.__name__ = kind.__name__  # argparse names it in its message
    return convert


def _flag(field):
    return "--" + field.name.replace("_", "-")


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
