"""The sums of money that a clause names, read exactly or not at all."""

import re

from offline_model.clauses import Clause
from offline_model.lexicon import ID, SPACELESS, Lexicon, folded

Said = tuple[int, dict[str, str]]  # what is given for a deed, by argument, and where it is said
SOME = {"amount": ""}  # a sum is meant, and which one is not certain
_EXACT = re.compile(
    r"(?P<whole>0|[1-9][0-9]*|[1-9][0-9]{0,2}(?P<by>[.,'\x20])[0-9]{3}(?:(?P=by)[0-9]{3})*)"
    r"(?:(?!(?P=by))[.,](?P<cents>[0-9]{1,2}))?"
)
_PLAIN = re.compile(r"-?[\d.,' ]+%?")  # and no date or time


def amounts(part: Clause, lexicon: Lexicon) -> tuple[list[Said], bool]:
    """The amounts of a clause with their places in the sentence; whether it hints at others.

    What it only tells of as the whole ("10 of the 58.40 USD") is none, unless it is all there is.
    """
    found: list[Said] = []
    wholes: list[Said] = []
    hints = _vague(part, lexicon)
    for start, raw in values(part, "money", "number", "mask"):
        before, behind = part.up_to(start), part.sentence[start + 1 :].lstrip() + " "
        code, number = lexicon.currency(folded(raw)), decimal(raw, lexicon)
        bare = not re.search(lexicon.coins, folded(raw), re.IGNORECASE)
        named = bool(code) or (bare and lexicon.wish["of"].match(behind) is not None)
        given = {"amount": number, **({"currency": code} if code else {})}
        if number and named and lexicon.wish["whole"].search(before):
            wholes.append((part.start, given))
        elif number and named:
            found.append((start, given))
        else:
            hints = hints or not (bare and _counts(raw, behind, lexicon))
    hints = hints or (not found and hinted(part, lexicon))
    return found or wholes, hints


def _counts(raw: str, behind: str, lexicon: Lexicon) -> bool:
    """Whether a number is that of days or the like, or part of a date."""
    counted = lexicon.wish["counted"].match(behind) is not None
    fraction = "/" in raw and lexicon.wish["of"].match(behind)
    return counted or not (fraction or _PLAIN.fullmatch(raw))


def values(part: Clause, *kinds: str) -> list[tuple[int, str]]:
    """What the "~" of a clause stand for, of some kinds, as typed and with their places."""
    places = re.finditer(r"(?<!\S)~(?!\S)", part.sentence)
    here = [place.start() for place in places if place.start() >= part.start]
    pairs = zip(here, part.values, strict=False)
    return [(place, _joined(value.raw)) for place, value in pairs if value.kind in kinds]


def hinted(part: Clause, lexicon: Lexicon) -> bool:
    """Whether the words of a clause hint at a part of the sum, or at one that is not exact."""
    return _vague(part, lexicon) or bool(lexicon.wish["part"].search(part.said))


def _vague(part: Clause, lexicon: Lexicon) -> bool:
    said = part.said + " "
    coin = re.search(rf"(?<!\S){lexicon.coins}(?!\S)", said, re.IGNORECASE)
    return bool(coin or lexicon.wish["vague"].search(said) or re.search(r"\d", said))


def shares(part: Clause) -> str:
    """The order of values ("~") and orders ("#") in a clause, such as "~#~#"."""
    return re.sub(ID, "#", re.sub(rf"(?!{ID})[^~]", "", part.said))


def decimal(raw: str, lexicon: Lexicon) -> str:
    """The number in "1.200,50 €" as "1200.50"; "" where it can be read in two ways, or in none.

    A lone "1.200" is thousands or thousandths, by what a language takes for its decimal point.
    """
    number = re.sub(lexicon.coins, "", folded(raw), flags=re.IGNORECASE).strip()
    found = _EXACT.fullmatch(number)
    if found is None or not re.search("[1-9]", number):
        return ""
    lone = not found["cents"] and len(re.findall(r"\D", number)) == 1
    if lone and found["by"] == lexicon.data["writes"]["point"]:
        return ""
    return re.sub(r"\D", "", found["whole"]) + (f".{found['cents']}" if found["cents"] else "")


def _joined(raw: str) -> str:
    """As typed: the characters that were set apart stand together again."""
    return re.sub(rf"(?:^| )({SPACELESS})(?: |$)", r"\1", raw)
