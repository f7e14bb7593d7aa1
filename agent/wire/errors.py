"""What a vendor's error means: read from the exception, without the vendor's text in what is said,

since that may repeat the request or the key.
"""

from collections.abc import Iterator


class ModelUnavailable(Exception):
    """The model could not be asked, or answered with an error; nothing of it was used."""


def reason(error: Exception) -> str:
    """Why the model gave no response, in a sentence."""
    status = getattr(error, "status_code", None)
    if status in (401, 403):
        return f"The model's server refused the key (HTTP {status})."
    if status is not None:
        return f"The model's server answered with an error (HTTP {status})."
    return f"The model could not be reached ({type(error).__name__})."


def broken_off(error: Exception) -> str | None:
    """Why a response that had begun is not whole; None when none had begun."""
    for cause in _causes(error):
        if "complete message body" in str(cause) or type(cause).__name__ == "ReadError":
            return "The connection was lost before the response ended."
        if "No generation" in str(cause):  # what LangChain says of a stream without an event
            return "What the server sent was not a response of a model."
    return None


def forgotten(error: Exception) -> bool:
    """Whether the vendor no longer has the response that a request builds on."""
    return getattr(error, "code", None) == "previous_response_not_found"


def refuses_schema(error: Exception) -> bool:
    """Whether the server has no place for an answer schema, or none beside tools."""
    status, said = getattr(error, "status_code", None), str(error).lower()
    names = ("response_format", "json_schema", "text.format", "structured output")
    return status in (400, 404, 422, 501) and any(name in said for name in names)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__
