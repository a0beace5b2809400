"""The RPCs of `google.cloud.tasks.v2.CloudTasks`: from a request message to a response message.

gRPC and REST lead to the same methods. A method reads the clock once, changes the queues and passes on
any dispatch that is to be sent. It raises `RpcError` to refuse a request. Nothing in here blocks.

The REST routes are the `google.api.http` annotations of the v2 reference. A route is an HTTP method, a
path pattern whose groups fill fields of the request, and the field that the body fills (`*` for the
request itself).
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from google.protobuf import empty_pb2  # type: ignore[import-untyped]

from cloudsched.emulator.api.codec import (
    apply_update_mask,
    read_config,
    read_task,
    write_queue,
    write_task,
)
from cloudsched.emulator.api.protos import MESSAGES, Proto
from cloudsched.emulator.model import names
from cloudsched.emulator.model.errors import QUEUE_MISSING, invalid_argument, not_found
from cloudsched.emulator.model.queue import DispatchAttempt, QueueConfig

if TYPE_CHECKING:
    from datetime import datetime

    from cloudsched.emulator.model.queues import Queues
    from cloudsched.emulator.model.task import CloudTask

MAX_QUEUES_A_PAGE: Final = 9800
MAX_TASKS_A_PAGE: Final = 1000
_ListQueuesResponse: Final = MESSAGES["ListQueuesResponse"]
_ListTasksResponse: Final = MESSAGES["ListTasksResponse"]


class CloudTasksService:
    """The RPCs on queues and tasks."""

    def __init__(self, queues: Queues, now: Callable[[], datetime], send: Callable[[DispatchAttempt], None]) -> None:
        self.queues = queues
        self.now = now
        self._send = send

    # Queues
    # ------------------------------------------------------------------------------------------------------

    def create_queue(self, request: Proto) -> Proto:
        """Create a queue."""
        names.check_location(request.parent)
        if names.check_queue(request.queue.name).rpartition("/queues/")[0] != request.parent:
            raise invalid_argument(f"{request.queue.name} must begin with {request.parent}.")
        config = read_config(request.queue)
        return write_queue(self.queues.create_queue(request.queue.name, config, self.now()))

    def get_queue(self, request: Proto) -> Proto:
        """Return a queue."""
        return write_queue(self.queues.get_queue(request.name))

    def list_queues(self, request: Proto) -> Proto:
        """List queues in lexicographic order."""
        if request.filter:
            raise invalid_argument("The emulator lists all queues of a location: leave the filter out.")
        size = _clamp_page_size(request.page_size, MAX_QUEUES_A_PAGE)
        queues = [queue for queue in self.queues.list_queues(request.parent) if queue.name > request.page_token]
        if request.page_token and not request.page_token.startswith(f"{request.parent}/queues/"):
            raise invalid_argument("The page token does not belong to this list.")
        page = queues[:size]
        reply = _ListQueuesResponse(queues=[write_queue(queue) for queue in page])
        if len(queues) > size:
            reply.next_page_token = page[-1].name
        return reply

    def update_queue(self, request: Proto) -> Proto:
        """Change the fields in the mask, or all fields without a mask. Create a missing queue."""
        paths = list(request.update_mask.paths)

        def change(config: QueueConfig | None) -> QueueConfig:
            if config and paths:
                return apply_update_mask(config, request.queue, paths)
            return read_config(request.queue)

        name = names.check_queue(request.queue.name)
        return write_queue(self.queues.update_queue(name, change, self.now()))

    def delete_queue(self, request: Proto) -> Proto:
        """Delete a queue."""
        self.queues.delete_queue(request.name, self.now())
        return empty_pb2.Empty()

    def purge_queue(self, request: Proto) -> Proto:
        """Purge a queue."""
        return write_queue(self.queues.purge_queue(request.name, self.now()))

    def pause_queue(self, request: Proto) -> Proto:
        """Pause a queue."""
        return write_queue(self.queues.pause_queue(request.name, paused=True))

    def resume_queue(self, request: Proto) -> Proto:
        """Resume a queue."""
        return write_queue(self.queues.pause_queue(request.name, paused=False))

    # Tasks
    # -------------------------------------------------------------------------------------------------------

    def create_task(self, request: Proto) -> Proto:
        """Create a task."""
        return write_task(self._create(request.parent, request.task), request.parent, request.response_view)

    def get_task(self, request: Proto) -> Proto:
        """Return a task."""
        queue_name, task_id = names.split_task(request.name)
        task = self.queues.find(queue_name).get(task_id, self.now())
        return write_task(task, queue_name, request.response_view)

    def list_tasks(self, request: Proto) -> Proto:
        """List tasks in order of creation."""
        if request.parent not in self.queues.queues:
            names.check_parent_queue(request.parent)
        queue = self.queues.get_queue(request.parent)
        size = _clamp_page_size(request.page_size, MAX_TASKS_A_PAGE)
        if request.page_token and not (request.page_token.isascii() and request.page_token.isdigit()):
            raise invalid_argument("The page token does not belong to this list.")

        tasks: Iterator[CloudTask] = queue.iter_tasks(int(request.page_token or 0), self.now())
        reply = _ListTasksResponse()
        last = 0
        for task in tasks:
            if len(reply.tasks) == size:
                reply.next_page_token = str(last)
                break
            reply.tasks.append(write_task(task, queue.name, request.response_view))
            last = task.number
        return reply

    def delete_task(self, request: Proto) -> Proto:
        """Delete a task."""
        queue_name, task_id = names.split_task(request.name)
        self.queues.find(queue_name).remove(task_id, self.now())
        return empty_pb2.Empty()

    def run_task(self, request: Proto) -> Proto:
        """Send the task at once, regardless of the queue's state and rate."""
        queue_name, task_id = names.split_task(request.name)
        dispatch = self.queues.find(queue_name).run_now(task_id, self.now())
        reply = write_task(dispatch.task, queue_name, request.response_view)
        self._send(dispatch)
        return reply

    def _create(self, queue_name: str, message: Proto) -> CloudTask:
        now = self.now()
        queue = self.queues.queues.get(queue_name)
        if queue is None and not self.queues.auto_create_queues:
            names.check_parent_queue(queue_name)
            raise not_found(QUEUE_MISSING)

        if message.name:
            named_queue, task_id = names.split_task(message.name)
            if named_queue != queue_name:
                raise invalid_argument(
                    f"The queue name from request ('{queue_name}') must be the same as "
                    f"the queue name in the named task ('{named_queue}')."
                )
        else:
            task_id = str(secrets.randbits(63))

        config = queue.config if queue is not None else QueueConfig()
        task = read_task(message, task_id, defaults=config.retry_config, now=now)
        self.queues.create_task(queue_name, task, now)
        return task


def _clamp_page_size(requested: int, maximum: int) -> int:
    if requested < 0:
        raise invalid_argument("The page size must not be negative.")
    return min(requested or maximum, maximum)


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
    request = MESSAGES[f"{name}Request"]
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
