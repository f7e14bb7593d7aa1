"""Order ids as people type them, and as the shop keeps them.

An id is text (`00123` and `123` are two orders) and has one spelling, which `normalise_order_id`
gives. Only what people do not see or mean is evened out: spaces, case, full-width forms, kinds of
dashes. A letter of another alphabet stays what it is, so that no id ever turns into another one's.
"""

import unicodedata
from typing import Annotated

from pydantic import AfterValidator

LONGEST = 64
_LONGEST_TYPED = 1024


def normalise_order_id(text: str) -> str:
    """The one spelling of an order id: `" #a‑17 "` gives `"A-17"`.

    Raises ValueError, with a sentence, where no id is left, where it is longer than 64 characters
    and where it holds control characters. Normalising twice is the same as once.
    """
    if len(text) > _LONGEST_TYPED:
        raise ValueError(f"An order id has at most {LONGEST} characters.")
    before, normal = "", text
    while before != normal:
        before, normal = normal, _pass(normal)
    if not normal:
        raise ValueError("An order id is needed, and none is there.")
    if len(normal) > LONGEST:
        raise ValueError(f"An order id has at most {LONGEST} characters.")
    if any(unicodedata.category(c) in ("Cc", "Cs") for c in normal):
        raise ValueError("An order id cannot hold control characters.")
    return normal


OrderId = Annotated[str, AfterValidator(normalise_order_id)]
"""An order id in a pydantic model or a tool's parameters, normalised when it is read."""


def _pass(text: str) -> str:
    composed = unicodedata.normalize("NFC", text)
    return unicodedata.normalize("NFC", "".join(map(_character, composed))).lstrip("#№")


def _character(c: str) -> str:
    form, _, plain = unicodedata.decomposition(c).partition(" ")
    if form in ("<wide>", "<narrow>"):
        c = chr(int(plain, 16))
    category = unicodedata.category(c)
    if c.isspace() or category == "Cf" or "VARIATION SELECTOR" in unicodedata.name(c, ""):
        return ""
    if category == "Pd" or c == "\N{MINUS SIGN}":
        return "-"
    if category == "Nd":
        return str(unicodedata.decimal(c))
    # "ı", "ſ" and "ß" have capitals that belong to other letters.
    return c.upper() if c.upper().lower() == c else c
