"""The administrative RPCs: IAM, locations, encryption keys, batches and their operations, buffered tasks.

Nothing is enforced: a policy is stored and returned, and every caller has all permissions.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from cloudsched.emulator.api import messages
from cloudsched.emulator.api.messages import write_status
from cloudsched.emulator.api.task_codec import set_timestamp
from cloudsched.emulator.model import names
from cloudsched.emulator.model.errors import Code, RpcError, invalid_argument, not_found

if TYPE_CHECKING:
    from cloudsched.emulator.api.messages import Proto
    from cloudsched.emulator.api.tasks_service import CloudTasksService

REGIONS: Final = (
    "asia-east1", "asia-northeast1", "asia-south1", "asia-southeast1", "australia-southeast1", "europe-central2",
    "europe-north1", "europe-west1", "europe-west2", "europe-west3", "europe-west4", "europe-west6",
    "northamerica-northeast1", "southamerica-east1", "us-central1", "us-east1", "us-east4", "us-west1", "us-west2",
)  # fmt: skip
MAX_BATCH_CREATE: Final = 100
MAX_BATCH_DELETE: Final = 1000
_NONE_SUCCEEDED: Final = "None of the requests succeeded, refer to {}.failed_requests for individual error details"
_Policy: Final = messages.message_class("google.iam.v1.Policy")
_Permissions: Final = messages.message_class("google.iam.v1.TestIamPermissionsResponse")
_Location: Final = messages.message_class("google.cloud.location.Location")
_Locations: Final = messages.message_class("google.cloud.location.ListLocationsResponse")
_Operation: Final = messages.message_class("google.longrunning.Operation")
_Status: Final = messages.message_class("google.rpc.Status")
_Empty: Final = messages.message_class("google.protobuf.Empty")
_CmekConfig: Final = messages.message_class("CmekConfig")
_CreateMetadata: Final = messages.message_class("BatchCreateTasksMetadata")
_CreateResponse: Final = messages.message_class("BatchCreateTasksResponse")
_DeleteMetadata: Final = messages.message_class("BatchDeleteTasksMetadata")
_CreateTask: Final = messages.message_class("CreateTaskRequest")
_DeleteTask: Final = messages.message_class("DeleteTaskRequest")
_BufferResponse: Final = messages.message_class("BufferTaskResponse")


class Administration:
    """The administrative RPCs.

    Args:
        calls: The RPCs on queues and tasks.
    """

    def __init__(self, calls: CloudTasksService) -> None:
        self._calls = calls
        self._policies: dict[str, Proto] = {}
        self._keys: dict[str, str] = {}
        self._operations: dict[str, Proto] = {}

    def clear(self) -> None:
        """Delete all policies, keys and operations."""
        self._policies.clear()
        self._keys.clear()
        self._operations.clear()

    # IAM ---------------------------------------------------------------------------------------------------------

    def get_iam_policy(self, request: Proto) -> Proto:
        """Return the stored policy, or an empty one."""
        self._calls.queues.get_queue(request.resource)
        return self._policies.get(request.resource) or _Policy(etag=b"\0\1")

    def set_iam_policy(self, request: Proto) -> Proto:
        """Replace the policy; ABORTED if its etag is not the present one's."""
        self._calls.queues.get_queue(request.resource)
        present = self._policies.get(request.resource) or _Policy(etag=b"\0\1")
        if request.policy.etag and request.policy.etag != present.etag:
            raise RpcError(
                Code.ABORTED,
                "There were concurrent policy changes. "
                "Please retry the whole read-modify-write with exponential backoff.",
            )
        policy = _Policy()
        policy.CopyFrom(request.policy)
        policy.etag = hashlib.sha256(present.etag + policy.SerializeToString(deterministic=True)).digest()[:8]
        self._policies[request.resource] = policy
        return policy

    def test_iam_permissions(self, request: Proto) -> Proto:
        """Grant all permissions of the request."""
        self._calls.queues.get_queue(request.resource)
        return _Permissions(permissions=request.permissions)

    # Locations and keys ------------------------------------------------------------------------------------------

    def list_locations(self, request: Proto) -> Proto:
        """List the service's regions, and every other location that has a queue."""
        project = request.name.removeprefix("projects/")
        queue_names = (names.split_queue(name) for name in self._calls.queues.queues)
        regions = sorted({*REGIONS, *(name.location for name in queue_names if name.project == project)})
        return _Locations(locations=[_make_location(f"projects/{project}/locations/{region}") for region in regions])

    def get_location(self, request: Proto) -> Proto:
        """Return a location: any well-formed location exists."""
        return _make_location(names.check_location(request.name))

    def get_cmek_config(self, request: Proto) -> Proto:
        """Return the stored key; nothing is encrypted with it."""
        return _CmekConfig(name=request.name, kms_key=self._keys.get(request.name, ""))

    def update_cmek_config(self, request: Proto) -> Proto:
        """Store the key."""
        self._keys[request.cmek_config.name] = request.cmek_config.kms_key
        return request.cmek_config

    # Batches -----------------------------------------------------------------------------------------------------

    def batch_create_tasks(self, request: Proto) -> Proto:
        """Create up to 100 tasks, independent of each other; the operation is done at once."""
        if not 0 < len(request.requests) <= MAX_BATCH_CREATE:
            raise invalid_argument(
                f"BatchCreateTasksRequest.requests must have between 1 and {MAX_BATCH_CREATE} requests."
            )
        if any(one.parent not in ("", request.parent) for one in request.requests):
            raise invalid_argument("The parent of each request must be the parent of the batch.")
        self._calls.queues.get_queue(request.parent)
        operation, metadata = self._start_operation(request, _CreateMetadata)
        if operation.done:
            return operation
        response = _CreateResponse()
        for index, one in enumerate(request.requests):
            try:
                create = _CreateTask(parent=request.parent, task=one.task, response_view=one.response_view)
                response.tasks.append(self._calls.create_task(create))
            except RpcError as error:
                metadata.failed_requests[index].CopyFrom(write_status(error))
        return self._finish_operation(operation, metadata, response, len(request.requests))

    def batch_delete_tasks(self, request: Proto) -> Proto:
        """Delete up to 1000 tasks, independent of each other; the operation is done at once."""
        if not 0 < len(request.names) <= MAX_BATCH_DELETE:
            raise invalid_argument(f"BatchDeleteTasksRequest.names must have between 1 and {MAX_BATCH_DELETE} names.")
        self._calls.queues.get_queue(request.parent)
        if any(not name.startswith(f"{request.parent}/tasks/") for name in request.names):
            raise invalid_argument("Each name must be that of a task in the batch's queue.")
        operation, metadata = self._start_operation(request, _DeleteMetadata)
        if operation.done:
            return operation
        for index, name in enumerate(request.names):
            try:
                self._calls.delete_task(_DeleteTask(name=name))
            except RpcError as error:
                metadata.failed_requests[index].CopyFrom(write_status(error))
        return self._finish_operation(operation, metadata, _Empty(), len(request.names))

    def get_operation(self, request: Proto) -> Proto:
        """Return a batch's result."""
        operation = self._operations.get(request.name)
        if operation is None:
            raise not_found()
        return operation

    def _start_operation(self, request: Proto, metadata_class: Proto) -> tuple[Proto, Proto]:
        """Return a new operation, or the one that an earlier request with the same id started."""
        location = names.split_queue(request.parent).parent
        name = f"{location}/operations/{request.request_id or self._calls.generate_id()}"
        metadata = metadata_class()
        set_timestamp(metadata.start_time, self._calls.now())
        return self._operations.get(name) or _Operation(name=name), metadata

    def _finish_operation(self, operation: Proto, metadata: Proto, response: Proto, requested: int) -> Proto:
        failed = len(metadata.failed_requests)
        state = "FAILED" if failed == requested else "PARTIALLY_SUCCEEDED" if failed else "SUCCEEDED"
        metadata.state = metadata.State.Value(state)
        set_timestamp(metadata.end_time, self._calls.now())
        operation.done = True
        if failed == requested:
            kind = metadata.DESCRIPTOR.name
            operation.error.CopyFrom(_Status(code=Code.ABORTED, message=_NONE_SUCCEEDED.format(kind)))
        else:
            operation.response.Pack(response)
        operation.metadata.Pack(metadata)
        self._operations[operation.name] = operation
        return operation

    # Buffered tasks ----------------------------------------------------------------------------------------------

    def buffer_task(self, request: Proto) -> Proto:
        """Create a task from a body alone; the queue's HTTP target supplies the rest."""
        create = _CreateTask(parent=request.queue)
        if request.task_id:
            create.task.name = f"{request.queue}/tasks/{request.task_id}"
        create.task.http_request.body = request.body.data
        if request.body.content_type:
            create.task.http_request.headers["Content-Type"] = request.body.content_type
        return _BufferResponse(task=self._calls.create_task(create))


def _make_location(name: str) -> Proto:
    region = name.rpartition("/")[2]
    return _Location(name=name, location_id=region, labels={"cloud.googleapis.com/region": region})
