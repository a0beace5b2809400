"""A class name means one thing wherever you read it."""

from __future__ import annotations

import ast
from collections import defaultdict

from tests.architecture.picture import read_modules

EXCEPTIONS = {
    "AwaitedEvent": "the error shows it, and the schema of the response has its name",
    "Execution": "the document, and its response by the same name of the schema",
    "Feed": "the record, and its response by the same name of the schema",
    "Person": "the record, and its response by the same name of the schema",
    "Task": "the document, and its response by the same name of the schema",
    "UsageRow": "a line of the report, and its response by the same name of the schema",
    "Attempt": "users of `cloudsched.emulator` import theirs; the engine has the record and what makes it",
    "Faults": "users of `cloudsched.emulator` import theirs",
    "Delivery": "users of `cloudsched.testing` import theirs",
    "Event": "what a handler waits for, and a VEVENT of RFC 5545",
}
REPLACED = "language/"
"""The reader of phrases, which is about to be replaced, keeps its names for parts of a phrase until then."""


def test_a_class_name_occurs_once() -> None:
    """You find the class that a sentence or a traceback names, without asking in which package it stands."""
    homes: defaultdict[str, list[str]] = defaultdict(list)
    for module, tree in read_modules().items():
        if not module.startswith(REPLACED):
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef):
                    homes[node.name].append(module)

    assert {name: homes[name] for name in homes if len(homes[name]) > 1 and name not in EXCEPTIONS} == {}
    assert [name for name in EXCEPTIONS if len(homes[name]) < 2] == []
