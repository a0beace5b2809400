"""The errors with which the service refuses a request.

The codes are gRPC's (https://grpc.io/docs/guides/status-codes/). REST shows the same error as an HTTP
status and a `google.rpc.Status`. The texts were recorded from the real service.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


class Code(IntEnum):
    """The gRPC status codes that Cloud Tasks uses."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    UNAUTHENTICATED = 16


HTTP_STATUS: Final = {
    Code.INVALID_ARGUMENT: 400,
    Code.NOT_FOUND: 404,
    Code.ALREADY_EXISTS: 409,
    Code.PERMISSION_DENIED: 403,
    Code.RESOURCE_EXHAUSTED: 429,
    Code.FAILED_PRECONDITION: 400,
    Code.UNIMPLEMENTED: 501,
    Code.INTERNAL: 500,
}
"""The HTTP status of each code with which a request is refused, from `google/rpc/code.proto`."""

QUEUE_MISSING: Final = (
    "Queue does not exist. If you just created the queue, wait at least a minute for the queue to initialize."
)
ENTITY_MISSING: Final = "Requested entity was not found."
ENTITY_EXISTS: Final = "Requested entity already exists"
TASK_REMOVED: Final = (
    "The task no longer exists, though a task with this name existed recently. "
    "The task either successfully completed or was deleted."
)
QUEUE_EXISTS: Final = "Queue already exists"
QUEUE_TOO_RECENT: Final = "The queue cannot be created because a queue with this name existed too recently."


class RpcError(Exception):
    """The request is refused and changed nothing. `details` are of `google/rpc/error_details.proto`, as JSON."""

    def __init__(self, code: Code, message: str, *details: Mapping[str, Any]) -> None:
        self.code = code
        self.message = message
        self.details = details
        super().__init__(code, message, *details)

    def __str__(self) -> str:
        return f"{self.code.name}: {self.message}"

    @property
    def http_status(self) -> int:
        """The HTTP status of the REST response."""
        return HTTP_STATUS[self.code]


def invalid_argument(message: str, *details: Mapping[str, Any]) -> RpcError:
    """Return the error for an invalid request."""
    return RpcError(Code.INVALID_ARGUMENT, message, *details)


def project_denied(project: str) -> RpcError:
    """Return the error for a parent whose project does not exist, which includes malformed parents."""
    message = f"Permission denied on resource project {project}."
    consumer = {
        "service": "cloudtasks.googleapis.com",
        "consumer": f"projects/{project}",
        "containerInfo": project,
    }
    return RpcError(
        Code.PERMISSION_DENIED,
        message,
        make_detail("ErrorInfo", reason="CONSUMER_INVALID", domain="googleapis.com", metadata=consumer),
        make_detail("LocalizedMessage", locale="en-US", message=message),
        make_help("Google developers console", "https://console.developers.google.com"),
    )


def make_help(description: str, url: str) -> Mapping[str, Any]:
    """Return the error detail with a link to documentation."""
    return make_detail("Help", links=[{"description": description, "url": url}])


def make_detail(kind: str, **fields: object) -> Mapping[str, Any]:
    """Return an error detail: a message of `google/rpc/error_details.proto`, as JSON."""
    return {"@type": f"type.googleapis.com/google.rpc.{kind}", **fields}


def not_found(message: str = ENTITY_MISSING) -> RpcError:
    """Return the error for a missing queue or task."""
    return RpcError(Code.NOT_FOUND, message)
