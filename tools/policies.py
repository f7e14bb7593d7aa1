"""The shop's policy as a tool: what it says about a topic, word for word."""

from typing import Annotated

from pydantic import AfterValidator, WithJsonSchema

from tools.policy import OWN, sections
from tools.tool import BadDeclaration, Context, Translated, Verbatim, tool

if not sections():
    raise BadDeclaration("The policy has no section: take get_policy out of tools/registry.py.")


def _known(topic: str) -> str:
    if topic not in sections():
        raise ValueError(f"the topics are {', '.join(sections())}")
    return topic


_TITLES = {id_: section[OWN].title for id_, section in sections().items()}
Topic = Annotated[
    str,
    AfterValidator(_known),
    WithJsonSchema(
        {
            "type": "string",
            "enum": list(_TITLES),
            "description": "; ".join(f"{id_}: {title}" for id_, title in _TITLES.items()),
        }
    ),
]


class Policy(Translated):
    """One section as the shop wrote it, with the version of the file that it stands in."""

    topic: str
    version: str
    text: Verbatim


@tool(subject="topic", required=("text",), sentence="{text}")
async def get_policy(ctx: Context, topic: Topic) -> Policy:
    """The shop's policy: a section of its terms for every customer, word for word.

    The text of its card is exactly `{text}`, without another word.
    """
    section = sections()[topic]
    return Policy(
        topic=topic,
        version=section[OWN].version,
        text=section[OWN].text,
        translations={
            language: {"version": document.version, "text": document.text}
            for language, document in section.items()
            if language != OWN
        },
    )
