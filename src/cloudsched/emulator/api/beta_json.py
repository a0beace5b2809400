"""Translate the JSON of the beta versions, which differs from v2's in a few names.

gcloud uses v2, `gcloud beta` v2beta3 and `gcloud alpha` v2beta2. Pull queues, which only the beta versions have, are
not emulated and are refused.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from google.protobuf import json_format  # type: ignore[import-untyped]

from cloudsched.emulator.api import messages
from cloudsched.emulator.model.errors import invalid_argument

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from cloudsched.emulator.api.messages import Proto
    from cloudsched.emulator.api.methods import RpcHandler, RpcMethod


_NAMES: Final[Mapping[str, Mapping[str, str]]] = {
    "v2beta3": {"appEngineHttpQueue.appEngineRoutingOverride": "appEngineRoutingOverride"},
    "v2beta2": {
        "appEngineHttpTarget.appEngineRoutingOverride": "appEngineRoutingOverride",
        "rateLimits.maxTasksDispatchedPerSecond": "rateLimits.maxDispatchesPerSecond",
        "rateLimits.maxConcurrentTasks": "rateLimits.maxConcurrentDispatches",
        "appEngineHttpRequest.relativeUrl": "appEngineHttpRequest.relativeUri",
        "appEngineHttpRequest.payload": "appEngineHttpRequest.body",
        "status.attemptDispatchCount": "dispatchCount",
        "status.attemptResponseCount": "responseCount",
        "status.firstAttemptStatus": "firstAttempt",
        "status.lastAttemptStatus": "lastAttempt",
    },
}
"""By version: its field paths, and v2's for the same fields."""
_IGNORED_FIELDS: Final = ("appEngineHttpQueue", "appEngineHttpTarget", "type", "stats")
"""Fields that are accepted and ignored."""
_DEFAULT_TTLS: Final = {"taskTtl": "2678400s", "tombstoneTtl": "86400s"}
"""What only the beta versions show of a queue, and the defaults."""
_PULL: Final = 1
_PUSH: Final = 2
_UNLIMITED: Final = "retryConfig.unlimitedAttempts"


def to_v2(version: str, content: dict[str, Any]) -> dict[str, Any]:
    """Rename a request's fields to v2's, in place.

    Raises:
        RpcError: INVALID_ARGUMENT if it is about a pull queue.
    """
    names = _NAMES.get(version)
    if names is None:
        if unknown := _DEFAULT_TTLS.keys() & content.keys():
            raise invalid_argument(f"Invalid JSON payload received. Unknown name {min(unknown)!r}.")
        return content
    for resource in iter_resources(content):
        if "pullTarget" in resource or "pullMessage" in resource or resource.get("type") in {"PULL", _PULL}:
            raise invalid_argument("Pull queues are not emulated.")
        for theirs, ours in names.items():
            _move(resource, theirs, ours)
        if _remove_if_equal(resource, _UNLIMITED):
            resource["retryConfig"]["maxAttempts"] = -1
        for name in _IGNORED_FIELDS:
            resource.pop(name, None)
    return content


def from_v2(version: str, content: dict[str, Any], *, integer_enums: bool = False) -> dict[str, Any]:
    """Rename a response's fields to those of that version, in place."""
    names = _NAMES.get(version)
    if names is None:
        for resource in iter_resources(content):
            for name in _DEFAULT_TTLS:
                resource.pop(name, None)
        return content
    _rename_packed(version, content)
    for resource in _iter_all(content):
        for theirs, ours in names.items():
            _move(resource, ours, theirs)
        if "rateLimits" in resource:  # a queue
            resource.update({name: resource.get(name, ttl) for name, ttl in _DEFAULT_TTLS.items()})
            if version == "v2beta3":
                resource["type"] = _PUSH if integer_enums else "PUSH"
        if version == "v2beta2":
            resource.pop("dispatchDeadline", None)
            if _remove_if_equal(resource, "retryConfig.maxAttempts", -1):
                resource["retryConfig"]["unlimitedAttempts"] = True
    return content


def _rename_packed(version: str, operation: dict[str, Any]) -> None:
    """Give the messages in an operation the version's types."""
    for packed in (operation.get("metadata"), operation.get("response")):
        if isinstance(packed, dict) and "@type" in packed:
            packed["@type"] = packed["@type"].replace("tasks.v2.", f"tasks.{version}.")


def mask_to_v2(version: str, path: str) -> str:
    """Translate a path of an update mask to v2's names; empty if it names an ignored field."""
    if path == _UNLIMITED:
        return "retryConfig.maxAttempts"
    path = _NAMES.get(version, {}).get(path, path)
    return "" if version in _NAMES and path.partition(".")[0] in _IGNORED_FIELDS else path


