"""Stored scripts: JavaScript that an owner's tasks run by its name. ``scripts/{scriptId}``.

A script's id begins with a hash of its owner, so nobody can name another's.
"""

from __future__ import annotations

import re
from typing import ClassVar, Final

from cloudsched.domain.documents.authority import Requesters  # noqa: TC001 - a field's type
from cloudsched.domain.documents.record import Record
from cloudsched.domain.documents.script import ScriptSource  # noqa: TC001 - a field's type
from cloudsched.domain.documents.task import LongText, owner_id_prefix

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
_TAKEN: Final = frozenset({"then", "toJSON"})
"""JavaScript itself asks every object for these."""
MAX_TREE_CALLS: Final = 1000
"""The most calls of scripts by an execution of a task and all the scripts below it together."""


class StoredScript(Record):
    """One script."""

    collection: ClassVar[str] = "scripts"
    is_exported: ClassVar[bool] = True

    name: str
    description: LongText = ""
    source: ScriptSource
    tools: tuple[str, ...] | None = None
    """The handlers that it may call, or None for all that are tools."""
    version: int = 1
    """Incremented whenever its source or its tools change."""
    defined_by: Requesters | None = None
    """USERS if a user wrote it, which limits what it may call, whoever runs it."""


class ScriptTree(Record):
    """The calls of scripts that the execution of a task has led to. ``scriptTrees/{taskId}.{executionId}``."""

    collection: ClassVar[str] = "scriptTrees"

    calls: int


def script_key(owner: str, name: str) -> str:
    """Return the id under which an owner's script is stored."""
    return owner_id_prefix(owner) + name


def is_script_name(name: str) -> bool:
    """Return whether it has only letters, digits, hyphens and underscores, and is not ``then`` or ``toJSON``."""
    return _NAME.fullmatch(name) is not None and name not in _TAKEN
