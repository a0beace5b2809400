"""Convert queues between wire messages and the model, and apply update masks.

Source: the comments of `google/cloud/tasks/v2/{queue,cloudtasks,target}.proto`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from cloudsched.emulator.api.messages import MESSAGES, Proto
from cloudsched.emulator.api.task_codec import read_retry, set_timestamp, write_retry
from cloudsched.emulator.model.errors import invalid_argument
from cloudsched.emulator.model.queue import Queue, QueueConfig
from cloudsched.emulator.model.task import RateLimits, RetryConfig

RUNNING: Final = 1
PAUSED: Final = 2
MAX_RATE: Final = 500.0
MAX_CONCURRENT: Final = 5000
_OUTPUT_ONLY: Final = frozenset({"name", "state", "purge_time", "rate_limits.max_burst_size"})
_Change = Callable[[QueueConfig, Proto], QueueConfig]


def write_queue(queue: Queue) -> Proto:
    """Return a queue as a message."""
    config = queue.config
    message = MESSAGES["Queue"](name=queue.name, state=PAUSED if queue.paused else RUNNING)
    limits = message.rate_limits
    limits.max_dispatches_per_second = config.rate_limits.max_dispatches_per_second
    limits.max_burst_size = config.rate_limits.max_burst_size
    limits.max_concurrent_dispatches = config.rate_limits.max_concurrent_dispatches
    write_retry(message.retry_config, config.retry_config)
    if config.logging_ratio is not None:
        message.stackdriver_logging_config.sampling_ratio = config.logging_ratio
    if queue.purged_at is not None:
        set_timestamp(message.purge_time, queue.purged_at)
    return message


def read_config(message: Proto) -> QueueConfig:
    """Return the configuration in a message. Unset fields get the service's defaults."""
    return apply_update_mask(QueueConfig(), message, _GROUPS)


def apply_update_mask(config: QueueConfig, message: Proto, paths: Iterable[str]) -> QueueConfig:
    """Return the configuration with the fields of an update mask taken from the message.

    A path may name a group (`retry_config`) or a field (`retry_config.max_attempts`), in snake_case or camelCase. A
    field that the message leaves unset returns to its default. Output-only fields are ignored.
    """
    for path in paths:
        config = _find_change(_to_snake_case(path))(config, message)
    return config


def _find_change(path: str) -> _Change:
    if path in _OUTPUT_ONLY:
        return lambda config, _message: config
    for candidate in (path, path.partition(".")[0]):
        if candidate in _FIELDS and (candidate == path or candidate in _ATOMIC_GROUPS):
            return _FIELDS[candidate]
    raise invalid_argument(f"The update mask names an unknown field: {path!r}.")


def _to_snake_case(path: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in path)


def _apply_rate(config: QueueConfig, message: Proto) -> QueueConfig:
    rate = message.rate_limits.max_dispatches_per_second
    if rate < 0:
        raise invalid_argument("RateLimits.maxDispatchesPerSecond cannot be negative.")
    if math.isnan(rate) or rate > MAX_RATE:
        raise invalid_argument(f"RateLimits.maxDispatchesPerSecond must be less than or equal to {MAX_RATE:g}.")
    rate = rate or RateLimits().max_dispatches_per_second
    return replace(config, rate_limits=replace(config.rate_limits, max_dispatches_per_second=rate))


def _apply_concurrency(config: QueueConfig, message: Proto) -> QueueConfig:
    limit = message.rate_limits.max_concurrent_dispatches
    if limit < 0:
        raise invalid_argument("RateLimits.maxConcurrentDispatches cannot be negative.")
    if limit > MAX_CONCURRENT:
        raise invalid_argument(f"RateLimits.maxConcurrentDispatches must be less than or equal to {MAX_CONCURRENT}.")
    limit = limit or RateLimits().max_concurrent_dispatches
    return replace(config, rate_limits=replace(config.rate_limits, max_concurrent_dispatches=limit))


def _make_retry_field_change(name: str) -> _Change:
    def change(config: QueueConfig, message: Proto) -> QueueConfig:
        value = getattr(read_retry(message.retry_config, RetryConfig()), name)
        if name == "max_doublings":  # named in a mask, zero means zero
            value = message.retry_config.max_doublings
        return replace(config, retry_config=replace(config.retry_config, **{name: value}))

    return change


def _apply_retry(config: QueueConfig, message: Proto) -> QueueConfig:
    return replace(config, retry_config=read_retry(message.retry_config, RetryConfig()))


def _refuse_http_target(config: QueueConfig, message: Proto) -> QueueConfig:
    if message.HasField("http_target"):
        raise invalid_argument("Queue.httpTarget: in the emulator each task has its own request, and no queue has one.")
    return config


def _apply_logging(config: QueueConfig, message: Proto) -> QueueConfig:
    if not message.HasField("stackdriver_logging_config"):
        return replace(config, logging_ratio=None)
    ratio = message.stackdriver_logging_config.sampling_ratio
    if not 0.0 <= ratio <= 1.0:
        raise invalid_argument("StackdriverLoggingConfig.samplingRatio must be between 0 and 1.")
    return replace(config, logging_ratio=ratio)


def _apply_rates(config: QueueConfig, message: Proto) -> QueueConfig:
    return _apply_concurrency(_apply_rate(config, message), message)


_ATOMIC_GROUPS: Final = frozenset({"http_target", "stackdriver_logging_config"})
"""Groups that are replaced as a whole, even when a mask names only a part of them."""
_FIELDS: Final[dict[str, _Change]] = {
    "rate_limits": _apply_rates,
    "rate_limits.max_dispatches_per_second": _apply_rate,
    "rate_limits.max_concurrent_dispatches": _apply_concurrency,
    "retry_config": _apply_retry,
    **{
        f"retry_config.{name}": _make_retry_field_change(name)
        for name in ("max_attempts", "max_retry_duration", "min_backoff", "max_backoff", "max_doublings")
    },
    "http_target": _refuse_http_target,
    "stackdriver_logging_config": _apply_logging,
}
_GROUPS: Final = ("rate_limits", "retry_config", *sorted(_ATOMIC_GROUPS))
