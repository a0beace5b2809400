"""Copies of documents with changed fields."""

from __future__ import annotations

import pickle
from datetime import timedelta

import pytest
from pydantic import BaseModel, Field, ValidationError
from tests.harness import START

from cloudsched.domain.documents.document import WireModel
from cloudsched.domain.documents.execution import Attempt, ExecutionStatus, Run
from cloudsched.domain.documents.usage import UsageCounts

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


def test_what_is_built_is_what_pydantic_makes() -> None:
    """`build` differs from the constructor only in that it does not validate: same fields, order, defaults, JSON."""
    fields = {"number": 1, "started_at": START, "finished_at": START, "status": ExecutionStatus.FAILED}
    for model, values in ((Attempt, fields), (UsageCounts, {"reads": 2}), (Run, dict(RUN))):
        built, expected = model.build(**values), model(**values)
        assert built == expected
        assert built.model_dump_json() == expected.model_dump_json()
        assert built.model_fields_set == expected.model_fields_set
        assert pickle.loads(pickle.dumps(built)) == expected  # noqa: S301 - our own
        with pytest.raises(ValidationError, match="frozen"):
            setattr(built, next(iter(values)), 3)


@pytest.mark.parametrize(("values", "wrong"), [({"number": 1}, "status"), ({"number": 1, "nummer": 2}, "nummer")])
def test_what_is_built_has_all_of_its_fields_and_no_others(values: dict[str, object], wrong: str) -> None:
    """Nothing that cannot be stored or read again is built by mistake."""
    with pytest.raises(TypeError, match=f"Attempt: .*{wrong}"):
        Attempt.build(**values)


def test_defaults_that_could_be_changed_are_not_shared() -> None:
    """An object that is built never has a list in common with another one: it is given its own."""

    class Box(WireModel):
        items: list[int] = Field(default_factory=list)

    class Shelf(WireModel):
        items: list[int] = []  # noqa: RUF012 - what must be refused

    with pytest.raises(TypeError, match="Box: items are missing"):
        Box.build()
    assert Box.build(items=[1]).items == [1]
    with pytest.raises(TypeError, match=r"Shelf\.items"):
        Shelf.build(items=[1])
