"""Convert queues between wire messages and the model, and apply update masks.

Source: the comments of `google/cloud/tasks/v2/{queue,cloudtasks,target}.proto`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Final

from cloudsched.emulator.api.protos import MESSAGES, Proto
from cloudsched.emulator.api.task_codec import read_retry, set_timestamp, write_retry
from cloudsched.emulator.model.errors import invalid_argument
from cloudsched.emulator.model.queue import Queue, QueueConfig
from cloudsched.emulator.model.task import RateLimits, RetryConfig

RUNNING: Final = 1
PAUSED: Final = 2
MAX_RATE: Final = 500.0
MAX_CONCURRENT: Final = 5000
_IGNORED: Final = frozenset({"name", "state", "purge_time", "rate_limits.max_burst_size", "http_target"})
"""Paths of a mask that change nothing: output-only fields, and one that no queue has here."""


def write_queue(queue: Queue) -> Proto:
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

    A path may name a group (`retry_config`) or a field (`retry_config.max_attempts`), in snake_case or camelCase. A
    field that the message leaves unset returns to its default. Output-only fields are ignored.
    """
    if message.HasField("http_target"):
        raise invalid_argument("Queue.httpTarget: in the emulator each task has its own request, and no queue has one.")
    for written in paths:
        path = "".join(f"_{each.lower()}" if each.isupper() else each for each in written)
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
    return config


def _read_limits(message: Proto) -> RateLimits:
    limits, usual = message.rate_limits, RateLimits()
    rate, concurrent = limits.max_dispatches_per_second, limits.max_concurrent_dispatches
    if rate < 0:
        raise invalid_argument("RateLimits.maxDispatchesPerSecond cannot be negative.")
    if math.isnan(rate) or rate > MAX_RATE:
        raise invalid_argument(f"RateLimits.maxDispatchesPerSecond must be less than or equal to {MAX_RATE:g}.")
    if concurrent < 0:
        raise invalid_argument("RateLimits.maxConcurrentDispatches cannot be negative.")
    if concurrent > MAX_CONCURRENT:
        raise invalid_argument(f"RateLimits.maxConcurrentDispatches must be less than or equal to {MAX_CONCURRENT}.")
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
