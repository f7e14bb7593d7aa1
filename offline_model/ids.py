"""Which tokens of a message name orders: each is weighed by its form and the words around it."""

import re

from offline_model.lexicon import Lexicon
from offline_model.tokens import Token

NEVER = -9
NEEDED = 2
NOWHERE = Token("end", "")


def mark_ids(tokens: list[Token], lexicon: Lexicon) -> list[Token]:
    """The tokens, those that name an order with their `order_id`: as the customer wrote it."""
    return _Scale(tokens, lexicon).marked()


class _Scale:
    def __init__(self, tokens: list[Token], lexicon: Lexicon) -> None:
        self.tokens = tokens
        self.words, self.known = lexicon.ids, lexicon.known
        self.nouns = self.words["nouns"] | set(lexicon.data["elsewhere"]["nouns"])
        self.joints = self.words["connectors"] | self.nouns
        self.contractions = lexicon.data["words"]["contractions"]
        words = [t.text for t in tokens if t.kind == "word" and len(t.text) > 1]
        self.shouting = len(words) > 1 and "".join(words).isupper()

    def marked(self) -> list[Token]:
        """Twice over, since an id tells of its neighbours on both sides."""
        scores: dict[int, int] = {}
        for place in [*range(len(self.tokens))] * 2:
            scores[place] = self._score(place)
            token = self.tokens[place]
            token.order_id = self._spelled(place) if scores[place] >= NEEDED else ""
        bare = [t for p, t in enumerate(self.tokens) if t.kind == "number" and scores[p] == NEEDED]
        if any(token.order_id and token not in bare for token in self.tokens):
            for token in bare:  # a number that nothing ties to an order counts only by itself
                token.order_id = ""
        return [t for p, t in enumerate(self.tokens) if not self._swallowed(p)]

    def _swallowed(self, place: int) -> bool:
        """Whether it belongs to the letter before it: "order B 21"."""
        return any(len(self._at(place - back).order_id.split()) > back for back in (1, 2))

    def _spelled(self, place: int) -> str:
        token = self.tokens[place]
        if token.kind == "mixed" and self._prefix(token) in self.nouns:
            return re.split("[-_]", token.raw, maxsplit=1)[1]
        if number := self._number_behind(place):
            between = self.tokens[place + 1].text == "-"
            return f"{token.raw} {'- ' if between else ''}{number}"
        if token.kind == "number":
            return self._completed(place)
        return token.raw[:1] if len(token.base) == 1 else token.raw

    # One method a kind of token: what speaks for an id, less what speaks against it.

    def _score(self, place: int) -> int:
        weigh = getattr(self, f"_{self.tokens[place].kind}", None)
        return int(weigh(place)) if weigh else NEVER

    def _mixed(self, place: int) -> int:
        token = self.tokens[place]
        prefix = self._prefix(token)
        doubtful = prefix in self.words["not_prefixes"] or (
            len(prefix) > 4 and token.text.split("-")[0].islower()
        )
        if self._at(place - 1).base in self.words["others"]:
            return NEVER
        return 0 + self._tied(place) if doubtful and prefix not in self.nouns else 4

    def _joined(self, place: int) -> int:
        token = self.tokens[place]
        digits = sum(map(str.isdigit, token.text))
        if token.lower in self.words["not_ids"] or (digits > 5 and self._foreign(place)):
            return NEVER
        plain = digits > 1 and not self._unit_follows(place)
        return 3 if plain else self._tied(place)

    def _number(self, place: int) -> int:
        token, before = self.tokens[place], self._at(place - 1)
        long = len(token.text) > 2
        counted = self._unit_follows(place) and not (long and token.text.startswith("0"))
        if counted or self._foreign(place) or self._swallowed(place):
            return NEVER
        year = len(token.text) == 4 and token.text[:2] in ("19", "20")
        doubtful = year or before.lower in self.words["number_not_after"]
        listed = 3 * (self._beside(place) and (long or self._completed(place) != token.raw))
        zero = 2 * (long and token.text.startswith("0"))
        return 2 * long + zero - 2 * doubtful + max(3 * bool(self._named(place)), listed)

    def _word(self, place: int) -> int:
        token, before, after = (self._at(place + step) for step in (0, -1, 1))
        letter = token.base
        if len(letter) > 1 or letter == letter.upper():  # not a letter of an alphabet
            return NEVER
        never = letter in self.words["pronouns"] or before.base in self.words["not_before"]
        if never or self._initial(place):
            return NEVER
        apart, owned = self._apart(place), self._owned(place)
        article = letter in self.words["articles"] and not (apart or owned)
        upper = token.text[0].isupper() and not self.shouting
        score = (1 if article else 2) * upper
        score += (
            2 * (apart or owned)
            + self._named(place)
            + 2 * self._beside(place)
            + 3 * bool(self._number_behind(place))
        )
        score += before.base in self.words["before_letter"] or len(self.tokens) < 3
        score += self._goes_on(after) or "'" in token.text
        score -= letter in self.words["chat_letters"] and not upper
        return int(score) - (self._article(place) if article else 0)

    def _article(self, place: int) -> int:
        """What speaks for "a" as an article: its place and the word behind it."""
        token, after = self.tokens[place], self._at(place + 1)
        upper = token.text[0].isupper() and not self.shouting
        inside = upper and self._at(place - 1).kind not in ("end", "mark")
        if upper and self._beside(place):
            return 0
        if self._goes_on(after):
            noun = after.lower in self.words["after_article"]
            others = (t for t in self.tokens if t is not token and len(t.order_id) == 1)
            return int(noun and not inside and not (upper and any(others)))
        return 0 if inside and after.lower in self.known and not after.text.istitle() else 2

    # What stands around.

    def _apart(self, place: int) -> bool:
        """Whether it is a Latin letter among words of another script."""
        near = (self._at(place + step).text for step in (-1, 1))
        return self.tokens[place].text.isascii() and not all(map(str.isascii, near))

    def _owned(self, place: int) -> bool:
        """Whether it stands between "my" and "order"."""
        before, after = self._at(place - 1), self._at(place + 1)
        return before.lower in self.words["owners"] and after.base in self.nouns

    def _at(self, place: int) -> Token:
        return self.tokens[place] if 0 <= place < len(self.tokens) else NOWHERE

    def _prefix(self, token: Token) -> str:
        return re.split("[-_]", token.lower)[0]

    def _goes_on(self, after: Token) -> bool:
        """Whether a sentence goes on with this word behind an id."""
        ends = after.kind in ("end", "mark", "mask")
        return ends or self._first(after) in self.words["after_letter"]

    def _first(self, token: Token) -> str:
        """The word, or the first of those that it contracts."""
        return str(self.contractions.get(token.lower, token.base)).split(" ")[0]

    def _initial(self, place: int) -> bool:
        """A letter of a name: "J. Smith"."""
        dot, after = self._at(place + 1), self._at(place + 2)
        return dot.text == "." and after.text[:1].isupper() and self._first(after) not in self.known

    def _named(self, place: int) -> int:
        """3 behind "#" or in quotes, 2 where "order", "order number:" or the like stands before."""
        before, after = self._at(place - 1).text, self._at(place + 1).text
        if before == "#" or (before == after and before in ('"', "'")):
            return 3
        step = place - 1
        while self._is_glue(self._at(step)):
            step -= 1
        noun = self._at(step)
        if not {noun.base, noun.lower} & self.nouns:
            return 2 * (self._at(step + 1).lower in self.nouns and step + 1 < place)
        as_verb = self._at(step - 1).lower in self.words["verb_before"]
        return 0 if noun.lower in self.words["verb_like"] and as_verb else 2

    def _is_glue(self, token: Token) -> bool:
        if token.kind in ("mark", "end"):
            return token.text in ('"', "'", ":", "#", "(", "-", ".")
        return token.kind == "word" and token.lower in self.words["glue"]

    def _beside(self, place: int) -> bool:
        """Whether it stands in a list: an id before or behind, and only joints between."""
        return self._neighbour(place, -1) is not None or self._neighbour(place, 1) is not None

    def _neighbour(self, place: int, way: int) -> Token | None:
        step = place + way
        while self._joins(self._at(step)):
            step += way
        found, upper = self._at(step), self.tokens[place].text.isupper() and not self.shouting
        return found if found.order_id and (step != place + way or upper) else None

    def _joins(self, token: Token) -> bool:
        if token.kind in ("mark", "owner"):
            return token.text in (*",;/&+-(#\n\"'", "'s")
        return token.kind == "word" and token.lower in self.joints

    def _tied(self, place: int) -> int:
        return self._named(place) + 2 * self._beside(place)

    def _number_behind(self, place: int) -> str:
        """The number of an id that is typed with a space: "order B 21", "order b - 21"."""
        letter, number = self._at(place), self._at(place + 1)
        if number.text == "-":
            number = self._at(place + 2)
        if letter.kind != "word" or len(letter.text) != 1 or number.kind != "number":
            return ""
        near = number.start in (letter.start + 2, letter.start + 4)
        tied = self._named(place) or self._neighbour(place, -1)
        step = self.tokens.index(number)
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
