"""Where lines end, the same in every text file, table and flag."""

import io


def lines_of(text: str) -> list[str]:
    r"""The lines of a text without their ends: `\n`, `\r\n` and `\r` end a line, nothing else.

    `str.splitlines` also ends lines at U+2028, U+2029, U+0085 and the separators of ASCII, which
    are ordinary characters of a caption.

    ```python
    from zoo.files.lines import lines_of

    lines_of("a cat\r\na\u2028dog\n")  # ["a cat", "a\u2028dog"]
    ```
    """
    return [line.removesuffix("\n") for line in io.StringIO(text, newline=None)]
