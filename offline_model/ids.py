"""Which tokens of a message name orders. An id is passed on as the customer wrote it."""

import re

from offline_model.lexicon import Lexicon
from offline_model.tokens import Token


def mark_ids(tokens: list[Token], lexicon: Lexicon) -> list[Token]:
    """The same tokens, those that name an order with their `order_id`.

    A bare number that nothing ties to an order counts only where no other id is named.
    """
    finder = _Finder(tokens, lexicon)
    for place in range(len(tokens)):
        finder.look(place)
    strong = any(token.order_id and not token.weak for token in finder.tokens)
    return [
        Token(token.kind, token.text, token.raw, token.start) if strong and token.weak else token
        for token in finder.tokens
    ]


class _Finder:
    """Walks over the tokens from left to right: what is an id depends on the words around it."""

    def __init__(self, tokens: list[Token], lexicon: Lexicon) -> None:
        self.tokens = list(tokens)
        self.words = lexicon.ids
        self.known = lexicon.known
        letters = "".join(t.text for t in tokens if t.kind == "word" and len(t.text) > 1)
        self.shouting = letters.isupper()

    def look(self, place: int) -> None:
        token = self.tokens[place]
        look = getattr(self, f"_{token.kind}", None)
        found = look(place) if look else None
        if found is not None:
            weak = token.kind == "number" and not self._tied(place) and not _leading_zero(token)
            self.tokens[place] = token.named(found, weak=weak)

    # One method a kind of token: the id it is, or None.

    def _mixed(self, place: int) -> str | None:
        token = self.tokens[place]
        prefix, _, number = re.split(r"(\s?[-_]\s?)", token.text, maxsplit=1)
        if " " in token.text and not (len(prefix) == 1 and prefix.isupper()):
            return None
        if prefix.lower() in self.words["nouns"] and not prefix.isupper():
            return number
        if self._tied(place):
            return token.raw
        if prefix.lower() in self.words["not_prefixes"] or (len(prefix) > 4 and prefix.islower()):
            return None
        return token.raw

    def _joined(self, place: int) -> str | None:
        token = self.tokens[place]
        if token.lower in self.words["not_ids"]:
            return None
        digits = sum(char.isdigit() for char in token.text)
        plain = digits > 1 and not self._unit_follows(place)
        return token.raw if plain or self._tied(place) else None

    def _number(self, place: int) -> str | None:
        token = self.tokens[place]
        if self._unit_follows(place) or self._foreign(place) or self._number_behind(place - 1):
            return None
        listed = self._listed(place)
        if listed and not self._hashed(place):
            return self._completed(token, listed)
        if self._hashed(place) or self._after_noun(place):
            return None if self._counts(place) else token.raw
        bare = len(token.text) > 2 and not self._priced(place) and not self._year(token)
        return token.raw if bare or (_leading_zero(token) and len(token.text) > 2) else None

    def _word(self, place: int) -> str | None:
        token = self.tokens[place]
        letter = token.base if len(token.base) == 1 else ""
        if letter:
            if behind := self._number_behind(place):
                return f"{token.raw} {behind}"
            return token.raw[:1] if self._is_letter_id(place, letter) else None
        shouted = token.text.isupper() and not self.shouting and len(token.text) < 6
        named = self._after_noun(place) or self._hashed(place)
        return token.raw if shouted and named and token.lower not in self.known else None

    # Single letters.

    def _is_letter_id(self, place: int, letter: str) -> bool:
        token = self.tokens[place]
        if self._hashed(place) or self._quoted(place):
            return True
        if letter in self.words["pronouns"] or self._abbreviation(place):
            return False
        if self._before(place).base in self.words["not_before"]:
            return False
        upper = token.text[0].isupper() and not self.shouting
        if letter in self.words["articles"]:
            return self._article_is_id(place, upper)
        return upper or self._lower_letter(place, letter)

    def _article_is_id(self, place: int, upper: bool) -> bool:
        if self._paired(place):
            return True
        follows = self._ends_or(place, "after_letter")
        if self._listed(place) or self._after_noun(place):
            return follows or (upper and not self._names_something(place + 1))
        if upper and "'" in self.tokens[place].text:
            return True
        return upper and follows

    def _names_something(self, place: int) -> bool:
        """A word that the lexicon does not know, or one with a capital: "Order A Pizza"."""
        after = self._at(place)
        return after.text[:1].isupper() or after.lower not in self.known

    def _lower_letter(self, place: int, letter: str) -> bool:
        if self._after_noun(place):
            return self._ends_or(place, "after_letter")
        if letter in self.words["chat_letters"]:
            return bool(self._listed(place)) and self._ends_or(place, "after_letter")
        if self._paired(place) or self._listed(place):
            return True
        tied = self._before(place).base in self.words["before_letter"]
        return tied and self._ends_or(place, "after_letter")

    def _number_behind(self, place: int) -> str:
        """The number of an id that is typed with a space: "order B 21"."""
        letter, number = self._at(place), self._at(place + 1)
        if letter.kind != "word" or len(letter.text) != 1 or number.kind != "number":
            return ""
        spaced = number.start == letter.start + 2 and not self._unit_follows(place + 1)
        return number.raw if spaced and self._after_noun(place) else ""

    def _paired(self, place: int) -> bool:
        """Whether an id or another single letter follows behind "and" or a comma."""
        joint, other = self._at(place + 1), self._at(place + 2)
        if other.lower in self.words["nouns"] | self.words["connectors"]:
            other = self._at(place + 3)
        letter = len(other.base) == 1 and other.base not in self.words["pronouns"]
        if not self._joins(joint):
            return False
        return other.kind == "mixed" or (other.kind == "word" and letter)

    # What stands around.

    def _at(self, place: int) -> Token:
        return self.tokens[place] if 0 <= place < len(self.tokens) else Token("end", "", "", -1)

    def _before(self, place: int) -> Token:
        return self._at(place - 1)

    def _joins(self, token: Token) -> bool:
        return token.text in (",", ";", "/", "&", "+") or token.lower in self.words["connectors"]

    def _hashed(self, place: int) -> bool:
        return self._before(place).text == "#"

    def _quoted(self, place: int) -> bool:
        around = {self._before(place).text, self._at(place + 1).text}
        return around == {'"'} or around == {"'"}

    def _abbreviation(self, place: int) -> bool:
        """A letter of "e.g." or of "J. Smith"."""
        token, dot, after = (self._at(place + step) for step in range(3))
        dotted = dot.text == "." and dot.start == token.start + 1 and after.kind == "word"
        close = after.start == dot.start + 1 or (token.text.isupper() and after.text[:1].isupper())
        before, letter = self._at(place - 1), self._at(place - 2)
        ends = before.text == "." and before.start == token.start - 1 and len(letter.text) == 1
        return (dotted and close and after.lower not in self.known) or ends

    def _ends_or(self, place: int, words: str) -> bool:
        after = self._at(place + 1)
        return after.kind in ("end", "mark", "mask") or after.base in self.words[words]

    def _after_noun(self, place: int) -> bool:
        """Whether "order", "orders number", "order:" or the like stands before."""
        step = place - 1
        while step >= 0 and self._is_glue(self.tokens[step]):
            step -= 1
        noun = self._at(step)
        if noun.base not in self.words["nouns"] and noun.lower not in self.words["nouns"]:
            return self._at(step + 1).lower in self.words["nouns"] and step + 1 < place
        verb_like = noun.lower in self.words["verb_like"]
        is_verb = verb_like and self._before(step).lower in self.words["verb_before"]
        return not is_verb

    def _is_glue(self, token: Token) -> bool:
        if token.kind in ("mark", "end"):
            return token.text in ('"', "'", ":", "#", "(", "-", ".")
        return token.kind == "word" and token.lower in self.words["glue"]

    def _listed(self, place: int) -> Token | None:
        """The id before, where nothing but the joints of a list lies between."""
        step = place - 1
        while step >= 0 and self._is_list_glue(self.tokens[step]):
            step -= 1
        before = self._at(step)
        return before if before.order_id and step < place - 1 else None

    def _is_list_glue(self, token: Token) -> bool:
        nouns = token.lower in self.words["nouns"] and token.kind == "word"
        if token.kind == "owner":
            return True
        return self._joins(token) or nouns or token.text in ('"', "'", "#", "-", "(")

    def _tied(self, place: int) -> bool:
        hashed, listed = self._hashed(place), self._listed(place)
        return hashed or bool(listed) or self._after_noun(place)

    def _unit_follows(self, place: int) -> bool:
        after = self._at(place + 1)
        if after.text == "-":
            after = self._at(place + 2)
        return after.kind == "word" and after.lower in self.words["units"]

    def _foreign(self, place: int) -> bool:
        """A number of something else: a phone, an account."""
        behind = [self._at(place - step).base for step in range(1, 5)]
        near = self.tokens[max(place - 4, 0) : place]
        return any(
            word in self.words["foreign_numbers"]
            and not any(token.order_id or token.kind == "end" for token in near[-step:])
            for step, word in enumerate(behind, 1)
        )

    def _counts(self, place: int) -> bool:
        """Whether a small number counts what follows: "order 2 lamps"."""
        after, noun = self._at(place + 1), self._before(place).lower
        small = len(self.tokens[place].text) < 3 and noun in self.words["verb_like"]
        return small and after.kind == "word" and after.lower not in self.known

    def _priced(self, place: int) -> bool:
        return self._before(place).lower in self.words["number_not_after"]

    def _year(self, token: Token) -> bool:
        return len(token.text) == 4 and token.text[:2] in ("19", "20")

    def _completed(self, token: Token, listed: Token) -> str | None:
        """The second number of "A-17 and 18" goes with the first one's letters."""
        before = listed.order_id or ""
        match = re.fullmatch(r"(.*[-_])(\d+)", before)
        short = match and len(token.text) == len(match[2]) and len(token.text) < 4
        if match and short and "-" not in token.text:
            return match[1] + token.raw
        return token.raw


def _leading_zero(token: Token) -> bool:
    return token.text.startswith("0")
