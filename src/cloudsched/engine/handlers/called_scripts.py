"""Stored scripts as executions see them: the version that one begins with, and how many calls they make."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.documents.stored_script import MAX_TREE_CALLS, ScriptTree, StoredScript, script_key
from cloudsched.engine.state.record_changes import change_record
from cloudsched.errors import LimitExceeded, ScriptFailed

if TYPE_CHECKING:
    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.store import RecordStore

CALL_PREFIX: Final = "scripts."
"""The prefix of the names of calls of scripts in the journal, as in the script itself."""
_COUNTED_FOR: Final = timedelta(days=400)


class CalledScripts:
    """Reads stored scripts for executions, and counts their calls of each other."""

    def __init__(self, records: Callable[[], RecordStore], clock: Clock) -> None:
        self._records = records
        self._clock = clock

    def find(self, owner: str, name: str) -> StoredScript | None:
        """Return an owner's script as it is stored now. One document is read."""
        stored = self._records().load(StoredScript, script_key(owner, name))
        return None if stored is None or stored.record.owner != owner else stored.record

    def load(self, owner: str, name: str) -> dict[str, Any]:
        """Return what an execution records of a script, to run that to its end. Raises ScriptFailed."""
        script = self.find(owner, name)
        if script is None:
            raise ScriptFailed(f"There is no stored script {name!r}.")
        tools = None if script.tools is None else list(script.tools)
        return {"version": script.version, "source": script.source, "tools": tools, "definedBy": script.defined_by}

    def count_call(self, tree: str, owner: str) -> None:
        """Count one more call of a script below the top execution: a read and a write. Raises LimitExceeded."""

        def count(known: ScriptTree | None) -> ScriptTree:
            now = self._clock.now()
            calls = 1 if known is None else known.calls + 1
            if calls > MAX_TREE_CALLS:
                raise LimitExceeded(f"Scripts call each other more than {MAX_TREE_CALLS} times, the most for one run.")
            return ScriptTree(
                id=tree, owner=owner, created_at=now, updated_at=now, expire_at=now + _COUNTED_FOR, calls=calls
            )

        change_record(self._records(), ScriptTree, tree, count)


def find_tree(task: Task, execution_id: str) -> str:
    """Return the execution for which a task's calls of scripts are counted."""
    above = None if task.parent is None else task.parent.script_tree
    return above or f"{task.id}.{execution_id}"
