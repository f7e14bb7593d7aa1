"""How the API says no: one exception that carries its error body."""

from typing import Any


class ApiRefusal(Exception):
    """A request the API does not take; `status` and `body` are what goes back."""

    def __init__(
        self, message: str, *, param: str | None = None, code: str | None = None, status: int = 400
    ) -> None:
        super().__init__(message)
        self.message, self.param, self.code, self.status = message, param, code, status

    @property
    def body(self) -> dict[str, Any]:
        error = {"message": self.message, "type": "invalid_request_error"}
        return {"error": {**error, "param": self.param, "code": self.code}}


def wrong_type(param: str, expected: str, value: Any) -> ApiRefusal:
    message = f"Invalid type for '{param}': expected {expected}, but got {_named(value)} instead."
    return ApiRefusal(message, param=param, code="invalid_type")


def missing(param: str) -> ApiRefusal:
    message = f"Missing required parameter: '{param}'."
    return ApiRefusal(message, param=param, code="missing_required_parameter")


def _named(value: Any) -> str:
    names = {dict: "an object", list: "an array", str: "a string", bool: "a boolean"}
    names |= {int: "an integer", float: "a decimal", type(None): "null"}
    return names.get(type(value), "something else")
