"""`queues.yaml`: queues to create at startup.

A queue is written as gcloud writes it: either with the flags of `gcloud tasks queues create`, or as
`gcloud tasks queues describe` prints it::

    project: demo
    location: us-central1
    queues:
      - name: default
        max-dispatches-per-second: 10
        max-attempts: 5
        min-backoff: 2s
      - name: projects/demo/locations/europe-west1/queues/slow
        rateLimits: {maxConcurrentDispatches: 1}
        state: PAUSED

The output of `gcloud tasks queues list --format=yaml` is a valid file, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from google.protobuf import json_format  # type: ignore[import-untyped]

from cloudsched.emulator.api import messages
from cloudsched.emulator.api.queue_codec import PAUSED, read_config
from cloudsched.emulator.api.task_codec import check_backoff
from cloudsched.emulator.model import names
from cloudsched.emulator.model.errors import RpcError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from cloudsched.emulator.api.messages import Proto
    from cloudsched.emulator.model.queues import Queues

_Queue: Final = messages.message_class("Queue")
_FLAGS: Final = {
    "max-dispatches-per-second": ("rateLimits", "maxDispatchesPerSecond"),
    "max-concurrent-dispatches": ("rateLimits", "maxConcurrentDispatches"),
    "max-attempts": ("retryConfig", "maxAttempts"),
    "max-retry-duration": ("retryConfig", "maxRetryDuration"),
    "min-backoff": ("retryConfig", "minBackoff"),
    "max-backoff": ("retryConfig", "maxBackoff"),
    "max-doublings": ("retryConfig", "maxDoublings"),
    "log-sampling-ratio": ("stackdriverLoggingConfig", "samplingRatio"),
}
_UNLIMITED: Final = -1


class BadQueue(ValueError):
    """A queue declaration is invalid; the message names the queue and the problem."""


def read_queues_file(path: Path) -> list[Proto]:
    """Read the queues that a file declares, as `Queue` messages.

    Raises:
        BadQueue: if it is not such a file, or a queue in it is invalid.
        OSError: if it cannot be read.
    """
    import yaml  # noqa: PLC0415 - needed only for such a file

    try:
        documents = [document for document in yaml.safe_load_all(path.read_text("utf-8")) if document is not None]
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise BadQueue(f"{path} is not YAML: {error}") from None
    return [message for document in documents for message in _read_document(document, str(path))]


def read_settings(name: str, settings: Mapping[str, Any]) -> Proto:
    """Return the `Queue` message for a name and its settings, in either of gcloud's spellings.

    Raises:
        BadQueue: if a setting is unknown or its value is invalid.
    """
    content: dict[str, Any] = {}
    for key, value in settings.items():
        if key in _FLAGS:
            group, field = _FLAGS[key]
            content.setdefault(group, {})[field] = _UNLIMITED if value == "unlimited" else value
        elif key == "routing-override":
            content["appEngineRoutingOverride"] = _parse_routing(value)
        elif key != "name":
            content[key] = value
    try:
        message = json_format.ParseDict({**content, "name": name}, _Queue(), descriptor_pool=messages.POOL)
        names.check_queue(name)
        check_backoff(read_config(message).retry_config)
    except (json_format.ParseError, RpcError, ValueError, TypeError, AttributeError) as error:
        problem = error.message if isinstance(error, RpcError) else str(error)
        raise BadQueue(f"The queue {name!r}: {problem}") from None
    return message


QueueDeclarations = Path | Iterable[Path | str] | Mapping[str, Mapping[str, Any]] | None
"""The forms of a declaration: files, full names, or a mapping from full names to settings in gcloud's names."""


def read_queues(queues: QueueDeclarations) -> list[Proto]:
    """Read queues in any of the forms of a declaration, as `Queue` messages.

    Raises:
        BadQueue: if one is invalid.
        OSError: if a file cannot be read.
    """
    if queues is None:
        return []
    if isinstance(queues, Mapping):
        return [read_settings(name, settings) for name, settings in queues.items()]
    queue_messages: list[Proto] = []
    for declared in [queues] if isinstance(queues, Path) else queues:
        queue_messages += read_queues_file(declared) if isinstance(declared, Path) else [read_settings(declared, {})]
    return queue_messages


def create_declared_queues(queues: Queues, declared: Iterable[Proto], now: datetime) -> None:
    """Create the declared queues that do not exist yet."""
    for message in declared:
        if message.name not in queues.queues:
            queues.deleted_at.pop(message.name, None)
            queues.create_queue(message.name, read_config(message), now)
            if message.state == PAUSED:
                queues.pause_queue(message.name, paused=True)


def _read_document(document: object, where: str) -> Iterator[Proto]:
    if isinstance(document, list):
        document = {"queues": document}
    if not isinstance(document, dict):
        raise BadQueue(f"{where}: a queue is a mapping, not {document!r}.")
    queues = document.get("queues", [document] if "name" in document else None)
    if not isinstance(queues, list):
        raise BadQueue(f"{where} needs a list of `queues`.")
    for settings in queues:
        if not isinstance(settings, dict) or not isinstance(settings.get("name"), str):
            raise BadQueue(f"{where}: a queue needs a `name`: {settings!r}")
        name = settings["name"]
        if "/" not in name:
            project, location = document.get("project"), document.get("location")
            if not project or not location:
                raise BadQueue(f"{where}: the short name {name!r} needs `project` and `location` above the queues.")
            name = f"projects/{project}/locations/{location}/queues/{name}"
        yield read_settings(name, settings)


def _parse_routing(value: object) -> dict[str, str]:
    """Parse `service:abc,version:v1`, as in gcloud's flag."""
    parts = (part.partition(":") for part in str(value).split(","))
    return {key.strip(): text.strip() for key, _, text in parts}
