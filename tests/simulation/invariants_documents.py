"""What is stored of each commit, held against what a store that writes only changes would have.

SQLite writes a task as a whole, Firestore only the fields that differ from what is stored. So each commit is applied
here as Firestore would.
"""

from __future__ import annotations

import json

from pydantic_core import to_jsonable_python

from cloudsched.adapters.firestore.protos import Document as Proto
from cloudsched.adapters.firestore.values import decode, encode_model
from cloudsched.domain.documents.document import Document, find_changes, list_stored_fields
from cloudsched.domain.documents.task import Task
from cloudsched.domain.transitions.commit import Commit, TaskWrite

_KEYS = {each.name: each.key for each in list_stored_fields(Task)}


class DocumentInvariants:
    """The documents of all tasks, as updates of what has changed make them."""

    def __init__(self) -> None:
        self._stored: dict[str, tuple[Task, dict[str, str]]] = {}

    def on_commit(self, commit: Commit) -> None:
        for write in (commit, *commit.others):
            self._update(write)
            for execution in write.executions:
                check_encoding(execution)
        for document in (*commit.messages, *commit.entries):
            check_encoding(document)

    def _update(self, write: TaskWrite) -> None:
        task, whole = write.task, check_encoding(write.task)
        stored = whole
        if write.base is not None:
            before, document = self._stored[task.id]
            stored = dict(document)
            for name in find_changes(before, task):
                stored.pop(_KEYS[name], None)
                if _KEYS[name] in whole:
                    stored[_KEYS[name]] = whole[_KEYS[name]]
            assert stored == whole, "an update of what has changed leaves the same as writing everything"
        self._stored[task.id] = task, stored


def check_encoding(document: Document) -> dict[str, str]:
    """Check that both stores keep the same of a document, and read it as it was; return the JSON of each field."""
    kind, proto, body = type(document), Proto(), document.to_stored_json()
    encode_model(proto.fields, document)
    sent = decode(proto.fields)
    for read in (kind.from_stored("it", sent), kind.from_stored_json("it", body.encode())):
        assert read == document, "a document is read as it was written"
        again = read.to_stored_json()
        assert again == body or _sort(json.loads(again)) == _sort(json.loads(body)), (
            "JSON tells apart what Python calls equal"
        )
    return {key: _sort(value) for key, value in to_jsonable_python(sent).items()}


_sort = json.JSONEncoder(sort_keys=True).encode
