"""What a customer wants to be done, told from what they only ask or tell about it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from offline_model.clauses import Clause
from offline_model.lexicon import AMOUNT, SPACELESS, Hit, Lexicon, folded
from offline_model.message import read_message

SOME = {"amount": ""}  # a part of the sum, and nobody said which
LONGEST = 800  # characters of the customer's own words in an argument


@dataclass(frozen=True)
class Deed:
    """A request of the lexicon, of some orders or a scope of them as an `Ask` has it.

    `given` is what was said of it, by the name of the argument that takes it.
    """

    kind: str
    ids: tuple[str, ...] = ()
    scope: str = ""
    given: dict[str, str] = field(default_factory=dict)


def wished(kind: str, part: Clause, parts: Sequence[Clause], lexicon: Lexicon) -> bool:
    """Whether a clause wants a deed done: it asks nothing, supposes nothing, denies nothing.

    What is asked politely ("can you …?") is wanted. So is what stands beside the question that a
    question mark belongs to.
    """
    hit = _hit(kind, part)
    before, until = part.up_to(hit.start), part.up_to(hit.end)
    if lexicon.wish["asking"].search(until) or lexicon.wish["denied"].search(before):
        return False
    if kind == "person" or lexicon.wish["polite"].search(part.text):
        return True
    others = [other for other in parts if other.sentence == part.sentence and other is not part]
    explained = any(other.has("topic", "compare") for other in others)
    return not lexicon.wish["doubtful"].search(part.text) and (explained or not part.question)


def deeds_of(
    kind: str, ids: Sequence[str], scope: str, part: Clause, lexicon: Lexicon
) -> list[Deed]:
    """The deed that a clause wants, one for each order where it says something of each."""
    about, hit = _given(kind, part, lexicon), _hit(kind, part)
    if len(ids) > 1 and len(about) == len(ids):
        pairs = zip(ids, about, strict=True)
        return [Deed(kind, (order_id,), "", said) for order_id, (_, said) in pairs]
    behind = [said for place, said in about if place >= hit.start] + [said for _, said in about]
    share = any(value.raw.endswith("%") for value in part.values)
    if not behind and kind == "refund" and (share or lexicon.wish["part"].search(part.text)):
        behind = [SOME]
    return [Deed(kind, tuple(ids), scope, behind[0] if behind else {})]


def filled(deeds: Sequence[Deed], parts: Sequence[Clause], lexicon: Lexicon) -> list[Deed]:
    """The deeds, those without an address or amount with the only one that the message names."""
    found: list[Deed] = []
    for deed in deeds:
        said = [each for part in parts for _, each in _given(deed.kind, part, lexicon)]
        alone = len(said) == 1 and not any(d.given for d in deeds if d.kind == deed.kind)
        found.append(replace(deed, given=said[0]) if alone else deed)
    return found


def _hit(kind: str, part: Clause) -> Hit:
    return next(hit for hit in part.hits if (hit.mark.kind, hit.mark.name) == ("request", kind))


def _given(kind: str, part: Clause, lexicon: Lexicon) -> list[tuple[int, dict[str, str]]]:
    """The addresses or amounts of a clause with their places in the sentence."""
    found: list[tuple[int, dict[str, str]]] = []
    places = re.finditer(r"(?<!\S)~(?!\S)", part.sentence)
    here = [place.start() for place in places if place.start() >= part.start]
    for start, value in zip(here, part.values, strict=False):
        raw, behind = _joined(value.raw), part.sentence[start + 1 :].lstrip() + " "
        if kind == "change" and value.kind == "place":
            found.append((start, {"address": printable(raw).strip(" \t,;:.\"'“”„«»「」")}))
        elif kind == "refund" and value.kind == "money":
            code = lexicon.currency(folded(raw))
            found.append((start, {"amount": _decimal(raw), **({"currency": code} if code else {})}))
        elif kind == "refund" and re.fullmatch(AMOUNT, raw) and lexicon.wish["of"].match(behind):
            found.append((start, {"amount": _decimal(raw)}))
    return found


def reason(text: str, order_id: str, lexicon: Lexicon) -> str:
    """Why, in the customer's own words; a short neutral sentence where they gave no reason."""
    found = next(_reasons(text[max(text.find(order_id), 0) :], lexicon), "")
    found = found or next(_reasons(text, lexicon), "") or lexicon.data["writes"]["reason"]
    return printable(found)[:LONGEST]


def _reasons(text: str, lexicon: Lexicon) -> Iterator[str]:
    pieces = re.split(r"([.!?;\n。！？；]+|[,，](?!\d))", text)
    for place in range(0, len(pieces), 2):
        piece, plain = pieces[place], _plain(pieces[place], lexicon)
        if why := lexicon.because.search(folded(piece)):
            yield _until_request(piece[why.end() :], lexicon)
        elif lexicon.complaints.search(plain) and not _requests(piece, lexicon):
            yield piece.strip()


def _until_request(piece: str, lexicon: Lexicon) -> str:
    for joint in lexicon.joint.finditer(folded(piece)):
        if _requests(piece[joint.end() :], lexicon):
            return piece[: joint.start()].strip()
    return piece.strip()


def _requests(piece: str, lexicon: Lexicon) -> bool:
    return any(hit.mark.kind == "request" for hit in lexicon.hits(_plain(piece, lexicon)))


def _plain(piece: str, lexicon: Lexicon) -> str:
    return " ".join(read_message(piece, lexicon).sentences)


def printable(text: str) -> str:
    """A text on one line."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _joined(raw: str) -> str:
    """As typed: the characters that were set apart stand together again."""
    return re.sub(rf"(?:^| )({SPACELESS})(?: |$)", r"\1", raw)


def _decimal(raw: str) -> str:
    """The number in "1.200,50 €" as "1200.50": a sign before the last one or two is the point."""
    number = "".join(re.findall(AMOUNT, raw)[:1])
    whole, _, cents = re.sub(r"[.,](\d{1,2})$", r"~\1", number).partition("~")
    return re.sub(r"\D", "", whole) + (f".{cents}" if cents else "")
