"""The stand-in for production refuses the commits that Firestore's documented limits refuse, and the emulator takes."""

from __future__ import annotations

import re
from typing import Any

import pytest
from google.cloud.firestore_v1.types import firestore
from tests.adapters.firestore.index_rules import Indexes
from tests.adapters.firestore.write_rules import why_commit_refused

from cloudsched.adapters.firestore.values import encode_fields

UP = "ASCENDING"


def index(*fields: str) -> dict[str, Any]:
    """Return a composite index; a field with brackets is an array, by its elements."""
    parts = [
        {"fieldPath": field.removesuffix("[]"), **({"arrayConfig": "CONTAINS"} if "[]" in field else {"order": UP})}
        for field in fields
    ]
    return {"collectionGroup": "cities", "queryScope": "COLLECTION", "fields": parts}


INDEXES = Indexes.from_content(
    {"indexes": [index("names[]", "at.year"), index("a", "b", "c", "d", "e", "f")], "fieldOverrides": []}
)
LONGEST = "x" * 1_500


def commit(collection: str = "cities", **fields: Any) -> Any:  # noqa: ANN401 - a protobuf message
    request = firestore.CommitRequest.pb(firestore.CommitRequest())
    write = request.writes.add()
    write.update.name = f"projects/p/databases/(default)/documents/{collection}/denver"
    encode_fields(write.update.fields, fields)
    return request


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"names": ["x"] * 40_001, "at": {"year": 1}}, "40001 index entries"),
        ({"names": ["x", LONGEST + "x"], "at": {"year": 1}}, r"names\[\] of cities/denver is longer"),
        (dict.fromkeys("abcdef", LONGEST), "An entry of cities .* has 9098 bytes"),
        ({"other": "x" * 10 * 1024 * 1024}, "The commit has"),
    ],
    ids=["entries", "long text", "long entry", "long commit"],
)
def test_what_is_beyond_a_limit_is_refused(fields: dict[str, Any], reason: str) -> None:
    """With words that name the index or the field."""
    refusal = why_commit_refused(commit(**fields), INDEXES)
    assert refusal is not None
    assert re.search(reason, refusal)
