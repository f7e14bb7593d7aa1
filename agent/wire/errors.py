"""What a vendor's error means.

The vendor's own text is never passed on: it may repeat the request, or the key.
"""


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


def forgotten(error: Exception) -> bool:
    """Whether the vendor no longer has the response that a request builds on."""
    return getattr(error, "code", None) == "previous_response_not_found"


def refuses_schema(error: Exception) -> bool:
    """Whether the server has no place for an answer schema, or none beside tools."""
    status, said = getattr(error, "status_code", None), str(error).lower()
    names = ("response_format", "json_schema", "text.format", "structured output")
    return status in (400, 404, 422, 501) and any(name in said for name in names)
