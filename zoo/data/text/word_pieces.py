"""BERT's word pieces in Python, with the ids of KerasHub's and TensorFlow Text's in a graph."""

import functools
import re
import unicodedata

MOST = 100  # bytes of a word; a longer one is unknown
# Of the original BERT: all of them are words of their own.
_CJK = re.compile(
    "([\u4e00-\u9fff\u3400-\u4dbf\U00020000-\U0002a6df\U0002a700-\U0002b73f\U0002b740-\U0002b81f"
    "\U0002b820-\U0002ceaf\uf900-\ufaff\U0002f800-\U0002fa1f])"
)
# Unicode's "default ignorable", of those that are neither marks nor format characters.
_IGNORED = re.compile("[\u115f\u1160\u2065\u3164\uffa0\ufff0-\ufff8\U000e0000-\U000e0fff]")
_ASCII = re.compile("[!-/:-@\\[-`{-~]")


class WordPieceIds:
    """Strings to lists of ids: letters lowered and without accents, words cut into the longest
    pieces of the vocabulary from their start. Later pieces of a word begin with `##`."""

    def __init__(self, vocabulary, unknown):
        self._ids = {piece: number for number, piece in enumerate(vocabulary)}
        self._unknown = [self._ids[unknown]]
        self._longest = max(map(len, self._ids))
        self._of_word = functools.lru_cache(1 << 16)(self._pieces)

    def __call__(self, text):
        text = text.partition("\0")[0]  # where TensorFlow Text ends
        text = unicodedata.normalize("NFD", _CJK.sub(r" \1 ", text))
        return [number for word in _words(text) for number in self._of_word(word)]

    def _pieces(self, word):
        word = _folded(word)
        if len(word.encode("utf-8")) > MOST:
            return self._unknown
        found, start, prefix = [], 0, ""
        while start < len(word):
            for end in range(min(len(word), start + self._longest), start, -1):
                number = self._ids.get(prefix + word[start:end])
                if number is not None:
                    break
            else:
                return self._unknown
            found.append(number)
            start, prefix = end, "##"
        return found


def _words(text):
    """Words and marks of punctuation."""
    word = ""
    for letter in text:
        kind = _kind(letter)
        if kind == "letter":
            word += letter
        elif kind != "accent":
            if word:
                yield word
            word = ""
            if kind == "mark":
                yield letter
    if word:
        yield word


@functools.cache
def _kind(letter):
    category = unicodedata.category(letter)
    if category == "Mn":
        return "accent"
    if _ASCII.match(letter) or category[0] == "P":
        return "mark"
    if letter in " \t\n\r\f" or category in ("Cc", "Cf"):
        return "space"
    return "mark" if _CJK.match(letter) else "letter"


def _folded(word):
    """The word in NFKC_Casefold."""
    word = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", word).casefold())
    return _IGNORED.sub("", word)