def names_stats(read_mask: str) -> bool:
    """Return whether a read mask names a queue's statistics, which are returned only then."""
    return any(path.partition(".")[0] == "stats" for path in read_mask.split(","))


def apply_read_mask(content: dict[str, Any], read_mask: str) -> dict[str, Any]:
    """Keep the fields of a queue, or of each queue of a list, that a read mask names; all without one."""
    if not read_mask:
        return content
    paths = [re.sub("_([a-z])", lambda match: match[1].upper(), path).split(".") for path in read_mask.split(",")]
    if "name" in content:
        return _select(content, paths)
    return {**content, "queues": [_select(queue, paths) for queue in _get_list(content, "queues")]}


def _select(resource: dict[str, Any], paths: list[list[str]]) -> dict[str, Any]:
    selected: dict[str, Any] = {}
    for name, *rest in paths:
        if name not in resource:
            continue
        value = resource[name]
        if rest and isinstance(value, dict):
            selected[name] = {**selected.get(name, {}), **_select(value, [rest])}
        else:
            selected[name] = value
    return selected


def iter_resources(content: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the queues and tasks in a request or response."""
    yield content
    for value in (
        content.get("task"),
        content.get("queue"),
        *_get_list(content, "queues"),
        *_get_list(content, "tasks"),
    ):
        if isinstance(value, dict):
            yield value
    for request in _get_list(content, "requests"):
        if isinstance(request, dict) and isinstance(request.get("task"), dict):
            yield request["task"]


def _iter_all(content: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the resources of a response, including those of a finished batch."""
    yield from iter_resources(content)
    if isinstance(response := content.get("response"), dict):
        yield from iter_resources(response)


def _get_list(content: dict[str, Any], name: str) -> list[Any]:
    value = content.get(name)
    return value if isinstance(value, list) else []


def _move(resource: dict[str, Any], source: str, destination: str) -> None:
    group, _, name = source.rpartition(".")
    holder = resource.get(group) if group else resource
    if isinstance(holder, dict) and name in holder:
        value = holder.pop(name)
        if group and not holder:
            del resource[group]
        group, _, name = destination.rpartition(".")
        (resource.setdefault(group, {}) if group else resource)[name] = value


def _remove_if_equal(resource: dict[str, Any], path: str, expected: object = True) -> bool:  # noqa: FBT002 - a value, not a flag
    """Remove a field; true if it had that value."""
    group, _, name = path.partition(".")
    holder = resource.get(group)
    if not isinstance(holder, dict) or name not in holder or holder[name] != expected:
        return False
    del holder[name]
    return True


VERSIONS: Final = ("v2beta3", "v2beta2")
_V2: Final = "google.cloud.tasks.v2."


def beta_methods(methods: Iterable[RpcMethod]) -> Iterator[RpcMethod]:
    """Yield the gRPC methods of the beta versions for those of v2. Only gRPC needs them: REST has paths for each."""
    for method in methods:
        if method.grpc.startswith(f"/{_V2}"):
            for version in VERSIONS:
                request = _message_of(version, method.request.DESCRIPTOR.full_name)
                grpc = method.grpc.replace(_V2, f"google.cloud.tasks.{version}.")
                yield replace(method, grpc=grpc, request=request, call=_translate(method, version))


def _translate(method: RpcMethod, version: str) -> RpcHandler:
    def call(request: Proto) -> Proto:
        content = json_format.MessageToDict(request, descriptor_pool=messages.POOL)
        if mask := content.pop("updateMask", ""):
            content["updateMask"] = ",".join(filter(None, (mask_to_v2(version, path) for path in mask.split(","))))
        read_mask = content.pop("readMask", "")
        if names_stats(read_mask):
            content["withStats"] = True
        try:
            message = json_format.ParseDict(to_v2(version, content), method.request(), descriptor_pool=messages.POOL)
        except json_format.ParseError as error:
            raise invalid_argument(f"The request is invalid in {version}: {error}") from None
        reply = method.call(message)
        shown = from_v2(version, json_format.MessageToDict(reply, descriptor_pool=messages.POOL))
        return json_format.ParseDict(
            apply_read_mask(shown, read_mask),
            _message_of(version, reply.DESCRIPTOR.full_name)(),
            ignore_unknown_fields=True,  # fields of v2 that the version lacks
            descriptor_pool=messages.POOL,
        )

    return call


def _message_of(version: str, v2_name: str) -> Proto:
    """Return the version's own message, or v2's where the two are the same."""
    name = v2_name.replace(_V2, f"google.cloud.tasks.{version}.")
    return messages.message_class(name if messages.has_message(name) else v2_name)
