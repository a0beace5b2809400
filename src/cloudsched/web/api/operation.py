"""``@operation``: make a function an operation of the API, as the router, the checks and OpenAPI need it.

Each takes an `ApiCall`: one request, authenticated, with its path parsed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypedDict, TypeVar, Unpack, overload

from werkzeug.wrappers import Response

from cloudsched.domain.documents.document import WireModel
from cloudsched.errors import Forbidden, NotFound
from cloudsched.web.api import request_bodies as bodies
from cloudsched.web.api.parse import read_json_object, validate_model
from cloudsched.web.api.request_bodies import NoParameters
from cloudsched.web.auth.authentication import is_open_to
from cloudsched.web.auth.roles import Caller, Right, Role

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from werkzeug.wrappers import Request, Response

    from cloudsched.app import App
    from cloudsched.engine.authority import Authority
    from cloudsched.web.api.visibility import Visibility


@dataclass(frozen=True, slots=True)
class ApiCall:
    """One request, authenticated, with its path parsed."""

    app: App
    """The app, with tasks that the caller may not use hidden."""
    caller: Caller
    authority: Authority
    """The caller's rights below. The app has them as well."""
    visibility: Visibility
    """Checks which tasks the request may use."""
    request: Request
    path: dict[str, str]
    render_document: Callable[[str], tuple[bytes, str]]
    """Returns the OpenAPI document, as text, and its ETag. It needs all operations, so none can import it."""

    @property
    def task_id(self) -> str:
        """Return the id of the task in the path."""
        return self.path["taskId"]

    @property
    def public_root(self) -> str | None:
        """Return the beginning of links to the API. None if no public address is configured.

        A request's ``Host`` is only a claim of its sender. A link made of it could lead anywhere, with the
        secret in the link. It counts only where the API is open, and then names this machine.
        """
        settings = self.app.container.settings
        if settings.public_url:
            return settings.public_url
        return self.request.url_root.rstrip("/") if is_open_to(settings, self.request) else None

    def read_content(self) -> dict[str, Any]:
        """Return the body, which is one JSON object."""
        return read_json_object(self.request)

    def require_admin(self, what: str) -> None:
        """Raise Forbidden for all but admins."""
        if self.caller.role is not Role.ADMIN:
            raise Forbidden(f"Only an admin may {what}.")


EVENT_STREAM: Final = "text/event-stream"
M = TypeVar("M", bound=WireModel)

TAGS: Final = {
    "Tasks": "Create, read, change and delete tasks.",
    "Executions": "What has run, what will run, and running it again.",
    "Events": "Send events to durable handlers.",
    "Workers": "Claim work from a queue and report on it.",
    "Inboxes": "Read the messages that tasks have delivered.",
    "People": "How owners want to be reached.",
    "Links": "What people open from a mail, without signing in.",
    "Calendars": "Show tasks in the calendars that people have.",
    "Scripts": "Store JavaScript that an owner's tasks run by name.",
    "Schedules": "Try schedules out before using them.",
    "Usage": "What was used, and how much of it owners may use.",
    "Service": "Health, and the description of this API.",
}
"""The groups of operations, in the order in which they are shown."""


class Preset(TypedDict, total=False):
    """The options that a group of operations may share."""

    right: Right | None
    accepts_idempotency_key: bool
    is_conditional: bool
    error_statuses: tuple[int, ...]


