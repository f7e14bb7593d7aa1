"""A message as sentences of plain words, in which one character stands for each order named.

The words are lower case, contractions are spelled out, near misses of the words that matter are
corrected. So a phrase of the lexicon can be looked for as it stands in its file. Orders named side
by side are one word of several such characters: "where are A-17 and B-21" is "where are XY".
"""

import re
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache

from offline_model.ids import mark_ids
from offline_model.lexicon import FIRST_MARK, ID, Lexicon
from offline_model.tokens import Token, tokens


@dataclass
class Message:
    """`named` are the ids that the characters stand for, `excluded` those to be left out.

    `values` are the tokens that each "~" of the sentences stands for, in order; `questions` tells
    which of the sentences end with a question mark.
    """

    named: list[str] = field(default_factory=list)
    sentences: list[str] = field(default_factory=list)
    questions: list[bool] = field(default_factory=list)
    values: list[Token] = field(default_factory=list)
    excluded: list[str] = field(default_factory=list)

    @property
    def ids(self) -> list[str]:
        return self.ids_in(" ".join(self.sentences))

    def ids_in(self, text: str) -> list[str]:
        """The ids that a text of this message speaks of."""
        return list(dict.fromkeys(self.named[ord(c) - FIRST_MARK] for c in re.findall(ID, text)))

    def char_of(self, order_id: str) -> str:
        if order_id not in self.named:
            self.named.append(order_id)
        return chr(FIRST_MARK + self.named.index(order_id))


@lru_cache(maxsize=256)  # each request brings the conversation again
def read_message(text: str, lexicon: Lexicon) -> Message:
    """The sentences of a message, without slips of the pen and what it names to leave out."""
    message, marked = Message(), mark_ids(tokens(text, lexicon), lexicon)
    words = [_words(token, message, lexicon) for token in marked]
    plain = " ".join(filter(None, words))
    for pattern, replacement in lexicon.rewrites:
        plain = pattern.sub(replacement, plain)
    plain = _without_excluded(plain, message, lexicon)
    plain = lexicon.slips.sub(lambda slip: _corrected(slip, lexicon), plain)
    plain = lexicon.lists.sub("", plain).replace(" 's", "")
    for part, end in re.findall(r"(.*?)(?: (\.\??)(?!\S)|$)", plain, re.DOTALL):
        if part.strip(" .?"):
            message.sentences.append(part.strip())
            message.questions.append(end == ".?")
    return message


def _words(token: Token, message: Message, lexicon: Lexicon) -> str:
    if token.order_id:
        return message.char_of(token.order_id) + (" 's" if token.lower.endswith("'s") else "")
    if token.kind == "word":
        return " ".join(correct(word, lexicon) for word in _contracted(token.lower, lexicon))
    if token.kind == "mark":
        return "" if token.text in "\"'*#_" else " ".join(_contracted(token.text, lexicon))
    if token.kind == "end":
        return ".?" if "?" in token.text else "."
    if token.kind == "owner":
        return token.text
    message.values.append(token)
    return "~"


def _contracted(word: str, lexicon: Lexicon) -> list[str]:
    contractions: dict[str, str] = lexicon.data["words"]["contractions"]
    return contractions.get(word, word.removesuffix("'s").removesuffix("'")).split() or [","]


def _without_excluded(plain: str, message: Message, lexicon: Lexicon) -> str:
    for found in lexicon.exclusions.finditer(plain):
        message.excluded += message.ids_in(found["ids"])
    return lexicon.exclusions.sub("", plain)


def _corrected(slip: re.Match[str], lexicon: Lexicon) -> str:
    return "" if set(slip["between"].split()) & lexicon.ids["corrections"] else slip[0]


@lru_cache(maxsize=4096)
def correct(word: str, lexicon: Lexicon) -> str:
    """The word itself, or the word of the lexicon that it misses by a letter or two."""
    if len(word) < 4 or lexicon.hears(word):
        return word
    targets = [target for target in lexicon.data["words"]["typos"] if target[0] == word[0]]
    return next(iter(get_close_matches(word, targets, 1, 0.8)), word)
