"""The table of RPCs: the handler of each gRPC method and REST route.

The REST routes are the `google.api.http` annotations of the v2 reference. A route is an HTTP method, a path pattern
whose groups fill fields of the request, and the field that the body fills (`*` for the request itself).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cloudsched.emulator.api import messages
from cloudsched.emulator.api.messages import Proto

if TYPE_CHECKING:
    from cloudsched.emulator.api.tasks_service import CloudTasksService

RpcHandler = Callable[[Proto], Proto]

_LOCATION: Final = "projects/[^/]+/locations/[^/:]+"
_QUEUE: Final = f"{_LOCATION}/queues/[^/:]+"
_TASK: Final = f"{_QUEUE}/tasks/[^/:]+"


@dataclass(frozen=True, slots=True)
class RpcMethod:
    """One RPC: its gRPC path, its REST route, its request message and its handler."""

    grpc: str
    request: Proto
    call: RpcHandler
    verb: str
    path: re.Pattern[str]
    body: str = ""


def _make_method(call: RpcHandler, name: str, verb: str, path: str, body: str = "") -> RpcMethod:
    request = messages.message_class(f"{name}Request")
    return RpcMethod(f"/google.cloud.tasks.v2.CloudTasks/{name}", request, call, verb, re.compile(path), body)


def list_methods(calls: CloudTasksService) -> list[RpcMethod]:
    """Return the RPCs."""
    queues = rf"(?P<parent>{_LOCATION})/queues"
    tasks = rf"(?P<parent>{_QUEUE})/tasks"
    queue = rf"(?P<name>{_QUEUE})"
    task = rf"(?P<name>{_TASK})"
    return [
        _make_method(calls.create_task, "CreateTask", "POST", tasks, "*"),
        _make_method(calls.get_task, "GetTask", "GET", task),
        _make_method(calls.list_tasks, "ListTasks", "GET", tasks),
        _make_method(calls.delete_task, "DeleteTask", "DELETE", task),
        _make_method(calls.run_task, "RunTask", "POST", f"{task}:run", "*"),
        _make_method(calls.create_queue, "CreateQueue", "POST", queues, "queue"),
        _make_method(calls.get_queue, "GetQueue", "GET", queue),
        _make_method(calls.list_queues, "ListQueues", "GET", queues),
        _make_method(calls.update_queue, "UpdateQueue", "PATCH", rf"(?P<queue__name>{_QUEUE})", "queue"),
        _make_method(calls.delete_queue, "DeleteQueue", "DELETE", queue),
        _make_method(calls.purge_queue, "PurgeQueue", "POST", f"{queue}:purge", "*"),
        _make_method(calls.pause_queue, "PauseQueue", "POST", f"{queue}:pause", "*"),
        _make_method(calls.resume_queue, "ResumeQueue", "POST", f"{queue}:resume", "*"),
    ]
