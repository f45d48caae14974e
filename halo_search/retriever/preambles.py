"""Takes the words of a search box off a question: "show me photos of …" lowers every score."""

import re

from halo_search.confidence.words import ARTICLES, FUNCTION_WORDS, stems, words_of

_PICTURES = r"(?:photo|picture|pic|image|photograph|shot|snap|snapshot)s?"
# Patterns at the start of a question, in lower case, tried in turn until none fits.
PREAMBLES = (
    r"(?:please|hey|hi|hello|ok|okay|so|and)[,.!]? +",
    r"(?:can|could|would|will) (?:you|we|i)(?: please)? +",
    r"(?:show|find|give|get|bring|fetch|send)(?: me| us) +",
    r"(?:search|look|looking|searching|query) for +",
    r"(?:show|find|list|display|get|see|search|give|open)"
    rf"(?= +(?:all |any |some |every |the |my |our |me |a )*{_PICTURES}\b) +",
    r"(?:find|list|display) +(?:all|any|every|some) +",
    r"(?:i|we)(?: am| are|'m|'re)(?: looking| searching) for +",
    r"(?:i|we)(?: want| need| would like|'d like| wish| would love)"
    r"(?: to (?:see|find|look at|get))? +",
    r"(?:do|did) (?:i|we|you) (?:have|take|own)(?: got)? +",
    r"have (?:i|we|you) (?:got|taken|any) +",
    r"(?:is|are|were|was) there +",
    r"(?:where|which|what) (?:is|are) +",
    rf"(?:which|what) +{_PICTURES} +(?:have|show|contain|include|are of) +",
    rf"(?:which|what) +(?={_PICTURES}\b)",
    r"where (?:can|do) (?:i|we|you) (?:find|see) +",
    rf"(?:all|any|some|every|the|my|our|your|me|us|a|an|this|these|those|more|other)(?: of)?"
    rf"(?: the| my| our)?(?= +{_PICTURES}\b) +",
    rf"{_PICTURES}(?: taken)? +(?:of|with|showing|containing|featuring|from|about|for|at|on|where|"
    r"in which|(?:that|which) (?:show|shows|have|has|contain|contains)|having|including)"
    r"(?: there (?:is|are))? +",
    r"(?:my|our|your) +",
)
ENDINGS = (
    r"[ ,.?!]+$",
    r"[ ,]+(?:please|thanks|thank you)$",
    rf" +(?:in|among|from) (?:this|the|these|those|my|our)(?: own)? (?:{_PICTURES}|gallery|album|"
    r"collection|library|folder)$",
    rf" +{_PICTURES}$",
)
_STARTS = tuple(re.compile(pattern) for pattern in PREAMBLES)
_ENDS = tuple(re.compile(pattern) for pattern in ENDINGS)


def asked_for(text: str) -> str:
    """A question without a search box' preambles and endings, which lower every score; the text
    itself where no word that names something would remain, or there was none to take off."""
    spaced = " ".join(text.split())
    start, end = 0, len(spaced)
    lower = spaced.lower()
    if len(lower) != len(spaced):  # a letter whose lower case is longer: places would not agree
        return text
    is_changed, is_shorter = True, False
    while is_changed:
        is_changed = False
        for pattern in _STARTS:
            match = pattern.match(lower, start, end)
            if match and start < match.end() < end:
                start, is_changed, is_shorter = match.end(), True, True
        for pattern in _ENDS:
            match = pattern.search(lower[:end], start)
            if match and match.start() > start:
                end, is_changed = match.start(), True
                is_shorter = is_shorter or pattern is not _ENDS[0]  # a full stop alone stays
    rest = spaced[start:end]
    is_empty = not any(word not in FUNCTION_WORDS for word in words_of(rest))
    return text if is_empty or not is_shorter else rest


def as_asked(text: str) -> str:
    """A question as a model is asked it: `asked_for`, and a single word without its article."""
    text = asked_for(text)
    words = text.split()
    if len(words) > 1 and words[0].lower() in ARTICLES and len(stems(text)) == len(words) - 1 == 1:
        return " ".join(words[1:])
    return text
