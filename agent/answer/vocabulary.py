"""The check of a card's words: all that stands around its values is from a closed vocabulary.

Nothing here judges what a model may not say. What it may say is listed in the language's file, by
the field beside which it may stand: "arrives on" beside a promised date, and beside no other one.
With anything else the card is the tool's own sentence instead, which is right.
"""

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from agent.answer.render import PLACEHOLDER
from tools.locales import Locale, locale

CAPITALS = re.compile(r"\b[A-Z]+\b")
MOST = 2  # times that a card may name a field
# Ordinary punctuation. What could become a part of the value behind it stands apart from that.
SIGNS = r"[,.;:!](?=[\s*]|$)|[()，。：；！（）、]|\*\*|(?<=[\w)}*] )[-–—](?= )|\s"
OPENING = " ,.;:!()，。：；！（）、"


@dataclass(frozen=True)
class Piece:
    """The words between two fields of a template; a field is "" at its ends."""

    before: str
    words: str
    behind: str


def card_allows(template: str, own: str, about: str, speech: Locale) -> bool:
    """Whether the words of a card state nothing of their own.

    own: the tool's own sentence for this result: what it says of a field, a card may say of it too.
    about: the field that says what the card is about; "Total of order {order_id}: {total}" names
        the total before it.
    """
    typed, pieces = PLACEHOLDER.sub(" ", template), _pieces(template)
    named = Counter(piece.behind for piece in pieces)
    return (
        max(named.values()) <= MOST
        and all(piece.words.strip("*") for piece in pieces[1:-1])  # two values stay two
        and not CAPITALS.search(typed)  # "TOTAL" may be another order
        and all(
            _vocabulary(speech.name, _beside(place, pieces, about)).fullmatch(_rest(piece, own))
            for place, piece in enumerate(pieces)
        )
    )


def _pieces(template: str) -> list[Piece]:
    plain = " ".join(unicodedata.normalize("NFC", template).split())
    parts = ["", *PLACEHOLDER.split(plain), ""]
    ends = zip(pairwise(parts[::2]), parts[1::2], strict=True)
    return [Piece(before, words.casefold(), behind) for (before, behind), words in ends]


def _beside(place: int, pieces: list[Piece], about: str) -> frozenset[str]:
    """The fields on both sides of a piece, and the ones beyond the field that it is all about."""
    piece, names = pieces[place], set[str]()
    if piece.before == about and place:
        names.add(pieces[place - 1].before)
    if piece.behind == about and place + 1 < len(pieces):
        names.add(pieces[place + 1].behind)
    return frozenset({piece.before, piece.behind, *names})


def _rest(piece: Piece, own: str) -> str:
    """The words of a piece that the tool's own sentence does not say of the same field."""
    words = piece.words
    for each in _pieces(own):
        if each.behind == piece.behind != "" and each.words.strip(OPENING):
            words = words.removesuffix(each.words.lstrip(OPENING))
        elif each.before == piece.before and each.words == words:
            words = " "
    return ("}" if piece.before else "") + words + ("{" if piece.behind else "")


@cache
def _vocabulary(language: str, beside: frozenset[str]) -> re.Pattern[str]:
    """A piece that is made of the words of a language which may stand beside these fields."""
    check = locale(language).data["check"]
    listed = [word for name in ("any", *beside) for word in check["card"].get(name, ())]
    words = sorted(map(str.casefold, listed), key=len, reverse=True)
    ends = (r"(?<![\w}])", r"(?![\w{])") if check["spaces"] else ("", "")
    bounded = [re.escape(word).join(ends if word[0].isalnum() else ("", "")) for word in words]
    return re.compile(rf"\}}?(?:{'|'.join([*bounded, SIGNS])})*+\{{?")
