"""Which tokens of a message name orders: each kind of token has a rule of its own.

mixed    "A-17": always, but "COVID-19" and the like only where they are tied
joined   "a18": likewise, where it has more than one digit and counts nothing
number   "0456" always; "4711" where two of three hold: it is tied, it is long, the word before it
         and its form speak of no amount or year; beside other ids it is tied or asked about
word     "A": a capital; a small letter where it is tied or stands where an id stands; a letter
         that is a word of the language too ("a", "и") where it cannot be that word

A token is tied where it follows "order", "#" or the like, or stands in a list with other ids.
"""

import re

from offline_model.lexicon import Lexicon
from offline_model.tokens import Token

NOWHERE = Token("end", "")


def mark_ids(tokens: list[Token], lexicon: Lexicon) -> list[Token]:
    """The tokens, those that name an order with their `order_id`: as the customer wrote it."""
    return _Marker(tokens, lexicon).marked()


class _Marker:
    def __init__(self, tokens: list[Token], lexicon: Lexicon) -> None:
        self.tokens = tokens
        self.words, self.known = lexicon.ids, lexicon.known
        elsewhere = lexicon.data["elsewhere"]
        self.nouns = self.words["nouns"].union(elsewhere["nouns"])
        self.joints = self.nouns.union(self.words["connectors"], elsewhere["joints"])
        self.contractions = lexicon.data["words"]["contractions"]
        words = [t.text for t in tokens if t.kind == "word" and len(t.text) > 1]
        self.shouting = len(words) > 1 and "".join(words).isupper()
        self.wordless = not any(word.lower() not in self.joints for word in words)

    def marked(self) -> list[Token]:
        """Twice over, since an id tells of its neighbours on both sides."""
        for place in [*range(len(self.tokens))] * 2:
            rule = getattr(self, f"_{self.tokens[place].kind}", None)
            self.tokens[place].order_id = self._spelled(place) if rule and rule(place) else ""
        numbers = [(p, t) for p, t in enumerate(self.tokens) if t.kind == "number"]
        loose = [t for p, t in numbers if not (_padded(t) or self._tied(p) or self._inquired(p))]
        if any(token.order_id and token not in loose for token in self.tokens):
            for token in loose:
                token.order_id = ""
        parts = ((p, range(len(t.order_id.split()))) for p, t in enumerate(self.tokens))
        behind = {p + step for p, steps in parts for step in steps[1:]}  # "order B 21"
        return [t for p, t in enumerate(self.tokens) if p not in behind]

    def _spelled(self, place: int) -> str:
        token = self.tokens[place]
        if token.kind == "mixed" and _prefix(token) in self.nouns:
            return re.split("[-_]", token.raw, maxsplit=1)[1]
        if number := self._number_behind(place):
            between = self.tokens[place + 1].text == "-"
            return f"{token.raw} {'- ' if between else ''}{number}"
        if token.kind == "number":
            return self._completed(place)
        return token.raw[:1] if len(token.base) == 1 else token.raw

    # The rules.

    def _mixed(self, place: int) -> bool:
        token, prefix = self.tokens[place], _prefix(self.tokens[place])
        if self._at(place - 1).base in self.words["others"]:
            return False
        a_word = len(prefix) > 4 and token.text.split("-")[0].islower()
        doubtful = prefix not in self.nouns and (prefix in self.words["not_prefixes"] or a_word)
        return not doubtful or self._tied(place)

    def _joined(self, place: int) -> bool:
        token = self.tokens[place]
        digits = sum(map(str.isdigit, token.text))
        if token.lower in self.words["not_ids"] or (digits > 5 and self._foreign(place)):
            return False
        return (digits > 1 and not self._unit_follows(place)) or self._tied(place)

    def _number(self, place: int) -> bool:
        token, before = self.tokens[place], self._at(place - 1)
        padded = _padded(token)
        if self._foreign(place) or (self._unit_follows(place) and not padded):
            return False
        year = len(token.text) == 4 and token.text[:2] in ("19", "20")
        doubtful = year or before.lower in self.words["number_not_after"]
        return padded or sum((self._tied(place), len(token.text) > 2, not doubtful)) > 1

    def _asked(self, place: int) -> bool:
        """Whether it stands where an id is asked about: "where is 123"."""
        return self._at(place - 1).base in self.words["before_letter"]

    def _inquired(self, place: int) -> bool:
        """Whether the sentence asks about it, and does not only go on with it: "Portland, OR 9"."""
        return self._asked(place) and self._at(place - 1).base not in self.words["connectors"]

    def _word(self, place: int) -> bool:
        token, before = self.tokens[place], self._at(place - 1)
        letter = token.base
        if len(letter) > 1 or letter == letter.upper():  # not a letter of an alphabet
            return False
        never = letter in self.words["pronouns"] or before.base in self.words["not_before"]
        if never or self._initial(place) or self._at(place + 1).kind == "place":
            return False
        if self._apart(place) or self._owned(place) or self._number_behind(place):
            return True
        article = letter in self.words["articles"]
        foreign = article and not letter.isascii()
        if self.wordless and not foreign and letter not in self.words["chat_letters"]:
            return True
        if article:
            return self._no_article(place)
        follows = self._asked(place) or len(self.tokens) < 3
        goes_on = self._goes_on(place) or "'" in token.text
        if letter in self.words["chat_letters"] and not self._capital(place):
            return self._tied(place) and goes_on
        return self._capital(place) or self._tied(place) or (follows and goes_on)

    def _no_article(self, place: int) -> bool:
        """Whether a letter that is a word too is no such word: by its case, place and neighbours.

        "Is A late?" names an order, "A late one" does not, "A late, B not" does.
        """
        before, after = self._at(place - 1), self._at(place + 1)
        begins, capital = before.kind in ("end", "mark"), self._capital(place)
        if not self.tokens[place].text.isascii() and (begins or not capital):
            return capital and not after.order_id and self._neighbour(place, 1) is not None
        if capital and self._beside(place):
            return True
        if not self._goes_on(place):
            inside = capital and not begins and after.lower in self.known
            listed = self._named(place) and bool(after.order_id)
            return listed or (inside and not after.text.istitle())
        introduces = after.lower in self.words["after_article"]
        if capital:
            return not (introduces and begins) or self._tied(place) or self._parallel(place)
        follows = before.base in self.words["before_letter"]
        return self._named(place) or (not introduces and (follows or self._beside(place)))

    # What stands around.

    def _at(self, place: int) -> Token:
        return self.tokens[place] if 0 <= place < len(self.tokens) else NOWHERE

    def _capital(self, place: int) -> bool:
        return self.tokens[place].text[0].isupper() and not self.shouting

    def _apart(self, place: int) -> bool:
        """Whether it is a Latin letter among words of another script."""
        near = (self._at(place + step).text for step in (-1, 1))
        return self.tokens[place].text.isascii() and not all(map(str.isascii, near))

    def _owned(self, place: int) -> bool:
        """Whether it stands between "my" and "order"."""
        before, after = self._at(place - 1), self._at(place + 1)
        return before.lower in self.words["owners"] and after.base in self.nouns

    def _parallel(self, place: int) -> bool:
        """Whether another part begins with a letter: "A delivery, B price"."""
        starts = (p for p, t in enumerate(self.tokens) if p != place and len(t.order_id) == 1)
        return any(self._at(start - 1).kind in ("end", "mark") for start in starts)

    def _goes_on(self, place: int) -> bool:
        """Whether a sentence goes on behind an id as it does here."""
        after = self._at(place + 1)
        ends = after.kind in ("end", "mark", "mask", "quote", "money")
        return ends or self._first(after) in self.words["after_letter"]

    def _first(self, token: Token) -> str:
        """The word, or the first of those that it contracts."""
        return str(self.contractions.get(token.lower, token.base)).split(" ")[0]

    def _initial(self, place: int) -> bool:
        """A letter of a name: "J. Smith"."""
        dot, after = self._at(place + 1), self._at(place + 2)
        return dot.text == "." and after.text[:1].isupper() and self._first(after) not in self.known

    def _tied(self, place: int) -> bool:
        """A short number is no part of a list, unless it goes with the id before it."""
        token = self.tokens[place]
        short = token.kind == "number" and len(token.text) < 3
        listed = not short or self._completed(place) != token.raw
        return self._named(place) or (listed and self._beside(place))

    def _named(self, place: int) -> bool:
        """Whether it stands in quotes, behind "#", or behind "order", "order number:" or such."""
        before, after = self._at(place - 1).text, self._at(place + 1).text
        if before == "#" or (before == after and before in ('"', "'")):
            return True
        step = place - 1
        while self._is_glue(self._at(step)):
            step -= 1
        noun = self._at(step)
        if not {noun.base, noun.lower} & self.nouns:
            return self._at(step + 1).lower in self.nouns and step + 1 < place
        as_verb = self._at(step - 1).lower in self.words["verb_before"]
        return not (as_verb and noun.lower in self.words["verb_like"])

    def _is_glue(self, token: Token) -> bool:
        if token.kind in ("mark", "end"):
            return token.text in ('"', "'", ":", "#", "(", "-", ".")
        return token.kind == "word" and token.lower in self.words["glue"]

    def _beside(self, place: int) -> bool:
        """Whether it stands in a list: an id before or behind, and only joints between."""
        return self._neighbour(place, -1) is not None or self._neighbour(place, 1) is not None

    def _neighbour(self, place: int, way: int) -> Token | None:
        step = place + way
        while self._joins(step):
            step += way
        found, apart = self._at(step), step != place + way
        return found if found.order_id and (apart or self._capital(place)) else None

    def _joins(self, place: int) -> bool:
        """Whether a list goes on: "and", a comma, or a short word of another language."""
        token = self._at(place)
        if token.kind in ("mark", "owner"):
            return token.text in (*",;/&+-(#\n\"'", "'s")
        if token.kind != "word" or token.order_id:
            return False
        foreign = len(token.text) < 6 and token.lower not in self.known
        return foreign or token.lower in self.joints

    def _number_behind(self, place: int) -> str:
        """The number of an id that is typed with a space: "order B 21", "order b - 21"."""
        letter, step = self._at(place), place + 1 + (self._at(place + 1).text == "-")
        number = self._at(step)
        if letter.kind != "word" or len(letter.text) != 1 or number.kind != "number":
            return ""
        near = number.start in (letter.start + 2, letter.start + 4)
        tied = self._named(place) or self._neighbour(place, -1)
        return number.raw if near and tied and not self._unit_follows(step) else ""

    def _unit_follows(self, place: int) -> bool:
        after = self._at(place + 1)
        after = self._at(place + 2) if after.text == "-" else after
        return after.kind == "word" and after.lower in self.words["units"]

    def _foreign(self, place: int) -> bool:
        """A number of something else: a phone, an account."""
        near = self.tokens[max(place - 4, 0) : place]
        ends = [n for n, token in enumerate(near, 1) if token.order_id or token.kind == "end"]
        return any(t.base in self.words["foreign_numbers"] for t in near[max(ends, default=0) :])

    def _completed(self, place: int) -> str:
        """The second number of "A-17 and 18" goes with the first one's letters."""
        number, listed = self.tokens[place], self._neighbour(place, -1)
        match = re.fullmatch(r"(.*[-_])(\d+)", listed.order_id) if listed else None
        short = match is not None and len(number.text) == len(match[2]) < 4
        return match[1] + number.raw if match and short and "-" not in number.text else number.raw


def _prefix(token: Token) -> str:
    return re.split("[-_]", token.lower)[0]


def _padded(token: Token) -> bool:
    return len(token.text) > 2 and token.text.startswith("0")
