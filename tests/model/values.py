"""Stored documents as small numbers: what is equal is the same number, so a whole store is a number as well.

What nobody decides by is left out of a document, so that states that differ in nothing else are met once: sums of use,
histories and messages for people, and when earlier attempts began and ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from pydantic import BaseModel
from tests.engine.harness import SECOND

from cloudsched.domain.documents.execution import Execution, lease_fingerprint
from cloudsched.domain.documents.task import Task
from cloudsched.domain.transitions.commit import TaskWrite

START: Final = datetime(2027, 3, 1, 9, 0, tzinfo=UTC)
"""The instant 0 of every world."""
Key = str
"""Where a document is stored: ``task/a``, ``record/a/…``, ``lock/k``."""


def to_instant(seconds: int) -> datetime:
    return START + timedelta(seconds=seconds)


def to_seconds(instant: datetime) -> int:
    """Return when an instant is, rounded up: whoever waits for it has waited then."""
    return -((START - instant) // SECOND)


class Call(NamedTuple):
    """What a process asks of a port."""

    kind: str
    key: tuple[Any, ...]
    """What tells it from every other of its kind."""
    content: Any = None
    """What it carries, in the form of its kind."""


@dataclass(frozen=True)
class Writes:
    """A commit: what must still be as it was read, and what is written."""

    checks: tuple[tuple[Key, int | None], ...]
    documents: tuple[tuple[Key, int | None], ...]
    """None deletes."""
    tasks: tuple[TaskWrite, ...]
    """The tasks in it, for the rules."""
    required: tuple[tuple[Key, tuple[str, Any]], ...] = ()
    """What must exist, and the one field of each that is written, with its value."""
    emptied: tuple[Key, ...] = ()
    """The beginnings of the keys of all that is deleted."""


def _strip_attempts(attempts: Iterable[Any]) -> tuple[Any, ...]:
    same = {"started_at": START, "finished_at": START}
    return tuple(each.model_copy(update=same) for each in attempts)


def strip_task(task: Task) -> Task:
    """Return a task without what nobody decides by."""
    runs = tuple(
        run.model_copy(update={"attempts": _strip_attempts(run.attempts)}) if run.attempts else run for run in task.runs
    )
    unread = {"usage": (), "history": (), "recent_outcomes": (), "message": ""}
    return task.model_copy(update={**unread, "runs": runs})


def strip_execution(record: Execution) -> Execution:
    """Return a record without what nobody decides by."""
    finished_at = None if record.finished_at is None else START
    same = {"message": None, "finished_at": finished_at, "attempts": _strip_attempts(record.attempts)}
    return record.model_copy(update=same)


class Values:
    """All documents and stores that were met."""

    def __init__(self) -> None:
        self._ids: dict[tuple[str, str], int] = {}
        self.documents: list[Any] = []
        self.texts: list[str] = []
        self._rounds: dict[int, tuple[int, int]] = {}
        self._again: dict[tuple[int, int], int] = {}
        self._snapshot_ids: dict[frozenset[tuple[Key, int]], int] = {}
        self.snapshots: list[Mapping[Key, int]] = []
        self._fingerprints: list[str] = []
        self._tokens_in_use: dict[int, frozenset[int]] = {}

    def keep(self, document: BaseModel) -> int:
        if isinstance(document, Task):
            document = strip_task(document)
        elif isinstance(document, Execution):
            document = strip_execution(document)
        text = document.model_dump_json(by_alias=True, exclude_defaults=True)
        key = type(document).__name__, text
        known = self._ids.get(key)
        if known is None:
            known = self._ids[key] = len(self.documents)
            self.documents.append(document)
            self.texts.append(text)
        return known

    def again(self, number: int) -> int:
        """Return the number of the same document, written once more: its version is another one."""
        base, round_ = self._rounds.get(number, (number, 0))
        following = base, (round_ + 1) % 3
        known = self._again.get(following)
        if known is None and following[1] == 0:
            known = base
        if known is None:
            known = self._again[following] = len(self.documents)
            self._rounds[known] = following
            self.documents.append(self.documents[base])
            self.texts.append(self.texts[base])
        return known

    def keep_snapshot(self, content: Mapping[Key, int]) -> int:
        key = frozenset(content.items())
        known = self._snapshot_ids.get(key)
        if known is None:
            known = self._snapshot_ids[key] = len(self.snapshots)
            self.snapshots.append(content)
        return known

    def find(self, snapshot: int, key: Key) -> Any:  # noqa: ANN401 - a document
        number = self.snapshots[snapshot].get(key)
        return None if number is None else self.documents[number]

    def tasks(self, snapshot: int) -> list[Task]:
        """Return the tasks of a store, by their ids."""
        found = self.snapshots[snapshot]
        return [self.documents[found[key]] for key in sorted(found) if key.startswith("task/")]

    def tokens_in(self, snapshot: int) -> frozenset[int]:
        """Return the numbers of the lease tokens whose hashes are in a store."""
        found = self._tokens_in_use.get(snapshot)
        if found is None:
            texts = [self.texts[number] for key, number in self.snapshots[snapshot].items() if key.startswith("task/")]
            found = frozenset(
                number for number, name in enumerate(self._fingerprints) if any(name in text for text in texts)
            )
            self._tokens_in_use[snapshot] = found
        return found

    def token(self, number: int) -> str:
        text = f"{number:032x}"
        while len(self._fingerprints) <= number:
            self._fingerprints.append(lease_fingerprint(f"{len(self._fingerprints):032x}"))
            self._tokens_in_use.clear()
        return text
