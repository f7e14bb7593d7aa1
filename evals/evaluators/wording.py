"""How an answer is worded: its language, the policy that it quotes, words that it must not hold."""

import unicodedata
from collections.abc import Iterator

from evals.evaluators.seen import Seen, Wrong
from evals.words import LANGUAGES, any_of, words

SCRIPTS = {"LATIN": "Latin", "CYRILLIC": "Cyrillic", "CJK": "Han"}


def policy(seen: Seen) -> Iterator[Wrong]:
    """The shop's policy is quoted word for word."""
    for line in (line for line in seen.policy_text if line not in seen.reading.text):
        yield Wrong(f"“{line}” of the policy {seen.turn.policy} is not quoted")


def forbidden(seen: Seen) -> Iterator[Wrong]:
    for phrase in seen.turn.forbidden:
        if found := any_of([phrase]).search(seen.reading.words):
            yield Wrong(f"“{found[0]}” stands in the answer")


def language(seen: Seen) -> Iterator[Wrong]:
    """The customer's language, by its script and its commonest words."""
    for text in (seen.reading.words, *(each["question"] for each in seen.asked)):
        likely = _languages(text)
        if not text.strip() or likely == [seen.case.language]:  # else only a person speaks now
            continue
        if len(likely) == 1:
            yield Wrong(f"the answer is in {likely[0]}, not in {seen.case.language}")
        else:
            yield Wrong("the language of the answer does not show", "cannot tell")


def _languages(text: str) -> list[str]:
    script = _script(text)
    spoken = [name for name in LANGUAGES if words(name).script == script]
    counts = {name: len(words(name).common.findall(text)) for name in spoken}
    best = max(counts.values(), default=0)
    alone = len(counts) == 1  # no other language is written like that
    return [name for name, count in counts.items() if count == best and (best or alone)]


def _script(text: str) -> str:
    """The script that most letters are of. A Chinese character says more than a letter."""
    counts = dict.fromkeys(SCRIPTS, 0)
    for name in (unicodedata.name(c, "").partition(" ")[0] for c in text if c.isalpha()):
        if name in counts:
            counts[name] += 3 if name == "CJK" else 1
    return SCRIPTS[max(counts, key=counts.__getitem__)]
