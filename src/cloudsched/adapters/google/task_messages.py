"""The messages of google.cloud.tasks.v2 that the dispatcher sends.

Names, numbers and types are those of google/cloud/tasks/v2/*.proto in github.com/googleapis/googleapis; a test compares
them with the installed client's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.adapters.google.messages import build_messages

if TYPE_CHECKING:
    from cloudsched.adapters.google.channel import Message

PACKAGE = "google.cloud.tasks.v2"
TABLE = r"""
enum HttpMethod HTTP_METHOD_UNSPECIFIED POST GET HEAD PUT DELETE PATCH OPTIONS
OidcToken service_account_email:string=1 audience:string=2
HttpRequest url:string=1 http_method:HttpMethod=2 headers:map(string)=3 body:bytes=4 \
oidc_token:OidcToken=6/authorization_header
Task name:string=1 http_request:HttpRequest=3/message_type schedule_time:Timestamp=4 dispatch_deadline:Duration=6
CreateTaskRequest parent:string=1 task:Task=2
"""

_messages = build_messages(PACKAGE, TABLE)
CreateTaskRequest: Message = _messages["CreateTaskRequest"]
POST: int = CreateTaskRequest.DESCRIPTOR.file.enum_types_by_name["HttpMethod"].values_by_name["POST"].number
