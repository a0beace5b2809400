"""The messages of the Cloud Tasks API, in a pool of their own.

The tables below repeat the names, numbers and types of google/cloud/tasks/v2/*.proto, as far as the emulator has what
they stand for. A test compares them with the installed client's descriptors. Building them here takes a few
milliseconds, where importing the client takes half a second. It serves clients of any version, and keeps the default
pool free for the program that embeds the emulator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from google.protobuf import (  # type: ignore[import-untyped]
    any_pb2,
    descriptor_pb2,
    descriptor_pool,
    duration_pb2,
    empty_pb2,
    field_mask_pb2,
    json_format,
    message,
    message_factory,
    timestamp_pb2,
)

if TYPE_CHECKING:
    from cloudsched.emulator.model.errors import RpcError


DecodeError: Final = message.DecodeError
Proto: TypeAlias = Any
"""A message. Its fields are created at run time, so type checkers do not know them."""

_TASKS: Final = """
enum HttpMethod HTTP_METHOD_UNSPECIFIED POST GET HEAD PUT DELETE PATCH OPTIONS
enum Queue.State STATE_UNSPECIFIED RUNNING PAUSED DISABLED
enum Task.View VIEW_UNSPECIFIED BASIC FULL
enum UriOverride.Scheme SCHEME_UNSPECIFIED HTTP HTTPS
enum UriOverride.UriOverrideEnforceMode URI_OVERRIDE_ENFORCE_MODE_UNSPECIFIED IF_NOT_EXISTS ALWAYS
Queue name:string=1 http_target:HttpTarget=10 rate_limits:RateLimits=3 retry_config:RetryConfig=4 state:Queue.State=5 \
purge_time:Timestamp=6 stackdriver_logging_config:StackdriverLoggingConfig=9
RateLimits max_dispatches_per_second:double=1 max_burst_size:int32=2 max_concurrent_dispatches:int32=3
RetryConfig max_attempts:int32=1 max_retry_duration:Duration=2 min_backoff:Duration=3 max_backoff:Duration=4 \
max_doublings:int32=5
StackdriverLoggingConfig sampling_ratio:double=1
PathOverride path:string=1
QueryOverride query_params:string=1
UriOverride scheme:UriOverride.Scheme=1? host:string=2? port:int64=3? path_override:PathOverride=4 \
query_override:QueryOverride=5 uri_override_enforce_mode:UriOverride.UriOverrideEnforceMode=6
HttpTarget uri_override:UriOverride=1 http_method:HttpMethod=2 header_overrides:HttpTarget.HeaderOverride=3* \
oauth_token:OAuthToken=5/authorization_header oidc_token:OidcToken=6/authorization_header
HttpTarget.Header key:string=1 value:string=2
HttpTarget.HeaderOverride header:HttpTarget.Header=1
HttpRequest url:string=1 http_method:HttpMethod=2 headers:map=3 body:bytes=4 \
oauth_token:OAuthToken=5/authorization_header oidc_token:OidcToken=6/authorization_header
OAuthToken service_account_email:string=1 scope:string=2
OidcToken service_account_email:string=1 audience:string=2
Task name:string=1 http_request:HttpRequest=3/message_type schedule_time:Timestamp=4 create_time:Timestamp=5 \
dispatch_deadline:Duration=6 dispatch_count:int32=7 response_count:int32=8 first_attempt:Attempt=9 \
last_attempt:Attempt=10 view:Task.View=11 retry_config:RetryConfig=12
Attempt schedule_time:Timestamp=1 dispatch_time:Timestamp=2 response_time:Timestamp=3 response_status:Status=4
ListQueuesRequest parent:string=1 filter:string=2 page_size:int32=3 page_token:string=4
ListQueuesResponse queues:Queue=1* next_page_token:string=2
GetQueueRequest name:string=1
CreateQueueRequest parent:string=1 queue:Queue=2
UpdateQueueRequest queue:Queue=1 update_mask:FieldMask=2
DeleteQueueRequest name:string=1
PurgeQueueRequest name:string=1
PauseQueueRequest name:string=1
ResumeQueueRequest name:string=1
ListTasksRequest parent:string=1 response_view:Task.View=2 page_size:int32=3 page_token:string=4
ListTasksResponse tasks:Task=1* next_page_token:string=2
GetTaskRequest name:string=1 response_view:Task.View=2
CreateTaskRequest parent:string=1 task:Task=2 response_view:Task.View=3
DeleteTaskRequest name:string=1
RunTaskRequest name:string=1 response_view:Task.View=2
"""
_RPC: Final = """
Status code:int32=1 message:string=2 details:Any=3*
ErrorInfo reason:string=1 domain:string=2 metadata:map=3
LocalizedMessage locale:string=1 message:string=2
Help links:Help.Link=1*
Help.Link description:string=1 url:string=2
"""

_WRITE_AHEAD_LOG: Final = """
Record queue_put:SavedQueue=1/change queue_gone:Gone=2/change task_put:SavedTask=3/change task_gone:Gone=4/change \
wiped:bool=5/change
SavedQueue queue:Queue=1 no_doublings:bool=2
SavedTask queue:string=1 task:Task=2 execution_count:int32=3 previous_status:int32=4
Gone queue:string=1 name:string=2 at:Timestamp=3
"""

_FILES: Final = {
    "google.rpc": _RPC,
    "google.cloud.tasks.v2": _TASKS,
    "cloudsched.emulator": _WRITE_AHEAD_LOG,
}
_WELL_KNOWN: Final = (any_pb2, duration_pb2, empty_pb2, field_mask_pb2, timestamp_pb2)
_Field: Final = descriptor_pb2.FieldDescriptorProto
_SCALARS: Final = {
    "string": _Field.TYPE_STRING,
    "bytes": _Field.TYPE_BYTES,
    "int32": _Field.TYPE_INT32,
    "int64": _Field.TYPE_INT64,
    "bool": _Field.TYPE_BOOL,
    "double": _Field.TYPE_DOUBLE,
}


class _Types:
    """Resolve short names of messages and enums to full names."""

    def __init__(self) -> None:
        self.messages = {name: f".google.protobuf.{name}" for name in ("Any", "Duration", "FieldMask", "Timestamp")}
        self.enums: dict[str, str] = {}
        for package, text in _FILES.items():
            for line in text.replace("\\\n", "").strip().splitlines():
                word, *rest = line.split()
                if word == "enum":
                    self.enums[rest[0]] = f".{package}.{rest[0]}"
                else:
                    self.messages[word] = f".{package}.{word}"

    def describe(self, message: Proto, text: str) -> None:
        """Add the field that `name:type=number` describes. `*` repeats, `?` has presence, `/name` is in a oneof."""
        head, oneof = (*text.split("/"), "")[:2]
        name, kind = head.split(":")
        kind, number = kind.split("=")
        field = message.field.add(name=name, number=int(number.rstrip("*?")), label=_Field.LABEL_OPTIONAL)
        if kind == "map":
            self._describe_map(message, field)
        elif kind in _SCALARS:
            field.type = _SCALARS[kind]
        elif kind in self.enums:
            field.type, field.type_name = _Field.TYPE_ENUM, self.enums[kind]
        else:
            field.type, field.type_name = _Field.TYPE_MESSAGE, self.messages[kind]
        if number.endswith("*"):
            field.label = _Field.LABEL_REPEATED
        elif number.endswith("?"):
            field.proto3_optional = True
            oneof = f"_{name}"
        if oneof:
            declared = [declaration.name for declaration in message.oneof_decl]
            if oneof not in declared:
                message.oneof_decl.add(name=oneof)
                declared.append(oneof)
            field.oneof_index = declared.index(oneof)

    def _describe_map(self, message: Proto, field: Proto) -> None:
        entry_name = "".join(part.title() for part in field.name.split("_")) + "Entry"
        entry = message.nested_type.add(name=entry_name)
        entry.options.map_entry = True
        self.describe(entry, "key:string=1")
        self.describe(entry, "value:string=2")
        field.type, field.label = _Field.TYPE_MESSAGE, _Field.LABEL_REPEATED
        field.type_name = f"{self.messages[message.name]}.{entry_name}"


def _build() -> tuple[Proto, dict[str, Proto]]:
    pool = descriptor_pool.DescriptorPool()
    for module in _WELL_KNOWN:
        pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
    imports = [module.DESCRIPTOR.name for module in _WELL_KNOWN]
    full_names = {"google.protobuf.Empty"}
    types = _Types()
    full_names.update(name[1:] for name in types.messages.values())
    for package, text in _FILES.items():
        file = descriptor_pb2.FileDescriptorProto(
            name=f"cloudsched/{package}.proto", package=package, syntax="proto3", dependency=imports
        )
        declared: dict[str, Proto] = {}
        enums: list[tuple[str, list[str]]] = []
        for line in text.replace("\\\n", "").strip().splitlines():
            word, *rest = line.split()
            if word == "enum":
                enums.append((rest[0], rest[1:]))
                continue
            outer, _, inner = word.rpartition(".")
            message = declared[outer].nested_type.add(name=inner) if outer else file.message_type.add(name=word)
            declared[word] = message
            for field in rest:
                types.describe(message, field)
        for name, values in enums:
            outer, _, inner = name.rpartition(".")
            enum = (declared[outer] if outer else file).enum_type.add(name=inner)
            for number, value in enumerate(values):
                enum.value.add(name=value, number=number)
        pool.AddSerializedFile(file.SerializeToString())
        imports.append(file.name)
    classes = {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(name)) for name in sorted(full_names)}
    return pool, classes


POOL, _CLASSES = _build()


def message_class(name: str) -> Proto:
    """Return a message's class, by its full name or by its name in google.cloud.tasks.v2."""
    return _CLASSES[name] if name in _CLASSES else _CLASSES[f"google.cloud.tasks.v2.{name}"]


_Status: Final = message_class("google.rpc.Status")


def write_status(error: RpcError) -> Proto:
    """Return an error with its details as a `google.rpc.Status`, as gRPC's trailers carry it."""
    content = {"code": int(error.code), "message": error.message, "details": list(error.details)}
    return json_format.ParseDict(content, _Status(), descriptor_pool=POOL)
