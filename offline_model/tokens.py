"""A message cut into words, numbers and punctuation; what is surely no order id is masked.

Characters are folded one to one (dashes, full-width forms, curly quotes), so that every token knows
what the customer really typed.
"""

import re
import unicodedata
from dataclasses import dataclass, replace

from offline_model.lexicon import Lexicon

LONGEST = 8000  # what is read of one message, in characters
TOKEN = re.compile(
    r"""
      (?P<mask>~+)
    | (?P<mixed>[^\W\d_]{1,10}(?:-|\ -\ |_)(?:\d+(?=[^\W\d_]{3})|\d\w*(?:-\w*\d\w*)*))
    | (?P<joined>[^\W\d_]{1,3}\d+[^\W\d_]?(?![\w]))
    | (?P<number>\d+(?:-\d+)*(?![\w]))
    | (?P<owner>'s(?!\w))
    | (?P<word>[^\W\d_]+(?:'[^\W\d_]+)*)
    | (?P<end>[.?!\n]+)
    | (?P<mark>\S)
    """,
    re.VERBOSE,
)
DATES = (
    r"(?<![\w/-])\d{4}-\d{1,2}-\d{1,2}(?![\w-])",
    r"(?<![\w/.-])\d{1,2}([/.])\d{1,2}\1(?:\d{4}|\d{2})(?!\w)",
    r"(?<![\w/-])\d{1,2}/\d{1,2}(?![\w/])",
    r"(?<!\w)\d{1,2}:\d{2}(?::\d{2})?(?!\w)",
    r"(?<!\w)\d{1,2}(?:st|nd|rd|th)(?!\w)",
)
MONEY = (
    r"[$€£¥₽]\s?\d[\d.,]*",
    r"(?<![\w-])\d[\d.,]*\s?[$€£¥₽%]",
    r"(?<![\w,-])\d+\.\d+(?!\w)",
)
PHONES = (
    r"\+\d[\d().\x20-]{6,}\d",
    r"(?<![\w-])\(?\d{3}\)?[\x20.-]\d{3}[\x20.-]\d{4}(?!\w)",
    r"(?<![\w-])\d{3}-\d{4}(?![\w-])",
)
LINKS = (r"\S+@\S+\.\w+", r"https?://\S+", r"www\.\S+")


@dataclass(frozen=True)
class Token:
    """`text` is folded and as typed in case; `order_id` is set once it is known for an id."""

    kind: str
    text: str
    raw: str
    start: int
    order_id: str | None = None
    weak: bool = False

    @property
    def lower(self) -> str:
        return self.text.lower()

    @property
    def base(self) -> str:
        """The word without its possessive ending."""
        return self.lower.removesuffix("'s").removesuffix("s'")

    def named(self, order_id: str, *, weak: bool = False) -> "Token":
        return replace(self, order_id=order_id, weak=weak)


def tokens(message: str, lexicon: Lexicon) -> list[Token]:
    """The tokens of a message."""
    folded, places = _folded(message[:LONGEST])
    masked = _masked(folded, lexicon)
    found = []
    for match in TOKEN.finditer(masked):
        raw = message[places[match.start()] : places[match.end() - 1] + 1]
        found.append(Token(str(match.lastgroup), match[0], raw, match.start()))
    return found


def _folded(message: str) -> tuple[str, list[int]]:
    kept = [(_plain(char), place) for place, char in enumerate(message) if not _unseen(char)]
    return "".join(char for char, _ in kept), [place for _, place in kept]


def _unseen(char: str) -> bool:
    return unicodedata.category(char) == "Cf"


def _plain(char: str) -> str:
    if char in "№":
        return "#"
    if char in "‘’ʼ´`":
        return "'"
    if char in "“”„«»":
        return '"'
    if unicodedata.category(char) == "Pd" or char == "\N{MINUS SIGN}":
        return "-"
    if char.isspace() and char != "\n":
        return " "
    composed = unicodedata.normalize("NFKC", char)
    return composed if len(composed) == 1 else char


def _masked(text: str, lexicon: Lexicon) -> str:
    for pattern in (*LINKS, *MONEY, *PHONES, *DATES, *_worded(lexicon)):
        text = re.sub(pattern, lambda match: "~" * len(match[0]), text, flags=re.IGNORECASE)
    return text


def _worded(lexicon: Lexicon) -> tuple[str, ...]:
    """Days of a month and house numbers: numbers that the words beside them explain."""
    months = "|".join(sorted(lexicon.ids["months"], key=len, reverse=True))
    streets = "|".join(sorted(lexicon.ids["streets"], key=len, reverse=True))
    return (
        rf"(?<![\w-])\d{{1,2}}(?:st|nd|rd|th)?\s(?:of\s)?(?:{months})\b(?:,?\s\d{{4}}\b)?",
        rf"\b(?:{months})\.?\s\d{{1,2}}(?:st|nd|rd|th)?\b(?:,?\s\d{{4}}\b)?",
        rf"\b(?:{months})\s\d{{4}}\b",
        rf"(?<![\w-])\d{{1,4}}\s(?:[^\W\d_]+\s){{1,3}}(?:{streets})\b",
    )
