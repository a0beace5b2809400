"""The messages of the Cloud Tasks API, as far as the emulator has what they stand for, and those of its errors.

Names, numbers and types are those of google/cloud/tasks/v2/*.proto. A test compares them with the
installed client's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from google.protobuf import json_format  # type: ignore[import-untyped]

from cloudsched.adapters.google.protobuf import build_messages

if TYPE_CHECKING:
    from cloudsched.emulator.model.errors import RpcError

Proto: TypeAlias = Any
"""A message. Its fields are created at run time, so type checkers do not know them."""

PACKAGE: Final = "google.cloud.tasks.v2"
TABLE: Final = r"""
enum HttpMethod HTTP_METHOD_UNSPECIFIED POST GET HEAD PUT DELETE PATCH OPTIONS
Queue name:string=1 http_target:HttpTarget=10 rate_limits:RateLimits=3 retry_config:RetryConfig=4 state:Queue.State=5 \
purge_time:Timestamp=6 stackdriver_logging_config:StackdriverLoggingConfig=9
enum Queue.State STATE_UNSPECIFIED RUNNING PAUSED DISABLED
RateLimits max_dispatches_per_second:double=1 max_burst_size:int32=2 max_concurrent_dispatches:int32=3
RetryConfig max_attempts:int32=1 max_retry_duration:Duration=2 min_backoff:Duration=3 max_backoff:Duration=4 \
max_doublings:int32=5
StackdriverLoggingConfig sampling_ratio:double=1
HttpTarget http_method:HttpMethod=2
HttpRequest url:string=1 http_method:HttpMethod=2 headers:map(string)=3 body:bytes=4 \
oauth_token:OAuthToken=5/authorization_header oidc_token:OidcToken=6/authorization_header
OAuthToken service_account_email:string=1 scope:string=2
OidcToken service_account_email:string=1 audience:string=2
Task name:string=1 http_request:HttpRequest=3/message_type schedule_time:Timestamp=4 create_time:Timestamp=5 \
dispatch_deadline:Duration=6 dispatch_count:int32=7 response_count:int32=8 first_attempt:Attempt=9 \
last_attempt:Attempt=10 view:Task.View=11 retry_config:RetryConfig=12
enum Task.View VIEW_UNSPECIFIED BASIC FULL
Status code:int32=1 message:string=2
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
MESSAGES: Final = build_messages(PACKAGE, TABLE)
"""The classes of the messages, by their names."""

_RPC: Final = """
Status code:int32=1 message:string=2 details:Any=3*
ErrorInfo reason:string=1 domain:string=2 metadata:map(string)=3
LocalizedMessage locale:string=1 message:string=2
Help links:Help.Link=1*
Help.Link description:string=1 url:string=2
"""
_Status: Final = build_messages("google.rpc", _RPC)["Status"]


def write_status(error: RpcError) -> Proto:
    """Return an error with its details as a `google.rpc.Status`, as gRPC's trailers carry it."""
    content = {"code": int(error.code), "message": error.message, "details": list(error.details)}
    return json_format.ParseDict(content, _Status(), descriptor_pool=_Status.DESCRIPTOR.file.pool)
