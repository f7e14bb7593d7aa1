"""A message cut into words, numbers and punctuation; what is surely no order id is masked."""

import re
import unicodedata
from dataclasses import dataclass

from offline_model.lexicon import SPACELESS, Lexicon, folded

LONGEST = 8000  # what is read of one message, in characters
TOKEN = re.compile(
    r"""
      (?P<mask>~+) | (?P<quote>\uf8fd+) | (?P<place>\uf8fe+) | (?P<money>\uf8ff+)
    | (?P<mixed>[^\W\d_]{1,10}(?:-[A-Z]{1,10})?[-_]
        (?:\d+(?=[^\W\d_]{3})|\d\w*(?:(?:-\w+)*-\w*\d\w*(?:-[^\W\d_]+)*|(?:-[A-Z]+)*)))
    | (?P<joined>[^\W\d_]{1,3}\d+[^\W\d_]?(?!\w))
    | (?P<number>(?:(?:19|20)\d\d/)?\d+(?:-\d+)*(?!\w))
    | (?P<owner>'s(?!\w))
    | (?P<word>[^\W\d_](?:-[^\W\d_]{2,})+|[^\W\d_]+(?:'[^\W\d_]+)*)
    | (?P<end>[.?!]+|\n\s*\n)
    | (?P<mark>\S|\n)
    """,
    re.VERBOSE,
)
# Links, money, phone numbers, days and times; those with words in them stand in the lexicon.
NO_IDS = (
    r"\S+@\S+\.\w+",
    r"(?<!\w)(?:[a-z]\.){2,}",
    r"(?<![\w.,-])-\d+(?=\s(?:of|for|from|de|por|за|с|по|из)\s)",
    r"https?://\S+|www\.\S+",
    r"[$€£¥₽]\s?\d[\d.,]*|(?<![\w-])\d[\d.,]*\s?[$€£¥₽%]|(?<![\w,-])\d+\.\d+(?!\w)",
    r"\+\d[\d().\x20-]{6,}\d",
    r"(?<![\w-])\(?\d{3}\)?[\x20.-]\d{3}[\x20.-]\d{4}(?!\w)",
    r"(?<![\w-])\d{3}-\d{4}(?![\w-])",
    r"(?<![\w/-])\d{4}-\d{1,2}-\d{1,2}(?![\w-])",
    r"(?<![\w/.-])\d{1,2}([/.])\d{1,2}\1(?:\d{4}|\d{2})(?!\w)",
    r"(?<![\w/-])\d{1,2}/\d{1,2}(?![\w/])",
    r"(?<!\w)\d{1,2}:\d{2}(?::\d{2})?(?!\w)",
)
# In TOKEN, characters of private use stand for what is set apart first: no message holds them.
# What others said: a quotation of more than one word, a line of a mail that is answered.
QUOTED = re.compile(r"\"[^\"\n\s]+\s[^\"\n]+\"|^[ \t]*>.*$", re.MULTILINE)
FOLDED = str.maketrans(
    "№\N{MINUS SIGN}‘’ʼ´`“”„«»「」。、，；：？！（）¿¡", '#-\'\'\'\'\'""""""".,,;:?!()  '
)


@dataclass
class Token:
    """`text` is folded, `raw` as typed; `order_id` is set once it is known for an id."""

    kind: str
    text: str
    raw: str = ""
    start: int = 0
    order_id: str = ""

    @property
    def lower(self) -> str:
        return self.text.lower()

    @property
    def base(self) -> str:
        """The word without its possessive ending."""
        return self.lower.removesuffix("'s").removesuffix("s'")


def tokens(message: str, lexicon: Lexicon) -> list[Token]:
    """The tokens of a message. Characters are folded one to one, so that each knows its `raw`.

    A character of a script without spaces is a word of its own.
    """
    apart = re.sub(SPACELESS, r" \g<0> ", message[:LONGEST])
    kept = [char for char in apart if unicodedata.category(char) != "Cf"]
    masked = _set_apart("".join(map(_plain, kept)), lexicon)
    for pattern in (*NO_IDS, *lexicon.data["ids"]["no_ids"]):
        masked = re.sub(pattern, lambda match: "~" * len(match[0]), masked, flags=re.IGNORECASE)
    return [
        Token(str(found.lastgroup), found[0], "".join(kept[slice(*found.span())]), found.start())
        for found in TOKEN.finditer(masked)
    ]


def _set_apart(text: str, lexicon: Lexicon) -> str:
    """The text with each address, quoted wish and amount of money as one character repeated."""
    for place in lexicon.places.finditer(text):
        if re.search(r"(?<![\w-])\d", place["at"]):
            text = text[: place.start("at")] + "\uf8fe" * len(place["at"]) + text[place.end("at") :]
    text = QUOTED.sub(lambda found: _quoted(found[0], lexicon), text)
    return lexicon.money.sub(lambda found: "\uf8ff" * len(found[0]), text)


def _quoted(text: str, lexicon: Lexicon) -> str:
    """What others ask to be done is no wish of the customer; a question may be."""
    hits = lexicon.hits(" ".join(text.lower().strip('"> ').split()))
    return "\uf8fd" * len(text) if any(hit.mark.kind == "request" for hit in hits) else text


def _plain(char: str) -> str:
    char = folded(char.translate(FOLDED))
    if unicodedata.category(char) == "Pd":
        return "-"
    private = unicodedata.category(char) == "Co"  # in a sentence these stand for ids
    if private or (char.isspace() and char != "\n"):
        return " "
    composed = unicodedata.normalize("NFKC", char)
    return composed if len(composed) == 1 else char
