"""A message as sentences of plain words in which `#` stands for an id and `##` for several.

The words are lower case, contractions are spelled out, near misses of the words that matter are
corrected. So a phrase of the lexicon can be looked for as it stands in its file.
"""

from dataclasses import dataclass, field
from functools import lru_cache

from offline_model.ids import mark_ids
from offline_model.lexicon import Lexicon
from offline_model.tokens import Token, tokens


@dataclass
class Group:
    """Ids named side by side; `owned` holds the last one with an 's."""

    ids: list[str]
    owned: list[str] = field(default_factory=list)


@dataclass
class Sentence:
    """`words` with the groups that its `#` and `##` stand for, in order."""

    words: list[str] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    question: bool = False


@dataclass(frozen=True)
class Message:
    sentences: list[Sentence]
    excluded: list[str]

    @property
    def ids(self) -> list[str]:
        groups = (group for sentence in self.sentences for group in sentence.groups)
        return list(dict.fromkeys(order_id for group in groups for order_id in group.ids))


def read_message(text: str, lexicon: Lexicon) -> Message:
    """The sentences of a message; `excluded` are ids that it names only to leave them out."""
    kept, excluded = _without_slips(mark_ids(tokens(text, lexicon), lexicon), lexicon)
    sentences = [Sentence()]
    for place, token in enumerate(kept):
        if token.kind == "end" and not _is_abbreviation(kept, place, lexicon):
            sentences[-1].question = "?" in token.text
            sentences.append(Sentence())
        elif token.order_id:
            _add_id(sentences[-1], token, lexicon)
        elif token.kind == "owner" and sentences[-1].groups:
            sentences[-1].groups[-1].owned = sentences[-1].groups[-1].ids[-1:]
        elif token.kind in ("word", "mark", "number", "joined", "mixed"):
            sentences[-1].words += _plain_words(token, lexicon)
    return Message([s for s in sentences if s.words], excluded)


def _is_abbreviation(kept: list[Token], place: int, lexicon: Lexicon) -> bool:
    before = kept[place - 1] if place else None
    dotted = kept[place].text == "." and before is not None
    return dotted and before is not None and before.lower in lexicon.ids["abbreviations"]


def _add_id(sentence: Sentence, token: Token, lexicon: Lexicon) -> None:
    order_id = token.order_id or ""
    if group := _open_group(sentence, lexicon):
        group.ids.append(order_id)
        sentence.words[-1] = "##"
    else:
        while sentence.words and sentence.words[-1] in lexicon.ids["dropped"]:
            sentence.words.pop()
        group = Group([order_id])
        sentence.groups.append(group)
        sentence.words.append("#")
    if token.lower.endswith("'s"):  # a single letter keeps its ending
        group.owned = [order_id]


def _open_group(sentence: Sentence, lexicon: Lexicon) -> Group | None:
    """The group that the next id joins: only joints since its last id, and order words behind."""
    words = sentence.words
    step = len(words)
    while step and words[step - 1] in lexicon.ids["nouns"] | lexicon.ids["determiners"]:
        step -= 1
    named = step < len(words)
    joints = step
    while step and words[step - 1] in lexicon.ids["connectors"] | {",", ";", "/", "-", "&"}:
        step -= 1
    if not step or not words[step - 1].startswith("#") or (named and joints == step):
        return None
    del words[step:]
    return sentence.groups[-1]


def _plain_words(token: Token, lexicon: Lexicon) -> list[str]:
    if token.kind == "mark":
        return [] if token.text in "\"'*~#_" else _contracted(token.text, lexicon)
    if token.kind != "word":
        return ["~"]
    return [correct(word, lexicon) for word in _contracted(token.lower, lexicon)]


def _contracted(word: str, lexicon: Lexicon) -> list[str]:
    contractions: dict[str, str] = lexicon.data["words"]["contractions"]
    return contractions.get(word, word.removesuffix("'s").removesuffix("'")).split()


# Slips and exceptions: ids that are named to be left out.


def _without_slips(marked: list[Token], lexicon: Lexicon) -> tuple[list[Token], list[str]]:
    drop: set[int] = set()
    excluded: list[str] = []
    places = [place for place, token in enumerate(marked) if token.order_id]
    for before, place in zip([None, *places], places, strict=False):
        if before is not None and _corrects(marked[before + 1 : place], lexicon):
            drop.update(range(before, place))
        elif _excludes(marked[max(0, place - 3) : place], lexicon):
            drop.add(place)
            excluded.append(marked[place].order_id or "")
    return [token for place, token in enumerate(marked) if place not in drop], excluded


def _corrects(between: list[Token], lexicon: Lexicon) -> bool:
    words = [word for token in between if token.kind == "word" for word in token.lower.split("'")]
    triggers, others = lexicon.ids["corrections"], lexicon.ids["correction_words"]
    return any(word in triggers for word in words) and all(
        word in triggers or word in others or word in ("s", "m") for word in words
    )


def _excludes(before: list[Token], lexicon: Lexicon) -> bool:
    words = [token.lower for token in before if token.text not in ('"', "'", "#")]
    while words and words[-1] in lexicon.ids["dropped"] - lexicon.ids["excluding"]:
        words.pop()
    tails = {" ".join(words[-1:]), " ".join(words[-2:])}
    return bool(tails & lexicon.ids["excluding"])


# Near misses of the words that matter.


@lru_cache(maxsize=4096)
def correct(word: str, lexicon: Lexicon) -> str:
    """The word itself, or the word of the lexicon that it misses by a letter or two."""
    if len(word) < 4 or word in lexicon.known or lexicon.hits(word):
        return word
    targets = lexicon.typo_targets.get(word[0], ())
    allowed = 2 if len(word) > 7 else 1
    near = [(_distance(word, target), target) for target in targets if _alike(word, target)]
    best = min(near, default=(allowed + 1, word))
    return best[1] if best[0] <= allowed else word


def _alike(word: str, target: str) -> bool:
    return abs(len(word) - len(target)) < 3


def _distance(left: str, right: str) -> int:
    """Edits between two words; two letters that changed places count as one."""
    rows = [list(range(len(right) + 1))]
    for i, a in enumerate(left, 1):
        row = [i]
        for j, b in enumerate(right, 1):
            cost = min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                cost = min(cost, rows[-2][j - 2] + 1)
            row.append(cost)
        rows.append(row)
    return rows[-1][-1]
