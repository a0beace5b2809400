"""Convert tasks and queues between wire messages and the model, within the limits of the service.

Source: the comments of `google/cloud/tasks/v2/{task,queue,cloudtasks,target}.proto` and
https://cloud.google.com/tasks/docs/quotas.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cloudsched.emulator.api.protos import MESSAGES, Proto
from cloudsched.emulator.model.errors import Code, invalid_argument
from cloudsched.emulator.model.queue import CloudQueue, QueueConfig
from cloudsched.emulator.model.task import (
    BODY_METHODS,
    DEFAULT_DEADLINE,
    HORIZON,
    MAX_HEADER_BYTES,
    MAX_TASK_BYTES,
    MAX_URL_CHARACTERS,
    METHODS,
    CloudTask,
    HttpResult,
    HttpTarget,
    OAuthToken,
    OidcToken,
    RateLimits,
    RetryConfig,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

BASIC: Final = 1
FULL: Final = 2
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MIN_DEADLINE: Final = timedelta(seconds=15)
_MAX_DEADLINE: Final = timedelta(minutes=30)
_COMPUTED_HEADERS: Final = frozenset({"host", "content-length", "user-agent"})
_SERVICE_PREFIXES: Final = ("x-google-", "x-appengine-", "x-cloudtasks-")
_TOKEN: Final = re.compile(r"""[^\x00-\x20\x7f-\U0010ffff()<>@,;:\\"/\[\]?={}]+""")
_URL_SAFE: Final = "%/:=&?~#+!$,;'@()*[]"


