"""What agents read when the API refuses a call: in the words of the tool, and with what to do next."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from cloudsched.errors import (
    CloudschedError,
    Forbidden,
    InvalidInput,
    KeyReused,
    NotFound,
    Unauthenticated,
    Unavailable,
    VersionConflict,
)

if TYPE_CHECKING:
    from collections.abc import Collection

_ARGUMENTS: Final = {
    "schedule": ("when",),
    "text": ("when",),
    "timezone": ("move_to_zone", "zone"),
    "deliveryChannels": ("channels",),
    "delivery_channels": ("channels",),
    "payloadMerge": ("payload_merge",),
    "payload": ("payload", "payload_merge"),
    "executionId": ("run",),
    "execution_id": ("run",),
    "idempotencyKey": ("key",),
    "pageToken": ("cursor",),
    "search": ("words",),
    "occurrence": ("run_at", "to"),
}
"""The arguments of tools that stand for a field of the API. The first one that a tool has is meant."""
_OF_PROGRAMS: Final = re.compile(
    r"@app\.|\bapp\.\w+\(|/v1/|/openapi|\b(?:GET|PUT|POST|PATCH|DELETE)\b|Idempotency-Key|If-Match|X-[A-Z]|CLOUDSCHED_|Schedule\."
    r"|--\w|draftToken|nextPageToken|fromStep|executionId|deliveryChannels|delivery_channels|payloadMerge|\bInstall\b|\bPython\b"
)
"""What only a programmer or an operator can use."""
_WORDS: Final = (("an execution", "a run"), ("execution", "run"), ("trigger the task", "call run_task"))
"""What the API says, and what tools call it."""
_SENTENCES: Final = re.compile(r"(?<=[.!?])\s+|;\s+|\n")


def advise(error: CloudschedError, arguments: Collection[str]) -> str:
    """Return what an agent reads of an error of a tool with these arguments."""
    if isinstance(error, Unavailable) and not error.is_retryable:
        return (
            "The scheduler is not set up to do that. Do not repeat the call. Tell the person: its operator has to look."
        )
    for kind, told in _TOLD.items():
        if isinstance(error, kind):
            return " ".join(told.format(said=strip(str(error))).split())
    if not isinstance(error, InvalidInput):
        return strip(str(error))

    faults = " ".join(_say_fault(each, arguments) for each in error.faults)
    if error.readings:
        meant = " ".join(f"'{each['description']}' ({each['label']})." for each in error.readings)
        faults = f"{faults} Ask which one is meant, and call again with its words: {meant}"
    return f"Nothing was done. {faults}"


_TOLD: Final[dict[type[CloudschedError], str]] = {
    Unauthenticated: "The key or token of this connection is not accepted. Do not repeat the call: its owner "
    "has to mend that.",
    Forbidden: "This connection may not do that. {said} Do not repeat the call.",
    KeyReused: "Nothing was done. 'key' stands for another call that was made before: give another one.",
    NotFound: "{said} find_tasks has the ids of tasks, and read_task those of their runs.",
    VersionConflict: "The task has changed meanwhile, and nothing was done. Read it with read_task, and decide again.",
    Unavailable: "The scheduler cannot be reached now, and it is not known whether anything was done. Nothing is wrong "
    "with the call: in a minute, look with find_tasks or read_task before you repeat it.",
}
"""What is told of errors that are about no argument. ``{said}`` is the error's own text."""


def strip(text: str) -> str:
    """Return a text without the sentences that only programmers and operators can use."""
    for theirs, ours in _WORDS:
        text = text.replace(theirs, ours)
    kept = [each.strip() for each in _SENTENCES.split(text) if each.strip() and not _OF_PROGRAMS.search(each)]
    ended = [each if each[-1] in ".!?" else f"{each}." for each in kept]
    return " ".join([*ended[:1], *(each[:1].upper() + each[1:] for each in ended[1:])])


def _say_fault(fault: InvalidInput, arguments: Collection[str]) -> str:
    top, _, inner = fault.field.partition(".")
    named = next((each for each in _ARGUMENTS.get(top, (top,)) if each in arguments), None)
    problem = strip(fault.problem) or "is not valid."
    hint = strip(fault.hint)
    said = f"{problem} {hint[:1].upper()}{hint[1:]}".strip()
    if named is None:
        return said[:1].upper() + said[1:]

    is_shown = inner and named in {"payload", "payload_merge"}
    return f"'{named}{f'.{inner}' if is_shown else ''}': {said}"
