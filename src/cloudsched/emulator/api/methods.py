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
    from cloudsched.emulator.api.admin_service import Administration
    from cloudsched.emulator.api.tasks_service import CloudTasksService

RpcHandler = Callable[[Proto], Proto]

_LOCATION: Final = "projects/[^/]+/locations/[^/:]+"
_QUEUE: Final = f"{_LOCATION}/queues/[^/:]+"
RAW_BODY: Final = "buffered"
"""Instead of a body field: the HTTP body is the task's own body, unchanged."""
_TEST: Final = "TestIamPermissions"
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


def _make_method(call: RpcHandler, grpc: str, request: str, verb: str, path: str, body: str = "") -> RpcMethod:
    service = "" if "/" in grpc else "google.cloud.tasks.v2.CloudTasks/"
    return RpcMethod(f"/{service}{grpc}", messages.message_class(request), call, verb, re.compile(path), body)


def administration_methods(calls: Administration) -> list[RpcMethod]:
    """Return the administrative RPCs."""
    queue = rf"(?P<resource>{_QUEUE})"
    location = rf"(?P<name>{_LOCATION})"
    tasks = rf"(?P<parent>{_QUEUE})/tasks"
    key = rf"{_LOCATION}/cmekConfig"
    buffer = rf"(?P<queue>{_QUEUE})/tasks(?:/(?P<task_id>[^/:]*))?:buffer"
    operation = rf"(?P<name>{_LOCATION}/operations/[^/:]+)"
    get_iam, set_iam, test_iam = (f"google.iam.v1.{name}Request" for name in ("GetIamPolicy", "SetIamPolicy", _TEST))
    list_locations, get_location = (
        f"google.cloud.location.{name}" for name in ("ListLocationsRequest", "GetLocationRequest")
    )
    get_operation = "google.longrunning.GetOperationRequest"
    places, operations = "google.cloud.location.Locations/", "google.longrunning.Operations/"
    return [
        _make_method(calls.get_iam_policy, "GetIamPolicy", get_iam, "POST", f"{queue}:getIamPolicy", "*"),
        _make_method(calls.set_iam_policy, "SetIamPolicy", set_iam, "POST", f"{queue}:setIamPolicy", "*"),
        _make_method(calls.test_iam_permissions, _TEST, test_iam, "POST", f"{queue}:testIamPermissions", "*"),
        _make_method(
            calls.list_locations, f"{places}ListLocations", list_locations, "GET", "(?P<name>projects/[^/]+)/locations"
        ),
        _make_method(calls.get_location, f"{places}GetLocation", get_location, "GET", location),
        _make_method(calls.get_cmek_config, "GetCmekConfig", "GetCmekConfigRequest", "GET", f"(?P<name>{key})"),
        _make_method(
            calls.update_cmek_config,
            "UpdateCmekConfig",
            "UpdateCmekConfigRequest",
            "PATCH",
            f"(?P<cmek_config__name>{key})",
            "cmek_config",
        ),
        _make_method(
            calls.batch_create_tasks, "BatchCreateTasks", "BatchCreateTasksRequest", "POST", f"{tasks}:batchCreate", "*"
        ),
        _make_method(
            calls.batch_delete_tasks, "BatchDeleteTasks", "BatchDeleteTasksRequest", "POST", f"{tasks}:batchDelete", "*"
        ),
        _make_method(calls.get_operation, f"{operations}GetOperation", get_operation, "GET", operation),
        _make_method(calls.buffer_task, "BufferTask", "BufferTaskRequest", "POST", buffer, RAW_BODY),
    ]


def task_methods(calls: CloudTasksService) -> list[RpcMethod]:
    """Return the RPCs on queues and tasks."""
    queues = rf"(?P<parent>{_LOCATION})/queues"
    tasks = rf"(?P<parent>{_QUEUE})/tasks"
    queue = rf"(?P<name>{_QUEUE})"
    task = rf"(?P<name>{_TASK})"
    return [
        _make_method(calls.create_task, "CreateTask", "CreateTaskRequest", "POST", tasks, "*"),
        _make_method(calls.get_task, "GetTask", "GetTaskRequest", "GET", task),
        _make_method(calls.list_tasks, "ListTasks", "ListTasksRequest", "GET", tasks),
        _make_method(calls.delete_task, "DeleteTask", "DeleteTaskRequest", "DELETE", task),
        _make_method(calls.run_task, "RunTask", "RunTaskRequest", "POST", f"{task}:run", "*"),
        _make_method(calls.create_queue, "CreateQueue", "CreateQueueRequest", "POST", queues, "queue"),
        _make_method(calls.get_queue, "GetQueue", "GetQueueRequest", "GET", queue),
        _make_method(calls.list_queues, "ListQueues", "ListQueuesRequest", "GET", queues),
        _make_method(
            calls.update_queue, "UpdateQueue", "UpdateQueueRequest", "PATCH", rf"(?P<queue__name>{_QUEUE})", "queue"
        ),
        _make_method(calls.delete_queue, "DeleteQueue", "DeleteQueueRequest", "DELETE", queue),
        _make_method(calls.purge_queue, "PurgeQueue", "PurgeQueueRequest", "POST", f"{queue}:purge", "*"),
        _make_method(calls.pause_queue, "PauseQueue", "PauseQueueRequest", "POST", f"{queue}:pause", "*"),
        _make_method(calls.resume_queue, "ResumeQueue", "ResumeQueueRequest", "POST", f"{queue}:resume", "*"),
    ]
