"""The answer is in the customer's language, by its script and its commonest words."""

import unicodedata
from collections.abc import Iterator

from evals.evaluators.seen import Seen, Wrong
from evals.words import LANGUAGES, words

SCRIPTS = {"LATIN": "Latin", "CYRILLIC": "Cyrillic", "CJK": "Han"}


def language(seen: Seen) -> Iterator[Wrong]:
    text = seen.reading.words
    script = _script(text)
    counts = {
        name: len(words(name).common.findall(text))
        for name in LANGUAGES
        if words(name).script == script
    }
    best = max(counts.values(), default=0)
    likely = [name for name, count in counts.items() if count == best and best]
    if seen.case.language in likely and len(likely) == 1:
        return
    if len(likely) == 1:
        yield Wrong(f"the answer is in {likely[0]}, not in {seen.case.language}")
    else:
        yield Wrong("the language of the answer does not show", "cannot tell")


def _script(text: str) -> str:
    """The script that most letters are of. A Chinese character says more than a letter."""
    counts = dict.fromkeys(SCRIPTS.values(), 0)
    for character in text:
        name = unicodedata.name(character, "").partition(" ")[0] if character.isalpha() else ""
        if name in SCRIPTS:
            counts[SCRIPTS[name]] += 3 if name == "CJK" else 1
    return max(counts, key=counts.__getitem__)
