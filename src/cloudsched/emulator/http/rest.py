"""REST: the same RPCs as JSON over HTTP/1.1, mapped as in the v2 reference's HTTP annotations.

The administration of queues by v2beta3, as `gcloud beta` and our own use it, is that of v2 with the
number of tasks. A path without `/v2` leads to the same RPCs: firebase-admin sends such to an emulator. It
expects a response of its own shape and leaves the URL of its function for the emulator to fill in.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote

from google.protobuf import json_format  # type: ignore[import-untyped]

from cloudsched.emulator.model.errors import Code, RpcError, invalid_argument
from cloudsched.emulator.model.task import RetryConfig

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from cloudsched.emulator.api.protos import Proto
    from cloudsched.emulator.api.tasks_service import RpcMethod

DEFAULT_FUNCTIONS_URL: Final = "http://127.0.0.1:5001/{project}/{location}/{function}"
"""The address of a function in Firebase's Functions emulator."""

_VERSION: Final = re.compile(r"/(?:(v2|v2beta3)/)?(projects/.*)", re.DOTALL)
_BETA: Final = "v2beta3"
_SYSTEM: Final = frozenset(
    [
        "alt",
        "callback",
        "fields",
        "key",
        "readMask",
        "oauth_token",
        "access_token",
        "prettyPrint",
        "quotaUser",
        "uploadType",
        "upload_protocol",
    ]
)
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_\-]*={0,2}")
_INTEGER_ENUMS: Final = "json;enum-encoding=int"


class Reply(NamedTuple):
    """An HTTP status and its JSON body."""

    status: int
    body: Mapping[str, Any]


class RestGateway:
    """Translates HTTP requests to RPCs, and their results to JSON."""

    def __init__(
        self,
        methods: Iterable[RpcMethod],
        count_tasks: Callable[[str], int],
        functions_url: str = DEFAULT_FUNCTIONS_URL,
    ) -> None:
        self._methods = tuple(methods)
        self._count_tasks = count_tasks
        self._functions_url = functions_url

    def find(self, verb: str, path: str) -> tuple[RpcMethod, str, dict[str, str | None]] | None:
        """Return the RPC of a request line, its API's version and the fields in its path, or None."""
        match = _VERSION.fullmatch(unquote(path))
        if match is None:
            return None
        version = match[1] or ""
        resource = match[2]
        for method in self._methods:
            if version == _BETA and not method.grpc.endswith("Queue"):
                continue
            if method.verb == verb and (match := method.path.fullmatch(resource)):
                return method, version, match.groupdict()
        return None

    def read(
        self,
        method: RpcMethod,
        version: str,
        filled: Mapping[str, str | None],
        query: Mapping[str, str],
        body: bytes,
    ) -> Proto:
        """Return the request message."""
        request = method.request()
        content: dict[str, Any] = {}
        if method.body:
            content = _parse_json(body)
            _check_body(content)
            if not version:
                self._fill_in_function_url(content, filled)
            message = request if method.body == "*" else getattr(request, method.body)
            _parse(content, message)

        _parse_query(query, request)
        if method.grpc.endswith("/UpdateQueue") and not _wants_integers(query):
            _clear_max_doublings(request, content)

        for field, value in filled.items():
            if value is None:
                continue
            outer, _, inner = field.rpartition("__")
            message = getattr(request, outer) if outer else request
            setattr(message, inner, value)
        return request

    def write(
        self,
        method: RpcMethod,
        version: str,
        reply: Proto,
        query: Mapping[str, str],
    ) -> Mapping[str, Any]:
        """Return a response message as JSON."""
        integers = _wants_integers(query)
        shown: dict[str, Any] = json_format.MessageToDict(reply, use_integers_for_enums=integers)
        if version == _BETA and "stats" in query.get("readMask", "").split(","):
            shown["stats"] = {"tasksCount": str(self._count_tasks(reply.name))}
        if not version and method.grpc.endswith("/CreateTask"):
            shown["name"] = f"/{shown['name']}"
            return {"task": shown}
        return shown

    def _fill_in_function_url(self, content: dict[str, Any], filled: Mapping[str, str | None]) -> None:
        """Fill in the URL of the function that the queue is named after. firebase-admin leaves it empty."""
        task = content.get("task")
        request = task.get("httpRequest") if isinstance(task, dict) else None
        if isinstance(request, dict) and not request.get("url") and (parent := filled.get("parent")):
            _, project, _, location, _, function = parent.split("/")
            request["url"] = self._functions_url.format(project=project, location=location, function=function)


def refuse(status: int, message: str) -> Reply:
    """Return the response for a request that is refused, and is no RPC."""
    return Reply(status, {"error": {"code": status, "message": message}})


def error_reply(error: RpcError) -> Reply:
    """Return the response for an RPC that was refused."""
    status = error.http_status
    content: dict[str, Any] = {"code": status, "message": error.message, "status": error.code.name}
    if error.details:
        content["details"] = [dict(detail) for detail in error.details]
    return Reply(status, {"error": content})


def not_found_reply(verb: str, path: str) -> Reply:
    """Return the response for a request that matches no route."""
    return error_reply(RpcError(Code.NOT_FOUND, f"There is no route {verb} {path}."))


def _wants_integers(query: Mapping[str, str]) -> bool:
    return _INTEGER_ENUMS in (query.get("$alt"), query.get("alt"))


def _parse_json(body: bytes) -> dict[str, Any]:
    if not body.strip():
        return {}
    try:
        content = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise invalid_argument(f"Invalid JSON payload received. {error}") from None
    if not isinstance(content, dict):
        raise invalid_argument("Invalid JSON payload received. It must be an object.")
    return content


def _check_body(content: dict[str, Any]) -> None:
    """Refuse a body that is not base64, which protobuf's own parser ignores."""
    task = content.get("task")
    if not isinstance(task, dict):
        return
    for kind in ("httpRequest", "http_request"):
        request = task.get(kind)
        body = request.get("body") if isinstance(request, dict) else None
        if isinstance(body, str) and (not _BASE64.fullmatch(body) or len(body.rstrip("=")) % 4 == 1):
            raise invalid_argument(f"Invalid JSON payload received. {kind}.body is not base64.")


def _parse(content: Mapping[str, Any], message: Proto) -> None:
    try:
        json_format.ParseDict(content, message)
    except (json_format.ParseError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise invalid_argument(f"Invalid JSON payload received. {error}") from None


def _clear_max_doublings(request: Proto, content: dict[str, Any]) -> None:
    """Return the field to its default where the mask names it and the JSON omits it: `--clear-max-doublings`.

    A message cannot tell zero from unset. Generated clients, which ask for enums as numbers, omit zeros
    in JSON, too: for them it stays zero.
    """
    retry = content.get("retryConfig") or {}
    named = {"retryConfig.maxDoublings", "retry_config.max_doublings"} & set(request.update_mask.paths)
    if named and isinstance(retry, dict) and not {"maxDoublings", "max_doublings"} & retry.keys():
        request.queue.retry_config.max_doublings = RetryConfig().max_doublings


def _parse_query(query: Mapping[str, str], request: Proto) -> None:
    content: dict[str, Any] = {}
    for key, value in query.items():
        if key in {"updateMask", "update_mask"} and hasattr(request, "update_mask"):
            request.update_mask.paths.extend(path for path in value.split(",") if path)
        elif key not in _SYSTEM and not key.startswith("$"):
            outer, _, inner = key.rpartition(".")
            place = content.setdefault(outer, {}) if outer else content
            place[inner] = value
    if content:
        _parse(content, request)
