"""How the API says no: one exception that carries its error body."""

from typing import Any

NAMES = {dict: "an object", list: "an array", str: "a string", bool: "a boolean"}
NAMES |= {int: "an integer", float: "a decimal", type(None): "null"}


class ApiRefusal(Exception):
    """A request the API does not take; `status` and `body` are what goes back."""

    def __init__(
        self, message: str, param: str | None = None, code: str | None = None, status: int = 400
    ) -> None:
        super().__init__(message)
        error = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
        self.status, self.body = status, {"error": error}


def wrong_type(param: str, expected: str, value: Any) -> ApiRefusal:
    got = NAMES.get(type(value), "something else")
    message = f"Invalid type for '{param}': expected {expected}, but got {got} instead."
    return ApiRefusal(message, param, "invalid_type")


def missing(param: str) -> ApiRefusal:
    message = f"Missing required parameter: '{param}'."
    return ApiRefusal(message, param, "missing_required_parameter")


def unsupported(param: str, value: Any, allowed: tuple[str, ...]) -> ApiRefusal:
    *first, last = [f"'{name}'" for name in allowed]
    named = " and ".join(filter(None, [", ".join(first), last]))
    message = f"Invalid value: '{value}'. Supported values are: {named}."
    return ApiRefusal(message, param, "invalid_value")
