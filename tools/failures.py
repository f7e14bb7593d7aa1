"""How a tool says that it has no data: each failure becomes the error of its own call."""

from typing import Literal

FailureKind = Literal["not_found", "refused", "timeout", "service_error", "wrong_subject"]


class ToolFailure(Exception):
    """Raised by a tool instead of returning. `message` is written for the model and the customer:

    a sentence without internal names, secrets or anybody else's data.
    """

    kind: FailureKind = "service_error"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class NotFound(ToolFailure):
    """The thing does not exist, or is not this customer's: the two must not be told apart."""

    kind = "not_found"


class Refused(ToolFailure):
    """A rule of the shop says no; the message says which."""

    kind = "refused"


class ServiceError(ToolFailure):
    """The service behind the tool failed; nothing is known about the thing asked for."""


class NotDone(ServiceError):
    """A write that certainly did not reach its service. Any other ServiceError of a write leaves
    open whether it did, and is looked up."""


class WrongSubject(ToolFailure):
    """The service answered about something else than it was asked; none of it may be used."""

    kind = "wrong_subject"