class OperationOptions(Preset, total=False):
    """The options of `operation` besides the method, the path, the tag and the models. See `Operation`."""

    content: type[WireModel] | None
    body_is_optional: bool
    is_link: bool
    is_patch: bool
    success_statuses: tuple[int, ...]
    response_schema: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation of the API: a function, and the facts that callers must know about it."""

    function: Callable[..., Response]
    """Takes the call, and its query or its body if the operation has a model of one."""
    method: str
    path: str
    tag: str
    """The group that it is listed in. See `TAGS`."""
    right: Right | None
    """The right that the caller needs. None for a public operation."""
    query: type[WireModel] | None = None
    body: type[WireModel] | None = None
    """The model of the request's JSON object, if the function is called with an instance of it."""
    content: type[WireModel] | None = None
    """The model that describes the request's JSON object, if the function reads and checks it itself."""
    body_is_optional: bool = False
    is_link: bool = False
    """True if people or their programs open it by a link, whose secret is the only proof that it needs.
    Where the API is private, a separate function serves such operations."""
    is_patch: bool = False
    """True if the body is a JSON merge patch."""
    accepts_idempotency_key: bool = False
    """True if ``Idempotency-Key`` makes it safe to repeat."""
    is_conditional: bool = False
    """True if it evaluates ``If-Match``."""
    success_statuses: tuple[int, ...] = (200,)
    response_schema: str | None = None
    """The schema of a successful response."""
    error_statuses: tuple[int, ...] = ()
    """The statuses of its problems besides those that every operation has."""

    @property
    def name(self) -> str:
        """Return the operation's id in OpenAPI: the function's name."""
        return self.function.__name__

    @property
    def summary(self) -> str:
        """Return its summary: the first paragraph of the function's docstring."""
        return _join_lines((self.function.__doc__ or "").partition("\n\n")[0])

    @property
    def description(self) -> str:
        """Return its description in CommonMark: the rest of the function's docstring."""
        return _join_lines((self.function.__doc__ or "").partition("\n\n")[2])

    @property
    def parameters(self) -> type[WireModel]:
        """Return the model of the query parameters."""
        return self.query or NoParameters

    @property
    def body_schema(self) -> type[WireModel] | None:
        """Return the model that describes the request's JSON object, whoever checks it."""
        return self.body or self.content

    def respond(self, call: ApiCall, query: WireModel) -> Response:
        """Run the operation. Raises InvalidInput if the body is invalid, and what the function raises."""
        if self.body is not None:
            content = read_json_object(call.request, is_optional=self.body_is_optional)
            return self.function(call, validate_model(self.body, content))
        if self.query is not None:
            return self.function(call, query)
        return self.function(call)


@overload
def operation(
    method: str, path: str, tag: str, *, query: type[M], **options: Unpack[OperationOptions]
) -> Callable[[Callable[[ApiCall, M], Response]], Operation]: ...


@overload
def operation(
    method: str, path: str, tag: str, *, body: type[M], **options: Unpack[OperationOptions]
) -> Callable[[Callable[[ApiCall, M], Response]], Operation]: ...


@overload
def operation(
    method: str, path: str, tag: str, **options: Unpack[OperationOptions]
) -> Callable[[Callable[[ApiCall], Response]], Operation]: ...


def operation(method: str, path: str, tag: str, **options: Any) -> Any:
    """Make a function an operation of the API. Its docstring is the operation's documentation, in CommonMark.

    The options are the other fields of `Operation`. With `query` or `body`, an instance of that model is
    the function's second argument. Only a GET needs no right to write unless it says so, and what follows
    from the other options need not be among the `error_statuses`: 404, 412 and 422. A PUT creates what is
    not there, and every queue is there.
    """
    finds = "{" in path and method != "PUT" and "{queue}" not in path
    implied = {404: finds, 412: options.get("is_conditional"), 422: options.get("accepts_idempotency_key")}
    errors = {*options.pop("error_statuses", ()), *(status for status, follows in implied.items() if follows)}
    options = {
        "right": Right.READ if method == "GET" else Right.WRITE,
        "error_statuses": tuple(errors),
        **options,
    }

    def make(function: Callable[..., Response]) -> Operation:
        return Operation(function=function, method=method, path=path, tag=tag, **options)

    return make


def find_operations(module: ModuleType) -> tuple[Operation, ...]:
    """Return the operations that a module defines, in their order."""
    return tuple(each for each in vars(module).values() if isinstance(each, Operation))


def _join_lines(text: str) -> str:
    return " ".join(text.split())


def read_owner(call: ApiCall) -> str:
    """Return the person in the path. Raises NotFound for a person whom the caller may not see."""
    return read_person(call, call.path["owner"])


def read_person(call: ApiCall, given: object) -> str:
    """Return the person whom a request names. Raises NotFound for a person whom the caller may not see."""
    owner = str(validate_model(bodies.OwnerQuery, {"owner": given}).owner)
    if not call.caller.can_see(owner):
        raise NotFound("person", owner)
    return owner
