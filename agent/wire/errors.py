"""What a vendor's error means.

The vendor's own text is never passed on: it may repeat the request, or the key.
"""

from agent.wire.assemble import StreamInterrupted

SCHEMA_WORDS = (
    *("response_format", "json_schema", "text.format", "structured output", "grammar"),
    *("response mime type", "json mode", "output_config", "output format"),
)
REFUSALS = (400, 404, 405, 422, 501)  # of the request as it is, not for now


class ModelUnavailable(Exception):
    """The model could not be asked, or answered with an error; nothing of it was used."""


def reason(error: Exception) -> str:
    """Why the model gave no response, in a sentence."""
    if isinstance(error, StreamInterrupted):
        return f"The model's response cannot be used: {error}"
    status = status_of(error)
    if status in (401, 403):
        return f"The model's server refused the key (HTTP {status})."
    if status is not None:
        return f"The model's server answered with an error (HTTP {status})."
    return f"The model could not be reached ({type(error).__name__})."


def status_of(error: Exception) -> int | None:
    """The HTTP status of an answer that was an error; None where there was no answer."""
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else None


def forgotten(error: Exception) -> bool:
    """Whether the vendor no longer has the response that a request builds on, or keeps none."""
    if getattr(error, "code", None) == "previous_response_not_found":
        return True
    named = _says(error, "previous_response", "previous response")
    return named or (_says(error, "resp_") and _has(error, "not found"))


def keeps_nothing(error: Exception) -> bool:
    """Whether it says that it never will: no such parameter, or an organisation without storage."""
    return forgotten(error) and not _has(error, "not found", "expired", "deleted")


def refuses_schema(error: Exception) -> bool:
    """Whether the server has no place for an answer schema, or none beside tools.

    The words are those of OpenAI, vLLM, llama.cpp, Gemini and Groq; some say so as an error of
    their own.
    """
    return status_of(error) is not None and _has(error, *SCHEMA_WORDS)


def refuses_reasoning(error: Exception) -> bool:
    """Whether it cannot read reasoning of the history: another server's, or another key's."""
    return _says(error, "encrypted content", "encrypted_content", "'rs_", "reasoning item")


def _says(error: Exception, *words: str) -> bool:
    return status_of(error) in REFUSALS and _has(error, *words)


def _has(error: Exception, *words: str) -> bool:
    said = str(error).lower()
    return any(word in said for word in words)
