"""Stored scripts: write, read and delete them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from cloudsched.domain.documents.script import SCRIPT_HANDLER
from cloudsched.domain.transitions.task_draft import TaskDraft
from cloudsched.domain.transitions.validation_errors import join_faults, to_invalid_input
from cloudsched.engine.state.record_changes import change_record
from cloudsched.errors import InvalidInput, NotFound
from cloudsched.scripts.documents import StoredScript, is_script_name, script_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.engine.authority import Authority
    from cloudsched.engine.engine_context import EngineContext
    from cloudsched.engine.ports.records import VersionedRecord


class Scripts:
    """Writes, reads and deletes stored scripts."""

    def __init__(self, engine: EngineContext) -> None:
        self._engine = engine
        self._records = engine.store.records

    def put(
        self,
        name: str,
        owner: str,
        *,
        source: str,
        description: str = "",
        tools: Sequence[str] | None = None,
        by: Authority,
    ) -> StoredScript:
        """Create or replace a script. A run that has begun goes on with its version.

        Only this owner's tasks and scripts can run it. A user's script may call only what users may,
        whoever runs it. Raises Forbidden or InvalidInput.
        """
        by.require_owner(owner)
        if not is_script_name(name):
            hint = "Give 1 to 64 letters, digits, hyphens and underscores; not then, nor toJSON."
            raise InvalidInput("name", f"is {name[:80]!r}", hint)
        self._check(name, owner, source, tools, by)
        key = script_key(owner, name)
        allowed = None if tools is None else tuple(tools)

        def write(before: StoredScript | None) -> StoredScript:
            now = created_at = self._engine.clock.now()
            version = 1
            if before is None:
                self._require_room(owner)
            else:
                by.require_author("script", before.defined_by)
                created_at = before.created_at
                version = before.version + ((before.source, before.tools) != (source, allowed))
            return _make(
                id=key,
                owner=owner,
                name=name,
                description=description,
                source=source,
                tools=allowed,
                version=version,
                defined_by=by.author,
                created_at=created_at,
                updated_at=now,
            )

        return change_record(self._records, StoredScript, key, write)

    def get(self, name: str, owner: str) -> StoredScript:
        """Return an owner's script. Raises NotFound."""
        return self._load(name, owner).record

    def list(self, owner: str) -> Sequence[StoredScript]:
        """Return an owner's scripts, by name."""
        return self._records.list(StoredScript, owner, limit=StoredScript.max_per_owner)

    def delete(self, name: str, owner: str, *, by: Authority) -> None:
        """Delete a script. Runs that have begun go on, and later ones fail. Raises Forbidden or NotFound."""
        by.require_owner(owner)
        stored = self._load(name, owner)
        by.require_author("script", stored.record.defined_by)
        self._records.delete(StoredScript, stored.record.id, stored.version)

    def _load(self, name: str, owner: str) -> VersionedRecord[StoredScript]:
        if is_script_name(name):
            stored = self._records.load(StoredScript, script_key(owner, name))
            if stored is not None and stored.record.owner == owner:
                return stored
        raise NotFound("script", name)

    def _check(
        self,
        name: str,
        owner: str,
        source: str,
        tools: Sequence[str] | None,
        by: Authority,
    ) -> None:
        """Check a script as that of a task. Raises InvalidInput."""
        script: dict[str, Any] = {"source": source}
        if tools is not None:
            script["tools"] = list(tools)
        check = self._engine.registry.get(SCRIPT_HANDLER).check
        try:
            draft = TaskDraft.of(owner=owner, title=name, script=script)
            if check is not None:
                check(draft, by.requesters)
        except InvalidInput as error:
            faults = [(each.field.removeprefix("script."), each.problem, each.hint) for each in error.faults]
            raise join_faults([InvalidInput(*each) for each in faults]) from None

    def _require_room(self, owner: str) -> None:
        most = StoredScript.max_per_owner
        if len(self._records.list(StoredScript, owner, limit=most)) >= most:
            problem = f"has {most} scripts, as many as one may have"
            raise InvalidInput("owner", problem, "Delete one that is not used.")


def _make(**fields: Any) -> StoredScript:
    try:
        return StoredScript(**fields)
    except ValidationError as error:
        raise to_invalid_input(error, model=StoredScript) from None
