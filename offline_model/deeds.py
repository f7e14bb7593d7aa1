"""What a customer wants to be done, told from what they only ask or tell about it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from offline_model.amounts import SOME, Said, amounts, hinted, shares, values
from offline_model.clauses import Clause
from offline_model.lexicon import ID, Hit, Lexicon, folded
from offline_model.message import read_message

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
    hit = _hits(kind, part)[0]
    if lexicon.wish["asking"].search(part.up_to(hit.end)) or denied(kind, part, lexicon):
        return False
    if lexicon.wish["provided"].search(part.sentence):
        return False
    if kind == "person" or lexicon.wish["polite"].search(part.text):
        return True
    others = [other for other in parts if other.sentence == part.sentence and other is not part]
    explained = any(other.has("topic", "compare") for other in others)
    return not lexicon.wish["doubtful"].search(part.text) and (explained or not part.question)


def denied(kind: str, part: Clause, lexicon: Lexicon) -> bool:
    """Whether a clause forbids a deed, rather than asking or telling of it."""
    denials = lexicon.wish["denied"]
    return any(denials.search(part.up_to(hit.start)) for hit in _hits(kind, part))


def deeds_of(
    kind: str, ids: Sequence[str], scope: str, part: Clause, lexicon: Lexicon
) -> list[Deed]:
    """The deed that a clause wants, one for each order where it says something of each."""
    about, hints = _given(kind, part, lexicon)
    said = [each for _, each in about]
    one_each = shares(part) in ("~#" * len(ids), "#~" * len(ids)) and not hints
    if one_each and len(said) == len(ids) > 1:
        pairs = zip(ids, said, strict=True)
        return [Deed(kind, (order_id,), "", each) for order_id, each in pairs]
    if kind == "refund":
        told = all(each == said[0] for each in said) and not hints
        shared = not _several(ids, scope) or lexicon.wish["each"].search(part.said)
        given = said[0] if said and told and shared else SOME if said or hints else {}
    else:
        start = _hits(kind, part)[0].start
        given = next((each for place, each in about if place >= start), (said or [{}])[0])
    return [Deed(kind, tuple(ids), scope, given)]


def once_more(sentences: Sequence[str], lexicon: Lexicon) -> tuple[bool, bool]:
    """Whether sentences want something once more, and whether they say that alone."""
    text, wish = " ".join(sentences), lexicon.wish
    rest = wish["again"].sub("", wish["polite"].sub("", wish["anew"].sub("", text)))
    anew = wish["anew"].search(text) is not None
    return anew, anew and not re.search(rf"[\w~]|{ID}", rest)


def _several(ids: Sequence[str], scope: str) -> bool:
    """Whether a deed is of more than one order, or may be."""
    pairs = ("nth:0:2", "nth:-2:")
    alone = scope in ("", "any") or (scope.startswith("nth:") and scope not in pairs)
    return len(ids) > 1 or not (ids or alone)


def filled(deeds: Sequence[Deed], parts: Sequence[Clause], lexicon: Lexicon) -> list[Deed]:
    """The deeds, those without an address or amount with the only one that the message names.

    A refund is of the whole only where nothing in the message hints at a part of it.
    """
    found: list[Deed] = []
    for deed in deeds:
        alike = [other for other in deeds if other.kind == deed.kind]
        used = [other.given for other in alike if other.given]
        told = [_given(deed.kind, part, lexicon)[0] for part in parts]
        said = [each for about in told for _, each in about if each not in used]
        one = deed.kind != "refund" or (len(alike) == 1 and not _several(deed.ids, deed.scope))
        if len(said) == 1 and one and not used:
            deed = replace(deed, given=said[0])
        elif deed.kind == "refund" and not deed.given:
            others = [part for part in parts if "refund" not in part.named("request")]
            money = any(values(part, "money") or hinted(part, lexicon) for part in others)
            deed = replace(deed, given=SOME if said or money else {})
        found.append(deed)
    return found


def _hits(kind: str, part: Clause) -> list[Hit]:
    return [hit for hit in part.hits if (hit.mark.kind, hit.mark.name) == ("request", kind)]


def _given(kind: str, part: Clause, lexicon: Lexicon) -> tuple[list[Said], bool]:
    """The addresses or amounts of a clause with their places; whether it hints at other amounts."""
    if kind == "refund":
        return amounts(part, lexicon)
    places = values(part, "place") if kind == "change" else []
    cut = " \t,;:.\"'“”„«»「」"
    return [(at, {"address": printable(raw).strip(cut)}) for at, raw in places], False


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
