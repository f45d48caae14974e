"""Damaged copies of a file: what a disk, an editor, another program or an attacker makes of it."""

import json

ODD = (None, True, -1, 0, 0.5, 10**400, 2**63, -(2**70), 1e308, "", "\0", "a" * 5000, "../../x")
ODD += ([], {}, [[]], [None] * 50, {"": ""}, "NaN", "\u2028", float("nan"), float("-inf"))
_PIECES = tuple(bytes([one]) for one in b"\0\"',\t;\n\r")
_PIECES += (b"\xff\xfe", b"\xef\xbb\xbf", b"\xe9")
_PIECES += (b"../", b"/etc/passwd", b"NaN", b"-1", b"99999999999999999999", b"1e999", b"[" * 2000)
_PIECES += (b"{", b"}", b"null", b"\xe2\x80\xa8", b"{}\n", b"a" * 150_000, b"\x80" * 40)
_PIECES += (b"%s", b"inf")


def mutated(content, rng):
    """The bytes, damaged in one of several ways.

    Args:
        content: bytes of a file that can be read.
        rng: a `random.Random`.
    """
    ways = [_flip, _cut, _insert, _drop, _repeat, _digits, _swap]
    tree = _tree(content)
    if tree is not None:
        ways += [_json] * len(ways)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        content = rng.choice(ways)(content, rng)
    return content


def _place(content, rng):
    return rng.randrange(len(content) + 1)


def _flip(content, rng):
    damaged = bytearray(content)
    for _ in range(rng.choice((1, 1, 4, 40))):
        if damaged:
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
    return bytes(damaged)


def _cut(content, rng):
    return content[: _place(content, rng)]


def _insert(content, rng):
    place = _place(content, rng)
    return content[:place] + rng.choice(_PIECES) + content[place:]


def _drop(content, rng):
    start = _place(content, rng)
    return content[:start] + content[start + rng.choice((1, 3, 20, 200)) :]


def _repeat(content, rng):
    start = _place(content, rng)
    piece = content[start : start + rng.choice((1, 10, 100))]
    return content[:start] + piece * rng.choice((2, 3, 500)) + content[start:]


def _swap(content, rng):
    a, b = sorted((_place(content, rng), _place(content, rng)))
    return content[b:] + content[a:b] + content[:a]


def _digits(content, rng):
    """Another number where one stands."""
    places = [i for i, byte in enumerate(content) if 48 <= byte <= 57]
    if not places:
        return content
    place = rng.choice(places)
    number = rng.choice((b"-1", b"0", b"999999999999", b"1e308", b"NaN", b"0.5", b'"', b"\xc2\xb2"))
    return content[:place] + number + content[place + 1 :]


def _tree(content):
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def _json(content, rng):
    """Another value, or none, somewhere in the tree."""
    tree = _tree(content)
    if tree is None:
        return _flip(content, rng)
    holders, waiting = [], [tree]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict | list) and value:
            holders.append(value)
            waiting += value.values() if isinstance(value, dict) else value
    odd = rng.choice(ODD)
    if not holders or rng.random() < 0.05:
        return json.dumps(odd).encode()
    holder = rng.choice(holders)
    key = rng.choice(list(holder)) if isinstance(holder, dict) else rng.randrange(len(holder))
    if rng.random() < 0.3:
        del holder[key]
    else:
        holder[key] = odd
    return json.dumps(tree).encode()
