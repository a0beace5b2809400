"""What a task runs, and who says so. An execution keeps what it began with: an edit concerns later runs."""

from __future__ import annotations

import json
from typing import Any, Final

from pydantic import BaseModel, Field

from cloudsched.domain.documents.authority import Requesters
from cloudsched.domain.documents.children import Child, OnChildFailure
from cloudsched.domain.documents.document import WireModel
from cloudsched.domain.documents.script import Script


class Definition(WireModel):
    """What an execution has begun to run; its task may have been edited since."""

    number: int = 0
    """By which open runs name it in their task."""
    handler: str
    payload: dict[str, Any] = Field(default_factory=dict)
    """Its task's payload; empty in the record of an execution that has a payload of its own."""
    children: tuple[Child, ...] = ()
    parallel: bool = False
    on_child_failure: OnChildFailure = OnChildFailure.FAIL
    script: Script | None = None
    defined_by: Requesters | None = None
    """USERS if a user wrote or edited it; None if only servers did."""

    def to_fields(self) -> dict[str, Any]:
        """Return the fields of a task that runs this."""
        return {name: getattr(self, name) for name in DEFINED}

    def is_same(self, other: Definition) -> bool:
        """Return whether both run the same. JSON tells apart what Python calls equal: 1 and true."""
        ours, theirs = (json.dumps(each.to_fields(), default=_dump, sort_keys=True) for each in (self, other))
        return ours == theirs


def _dump(value: object) -> object:
    return value.model_dump() if isinstance(value, BaseModel) else str(value)


DEFINED: Final = tuple(name for name in Definition.model_fields if name != "number")
"""The fields of a task that say what it runs, and by whose word."""
