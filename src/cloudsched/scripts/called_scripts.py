"""Stored scripts as executions use them: read once, and counted when they call each other."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.documents.task import Task
from cloudsched.engine.state.record_changes import change_record, find_record
from cloudsched.errors import LimitExceeded, ScriptFailed
from cloudsched.scripts.documents import (
    MAX_TREE_CALLS,
    ScriptTree,
    StoredScript,
    script_key,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.records import RecordStore


_COUNTED_FOR: Final = timedelta(days=400)


class CalledScripts:
    """Reads stored scripts for executions, and counts their calls of each other."""

    def __init__(self, records: Callable[[], RecordStore], clock: Clock) -> None:
        self._records = records
        self._clock = clock

    def find(self, owner: str, name: str) -> StoredScript | None:
        """Return an owner's script as it is stored now. One document is read."""
        script = find_record(self._records(), StoredScript, script_key(owner, name))
        return script if script is not None and script.owner == owner else None

    def load(self, owner: str, name: str) -> dict[str, Any]:
        """Return what an execution records of a script, so that it runs to its end. Raises ScriptFailed."""
        script = self.find(owner, name)
        if script is None:
            raise ScriptFailed(f"There is no stored script {name!r}.")
        return {
            "version": script.version,
            "source": script.source,
            "tools": None if script.tools is None else list(script.tools),
            "definedBy": script.defined_by,
        }

    def count_call(self, tree: str, owner: str) -> None:
        """Count a call of a script below the top execution. It is a read and a write. Raises LimitExceeded."""

        def count(known: ScriptTree | None) -> ScriptTree:
            now = self._clock.now()
            calls = 1 if known is None else known.calls + 1
            if calls > MAX_TREE_CALLS:
                most = f"{MAX_TREE_CALLS} times, the most for one run"
                raise LimitExceeded(f"Scripts call each other more than {most}.")
            return ScriptTree(
                id=tree,
                owner=owner,
                created_at=now,
                updated_at=now,
                expire_at=now + _COUNTED_FOR,
                calls=calls,
            )

        change_record(self._records(), ScriptTree, tree, count)


def find_tree(task: Task, execution_id: str) -> str:
    """Return the execution for which a task's calls of scripts are counted."""
    above = task.parent and task.parent.script_tree
    return above or f"{task.id}.{execution_id}"
