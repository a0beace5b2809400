"""Copies of documents with changed fields."""

from __future__ import annotations

import pickle
from datetime import timedelta

import pytest
from pydantic import BaseModel, ValidationError
from tests.harness import START

from cloudsched.domain.documents.execution import Attempt, ExecutionStatus, Run

RUN = Run(execution_id="20270101T090000Z", scheduled_for=START, due_at=START)


@pytest.mark.parametrize("changes", [None, {}, {"attempt": 2}, {"due_at": START + timedelta(days=1), "attempts": ()}])
def test_a_copy_is_what_pydantic_makes(changes: dict[str, object] | None) -> None:
    """Fields, what counts as given, and what is stored are those of pydantic's own copy; the original stays."""
    before = RUN.model_dump()
    copied, expected = RUN.model_copy(update=changes), BaseModel.model_copy(RUN, update=changes)
    assert copied == expected
    assert copied.model_fields_set == expected.model_fields_set
    assert copied.model_dump_json() == expected.model_dump_json()
    assert pickle.loads(pickle.dumps(copied)) == expected  # noqa: S301 - our own
    assert RUN.model_dump() == before


def test_a_copy_can_be_copied_and_not_changed() -> None:
    """A copy is as frozen as the original, and copies of copies keep all changes."""
    twice = RUN.model_copy(update={"attempt": 2}).model_copy(update={"note": "Later"})
    assert (twice.attempt, twice.note) == (2, "Later")
    with pytest.raises(ValidationError, match="frozen"):
        twice.attempt = 3  # type: ignore[misc]


def test_a_deep_copy_shares_nothing() -> None:
    """`deep` copies the parts as well."""
    attempt = Attempt(number=1, started_at=START, finished_at=START, status=ExecutionStatus.FAILED)
    run = RUN.with_attempt(attempt)
    assert run.model_copy(deep=True) == run
    assert run.model_copy(deep=True).attempts[0] is not run.attempts[0]
