"""The shop's policy as a tool: what it says about a topic, word for word."""

from typing import Annotated, Self

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
    """One section as the shop wrote it, with the version of the file that it stands in.

    The model is sent this much; the section in the language of the answer is read when the card is
    made, so that no request carries a text in every language.
    """

    topic: str
    version: str
    text: Verbatim

    def spoken(self, language: str) -> Self:
        """The section in a language; as it was looked up where that has no file, or where the
        shop's own file has changed since.
        """
        section = sections().get(self.topic, {})
        if language not in section or section[OWN].version != self.version:
            return self
        document = section[language]
        return self.model_copy(update={"version": document.version, "text": document.text})


@tool(subject="topic", required=("text",), sentence="{text}")
async def get_policy(ctx: Context, topic: Topic) -> Policy:
    """The shop's policy: a section of its terms for every customer, word for word.

    The text of its card is exactly `{text}`, without another word.
    """
    section = sections()[topic][OWN]
    return Policy(topic=topic, version=section.version, text=section.text)