def to_datetime(timestamp: Proto) -> datetime:
    """Convert a Timestamp, truncated to the microsecond."""
    if not 0 <= timestamp.nanos <= 999_999_999:  # noqa: PLR2004 - the range is Timestamp's
        raise invalid_argument("The timestamp is out of range.")
    try:
        return _EPOCH + timedelta(seconds=timestamp.seconds, microseconds=timestamp.nanos // 1000)
    except OverflowError:
        raise invalid_argument("The timestamp is out of range.") from None


def set_timestamp(timestamp: Proto, at: datetime) -> None:
    """Set a Timestamp to an instant."""
    since = at - _EPOCH
    timestamp.seconds = since.days * 86400 + since.seconds
    timestamp.nanos = since.microseconds * 1000


def to_timedelta(message: Proto) -> timedelta:
    """Convert a Duration, truncated to the microsecond."""
    try:
        return timedelta(seconds=message.seconds, microseconds=int(message.nanos / 1000))
    except OverflowError:
        raise invalid_argument("The duration is out of range.") from None


def set_duration(message: Proto, length: timedelta) -> None:
    """Set a Duration to a length of time."""
    message.seconds = length.days * 86400 + length.seconds
    message.nanos = length.microseconds * 1000


def read_task(message: Proto, task_id: str, *, defaults: RetryConfig, now: datetime) -> CloudTask:
    """Return the new task that a message describes.

    The queue's retry configuration fills unset fields of the task's. Unset and past schedule times become
    now.
    """
    target = _read_target(message)
    deadline = DEFAULT_DEADLINE
    if message.HasField("dispatch_deadline"):
        deadline = to_timedelta(message.dispatch_deadline)
        if not _MIN_DEADLINE <= deadline <= _MAX_DEADLINE:
            raise invalid_argument("Task.dispatchDeadline must be between [15s, 30m].")

    schedule_at = now
    if message.HasField("schedule_time"):
        schedule_at = max(now, to_datetime(message.schedule_time))
        if schedule_at - now > HORIZON:
            raise invalid_argument(
                f"The Task.scheduleTime, {_format_pacific(schedule_at)}, is too far in the future. "
                f"Schedule time must be no more than {HORIZON // timedelta(hours=1)}h in the future."
            )

    if message.ByteSize() > MAX_TASK_BYTES:
        raise invalid_argument("Task size too large")

    retry_config: RetryConfig | None = None
    if message.HasField("retry_config"):
        retry_config = read_retry(message.retry_config, defaults)
        check_backoff(retry_config)
    return CloudTask(
        id=task_id,
        target=target,
        schedule_at=schedule_at,
        created_at=now.replace(microsecond=0),
        dispatch_deadline=deadline,
        retry_config=retry_config,
    )


def read_retry(message: Proto, defaults: RetryConfig) -> RetryConfig:
    """Return a retry configuration. Fields that the message leaves unset are as in `defaults`."""
    if message.max_attempts < -1:
        raise invalid_argument("RetryConfig.maxAttempts must be greater or equal to -1.")
    if message.max_doublings < 0:
        raise invalid_argument("RetryConfig.maxDoublings cannot be negative.")

    def length(field: str, name: str, default: timedelta) -> timedelta:
        if not message.HasField(field):
            return default
        value = to_timedelta(getattr(message, field))
        if value < timedelta(0):
            raise invalid_argument(f"RetryConfig.{name} cannot be negative.")
        return value

    return RetryConfig(
        max_attempts=message.max_attempts or defaults.max_attempts,
        max_retry_duration=length("max_retry_duration", "maxRetryDuration", defaults.max_retry_duration),
        min_backoff=length("min_backoff", "minBackoff", defaults.min_backoff),
        max_backoff=length("max_backoff", "maxBackoff", defaults.max_backoff),
        max_doublings=message.max_doublings or defaults.max_doublings,
    )


def check_backoff(config: RetryConfig) -> None:
    """Check that the minimum backoff does not exceed the maximum."""
    if config.min_backoff > config.max_backoff:
        raise invalid_argument("RetryConfig.minBackoff must be less than or equal to RetryConfig.maxBackoff.")


def write_retry(message: Proto, config: RetryConfig) -> None:
    """Write a retry configuration. An unlimited duration stays unset, as in the service."""
    message.max_attempts = config.max_attempts
    message.max_doublings = config.max_doublings
    set_duration(message.min_backoff, config.min_backoff)
    set_duration(message.max_backoff, config.max_backoff)
    if config.max_retry_duration:
        set_duration(message.max_retry_duration, config.max_retry_duration)


def write_task(task: CloudTask, queue_name: str, view: int) -> Proto:
    """Return a task as a message. Its body is in the FULL view only."""
    message = MESSAGES["Task"](name=f"{queue_name}/tasks/{task.id}", view=FULL if view == FULL else BASIC)
    set_timestamp(message.schedule_time, task.schedule_at)
    set_timestamp(message.create_time, task.created_at)
    set_duration(message.dispatch_deadline, task.dispatch_deadline)
    message.dispatch_count = task.dispatch_count
    message.response_count = task.response_count
    _write_target(message.http_request, task.target, with_body=view == FULL)
    if task.retry_config is not None:
        write_retry(message.retry_config, task.retry_config)

    if task.first_dispatch_at is not None:
        set_timestamp(message.first_attempt.dispatch_time, task.first_dispatch_at)
    if (last := task.last_attempt) is not None:
        set_timestamp(message.last_attempt.schedule_time, last.schedule_at)
        set_timestamp(message.last_attempt.dispatch_time, last.dispatch_at)
        if last.response_at is not None and last.result is not None:
            set_timestamp(message.last_attempt.response_time, last.response_at)
            code, text = _to_status(last.result)
            message.last_attempt.response_status.code = code
            message.last_attempt.response_status.message = text
    return message


def _read_target(message: Proto) -> HttpTarget:
    if not message.HasField("http_request"):
        raise invalid_argument("Task must have an http_request; the emulator has no other targets.")
    request = message.http_request
    return HttpTarget(
        url=_read_url(request.url),
        method=_read_method(request),
        headers=_read_headers(request.headers),
        body=request.body,
        auth=_read_auth(request),
    )


def _read_url(url: str) -> str:
    if not url:
        raise invalid_argument("HttpRequest.url is required.")
    if not url.lower().startswith(("http://", "https://")):
        raise invalid_argument("HttpTarget.url must start with 'http://' or 'https://'.")
    encoded = quote(url, safe=_URL_SAFE)
    if len(encoded) > MAX_URL_CHARACTERS:
        raise invalid_argument(f"HttpRequest.url must be at most {MAX_URL_CHARACTERS} characters long.")
    try:
        parts = urlsplit(url)
        valid = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        valid = False
    if not valid:
        raise invalid_argument("HttpRequest.url is not a valid URL.")
    return url


def _read_method(request: Proto) -> str:
    number = request.http_method
    if not 0 <= number <= len(METHODS):
        raise invalid_argument("HttpRequest.httpMethod is not a known method.")
    method = METHODS[number - 1] if number else "POST"
    if request.body and method not in BODY_METHODS:
        allowed = ", ".join(sorted(BODY_METHODS))
        raise invalid_argument(f"HttpRequest.body is allowed only if the HTTP method is one of {allowed}.")
    return method


def _read_headers(headers: Proto) -> dict[str, str]:
    kept = {
        name: value
        for name, value in headers.items()
        if name.lower() not in _COMPUTED_HEADERS and not name.lower().startswith(_SERVICE_PREFIXES)
    }

    size = 0
    for name, value in kept.items():
        size += len(name) + len(value.encode())
        if not _TOKEN.fullmatch(name):
            raise invalid_argument(f"The header name {name!r} is not a valid HTTP token.")
        if any(c in "\r\n\0" for c in value):
            raise invalid_argument(f"The value of the header {name!r} contains a line break or a NUL.")
    if size > MAX_HEADER_BYTES:
        raise invalid_argument("The size of the headers must be less than 80KB.")
    return {"User-Agent": "Google-Cloud-Tasks", **kept}


def _read_auth(request: Proto) -> OidcToken | OAuthToken | None:
    if request.HasField("oidc_token"):
        return OidcToken(request.oidc_token.service_account_email, request.oidc_token.audience)
    if request.HasField("oauth_token"):
        return OAuthToken(request.oauth_token.service_account_email, request.oauth_token.scope)
    return None


def _write_target(request: Proto, target: HttpTarget, *, with_body: bool) -> None:
    request.url = target.url
    if isinstance(target.auth, OidcToken):
        request.oidc_token.service_account_email = target.auth.service_account_email
        request.oidc_token.audience = target.auth.audience or target.url
    elif isinstance(target.auth, OAuthToken):
        request.oauth_token.service_account_email = target.auth.service_account_email
        request.oauth_token.scope = target.auth.scope or "https://www.googleapis.com/auth/cloud-platform"
    request.http_method = METHODS.index(target.method) + 1
    request.headers.update(target.headers)
    if with_body:
        request.body = target.body


def _to_status(result: HttpResult) -> tuple[int, str]:
    """Return the code and text that the service shows for a result in `Attempt.response_status`."""
    if result.timed_out:
        return Code.DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED(4): HTTP status code 504"
    if result.status is None:
        return Code.UNAVAILABLE, f"UNAVAILABLE(14): {result.failure}"
    if result.ok:
        return Code.OK, ""
    code = _CODES.get(result.status, Code.UNKNOWN)
    return code, f"{code.name}({int(code)}): HTTP status code {result.status}"


_CODES: Final = {
    400: Code.INVALID_ARGUMENT,
    401: Code.UNAUTHENTICATED,
    403: Code.PERMISSION_DENIED,
    404: Code.NOT_FOUND,
    409: Code.ABORTED,
    416: Code.OUT_OF_RANGE,
    429: Code.RESOURCE_EXHAUSTED,
    499: Code.CANCELLED,
    500: Code.INTERNAL,
    501: Code.UNIMPLEMENTED,
    503: Code.UNAVAILABLE,
    504: Code.DEADLINE_EXCEEDED,
}


def _format_pacific(at: datetime) -> str:
    """Format an instant as RFC 3339 in US Pacific time, which the service's errors use."""
    try:
        return at.replace(microsecond=0).astimezone(ZoneInfo("America/Los_Angeles")).isoformat()
    except (OverflowError, ZoneInfoNotFoundError):  # the year 9999, or no time zone data
        return f"{at:%Y-%m-%dT%H:%M:%SZ}"


RUNNING: Final = 1
PAUSED: Final = 2
MAX_RATE: Final = 500.0
MAX_CONCURRENT: Final = 5000
_IGNORED: Final = frozenset({"name", "state", "purge_time", "rate_limits.max_burst_size", "http_target"})
"""Paths of a mask that change nothing: output-only fields, and one that no queue has here."""


def write_queue(queue: CloudQueue) -> Proto:
    """Return a queue as a message."""
    config = queue.config
    message = MESSAGES["Queue"](name=queue.name, state=PAUSED if queue.paused else RUNNING)
    limits = message.rate_limits
    limits.max_dispatches_per_second = config.rate_limits.max_dispatches_per_second
    limits.max_burst_size = config.rate_limits.max_burst_size
    limits.max_concurrent_dispatches = config.rate_limits.max_concurrent_dispatches
    write_retry(message.retry_config, config.retry_config)
    if config.stackdriver_logging_config is not None:
        message.stackdriver_logging_config.sampling_ratio = config.stackdriver_logging_config
    if queue.purged_at is not None:
        set_timestamp(message.purge_time, queue.purged_at)
    return message


def read_config(message: Proto) -> QueueConfig:
    """Return the configuration in a message. Unset fields get the service's defaults."""
    return apply_update_mask(QueueConfig(), message, _GROUPS)


def apply_update_mask(config: QueueConfig, message: Proto, paths: Iterable[str]) -> QueueConfig:
    """Return the configuration with the fields of an update mask taken from the message.

    A path may name a group (`retry_config`) or a field (`retry_config.max_attempts`), in snake_case or
    camelCase. A field that the message leaves unset returns to its default. Output-only fields are
    ignored.
    """
    if message.HasField("http_target"):
        raise invalid_argument("Queue.httpTarget: in the emulator each task has its own request, and no queue has one.")
    for written in paths:
        path = re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", written)
        group, _, name = path.partition(".")
        if path in _IGNORED:
            continue
        if group not in _GROUPS or (name and name not in getattr(message, group).DESCRIPTOR.fields_by_name):
            raise invalid_argument(f"The update mask names an unknown field: {path!r}.")

        value = _GROUPS[group](message)
        if path == "retry_config.max_doublings":  # named in a mask, zero means zero
            value = replace(value, max_doublings=message.retry_config.max_doublings)
        if name and group in _FIELDWISE:
            value = replace(getattr(config, group), **{name: getattr(value, name)})
        config = replace(config, **{group: value})
    check_backoff(config.retry_config)
    return config


def _read_limits(message: Proto) -> RateLimits:
    rate = message.rate_limits.max_dispatches_per_second
    concurrent = message.rate_limits.max_concurrent_dispatches
    if rate < 0:
        raise invalid_argument("RateLimits.maxDispatchesPerSecond cannot be negative.")
    if math.isnan(rate) or rate > MAX_RATE:
        raise invalid_argument(f"RateLimits.maxDispatchesPerSecond must be less than or equal to {MAX_RATE:g}.")
    if concurrent < 0:
        raise invalid_argument("RateLimits.maxConcurrentDispatches cannot be negative.")
    if concurrent > MAX_CONCURRENT:
        raise invalid_argument(f"RateLimits.maxConcurrentDispatches must be less than or equal to {MAX_CONCURRENT}.")
    usual = RateLimits()
    return RateLimits(rate or usual.max_dispatches_per_second, concurrent or usual.max_concurrent_dispatches)


def _read_logging_ratio(message: Proto) -> float | None:
    if not message.HasField("stackdriver_logging_config"):
        return None
    ratio = float(message.stackdriver_logging_config.sampling_ratio)
    if not 0.0 <= ratio <= 1.0:
        raise invalid_argument("StackdriverLoggingConfig.samplingRatio must be between 0 and 1.")
    return ratio


_GROUPS: Final[dict[str, Callable[[Proto], Any]]] = {
    "rate_limits": _read_limits,
    "retry_config": lambda message: read_retry(message.retry_config, RetryConfig()),
    "stackdriver_logging_config": _read_logging_ratio,
}
"""The groups of a queue's settings, and what reads each from a message."""
_FIELDWISE: Final = frozenset({"rate_limits", "retry_config"})
"""Groups of which a mask may name a part. The others are replaced as a whole."""
