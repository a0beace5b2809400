"""What is stored leaves out defaults, so the defaults are part of the format: they are frozen here.

``stored_defaults.json`` has them as JSON, by model and by the field's name in documents.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel
from pydantic_core import to_jsonable_python
from tests.conftest import MakeTask
from tests.record_kinds import list_record_kinds

from cloudsched.adapters.firestore import list_fields as own
from cloudsched.adapters.firestore.protos import PRIVATE
from cloudsched.adapters.firestore.protos import Document as Proto
from cloudsched.adapters.firestore.values import decode, encode_model
from cloudsched.domain.documents.document import NO_DEFAULT, Document, get_default, list_stored_fields, to_seconds
from cloudsched.domain.documents.execution import Execution, ExecutionStatus, Lease, Message, Run
from cloudsched.domain.documents.journal import JournalEntry, StepKind
from cloudsched.domain.documents.person import Person
from cloudsched.domain.documents.policy import CatchUp, Priority, RetryPolicy
from cloudsched.domain.documents.task import Parent, PublicTask, Task
from cloudsched.domain.documents.usage import TaskUsage, UsageCounts
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.errors import DamagedDocument
from cloudsched.features.locks.lock import Lock, Waiter
from cloudsched.features.pull.fields import OfferEntry

NOW = datetime(2027, 1, 1, 9, tzinfo=UTC)
ROOT = Path(__file__).parents[3]
FROZEN = Path(__file__).with_name("stored_defaults.json")
COLLECTIONS: dict[str, type[Document]] = {
    "tasks": Task,
    "executions": Execution,
    "messages": Message,
    "steps": JournalEntry,
    "offers": OfferEntry,
    "locks": Lock,
    "waiters": Waiter,
}


@cache
def list_models() -> tuple[type[BaseModel], ...]:
    """Return all models of which something is stored: documents, and what is in them."""
    found: dict[type[BaseModel], None] = {}
    waiting: list[type[BaseModel]] = [*COLLECTIONS.values(), *list_record_kinds()]
    while waiting:
        model = waiting.pop()
        if model in found:
            continue
        found[model] = None
        for field in model.model_fields.values():
            waiting += iter_part_models(field.annotation)
    return tuple(sorted(found, key=lambda each: each.__name__))


def iter_part_models(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for each in get_args(annotation):
        yield from iter_part_models(each)


def describe_defaults(model: type[BaseModel]) -> dict[str, object]:
    """Return the defaults of a model's fields as JSON, by their names in documents."""
    fields = model.model_fields
    defaults = {each.key: get_default(fields[each.name]) for each in list_stored_fields(model)}
    return {
        key: _to_json(value) for key, value in defaults.items() if value is not NO_DEFAULT and key != "schemaVersion"
    }


def _to_json(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return to_seconds(value) if isinstance(value, timedelta) else to_jsonable_python(value)


def test_the_defaults_of_stored_fields_are_frozen() -> None:
    """A field that is missing in a stored document keeps the meaning that it had when the document was written."""
    present = {model.__name__: describe_defaults(model) for model in list_models()}
    assert len(present) == len(list_models()), "two models have the same name"
    frozen = json.loads(FROZEN.read_text(encoding="utf-8"))
    changed = [
        f"{name}.{key}: {defaults[key]!r} became {present.get(name, {}).get(key, 'no default, or no field')!r}"
        for name, defaults in frozen.items()
        for key in defaults
        if key not in present.get(name, {}) or present[name][key] != defaults[key]
    ]
    assert not changed, (
        f"{changed}: documents without these fields were written with the old default, and would say something else. "
        "Keep the default and choose another value where tasks are created; or raise SCHEMA_VERSION, let `from_stored` "
        f"put the old default into documents of earlier versions, and only then change {FROZEN.name}."
    )
    added = {
        name: {key: value for key, value in defaults.items() if key not in frozen.get(name, {})}
        for name, defaults in present.items()
    }
    added = {name: defaults for name, defaults in added.items() if defaults}
    assert not added, (
        f"these defaults are new, and are from now on part of the stored format; add them to {FROZEN.name}: "
        f"{json.dumps(added)}"
    )


PAGE = ROOT / "docs/guides/clients.md"
OF_PAGE = {
    "a task": Task,
    "its `schedule`": Schedule,
    "its `retry`": RetryPolicy,
    "its `catchUp`": CatchUp,
    "an open run, in its `runs`": Run,
    "an execution": Execution,
    "a person": Person,
}


def test_the_page_for_clients_says_what_a_document_shows_beside_the_api() -> None:
    """No rule of Firestore can hide a field, so the page names each that a task's owner reads there only."""
    text = PAGE.read_text(encoding="utf-8")
    part = text.partition("### What a document shows beside the API")[2].partition("### ")[0]
    rows = re.findall(r"^\| (`[^|]+`) \| ([^|]*) \|", part, re.MULTILINE)
    beside = {each.key for each in list_stored_fields(Task) if each.name not in PublicTask.model_fields}
    named = {key for keys, _ in rows for key in re.findall(r"`(\w+)`", keys)}
    assert named == (beside - own.PRIVATE_FIELDS) | {own.UNLISTED, own.REMOVE_AT, PRIVATE}
    told = set(re.findall(r"`(\w+)`", dict(rows)["`runs`"]))
    assert {each.key for each in list_stored_fields(Lease)} <= told


def test_the_page_for_clients_says_what_to_assume() -> None:
    """Web and mobile clients read the documents themselves, so the page has every default that is not None."""
    frozen = json.loads(FROZEN.read_text(encoding="utf-8"))
    told: dict[str, dict[str, object]] = {}
    of = ""
    text = PAGE.read_text(encoding="utf-8")
    for row in re.findall(r"^\| ([^|]*) \| (`[^|]+`) \| `([^|]+)` \|$", text[text.index("| of |") :], re.MULTILINE):
        of = row[0] or of
        told.setdefault(OF_PAGE[of].__name__, {}).update(
            {key: json.loads(row[2]) for key in re.findall(r"`(\w+)`", row[1])}
        )
    for model in OF_PAGE.values():
        always = {each.key for each in list_stored_fields(model) if each.default is NO_DEFAULT}
        defaults = frozen[model.__name__]
        unseen = own.PRIVATE_FIELDS if model is Task else ()
        assert told[model.__name__] == {
            key: value for key, value in defaults.items() if value is not None and key not in {*always, *unseen}
        }
    there = set(re.findall(r"`(\w+)`", text[text.index("always there") : text.index("are there if there")]))
    for model in Task, Execution, Message:
        fields = {each.key: each for each in list_stored_fields(model)}
        left_out = {key for key in there & set(fields) if fields[key].default is not NO_DEFAULT}
        assert left_out <= {"nextExecutionTime", "outcome", "lastExecutionId"} | (
            {"title", "handler", "category"} if model is Execution else set()
        )


def test_a_field_that_cannot_be_left_out_is_never_none() -> None:
    """None is stored as a missing field, too: so no field whose default is something else may be None."""
    for model in list_models():
        for name, field in model.model_fields.items():
            default = get_default(field)
            is_optional = type(None) in get_args(field.annotation)
            assert default is None or not is_optional, f"{model.__name__}.{name} could be read as {default}"


def list_found_by() -> set[tuple[str, str]]:
    """Return the collections and fields that queries filter and order by, rules read and the TTL looks at."""
    indexes = json.loads((ROOT / "infra/firestore.indexes.json").read_text(encoding="utf-8"))
    found = {
        (index["collectionGroup"], field["fieldPath"]) for index in indexes["indexes"] for field in index["fields"]
    }
    found |= {(each["collectionGroup"], each["fieldPath"]) for each in indexes["fieldOverrides"] if each["indexes"]}
    ttl = json.loads((ROOT / "infra/firestore.ttl.json").read_text(encoding="utf-8"))
    found |= {(each["collectionGroup"], each["fieldPath"]) for each in ttl}
    rules = (ROOT / "infra/firestore.rules").read_text(encoding="utf-8")
    return found | {("tasks", field) for field in re.findall(r"(?:resource|\))\.data\.(\w+)", rules)}


def test_what_documents_are_found_by_is_always_stored() -> None:
    """Firestore finds no document by a field that it does not have: such a field is there, or its absence is meant."""
    records = {each.collection: each for each in list_record_kinds()}
    of_store = {
        own.CHANGED,
        own.LISTED,
        own.OFFER_SHARD,
        own.OPEN,
        own.OFFER_WRITTEN_AT,
        own.REMOVE_AT,
        own.TROUBLE,
        own.ACTED,
        own.WORDS,
    }
    found = list_found_by()
    assert ("tasks", "owner") in found
    for collection, path in found:
        key, _, rest = path.partition(".")
        key = rest if key == own.UNLISTED else key
        model = COLLECTIONS.get(collection) or records[collection]
        if key in of_store or ".".join(path.split(".")[:2]) in of_store:
            continue
        (field,) = [each for each in list_stored_fields(model) if each.key == key]
        is_meant = field.default is None or (field.default == () and key == "labels")  # none of them is asked for
        assert field.default is NO_DEFAULT or is_meant, f"{collection}.{path} is left out where it is {field.default!r}"


def make_documents(
    make_task: MakeTask, make_execution: Callable[..., Execution], make_message: Callable[..., Message]
) -> list[Document]:
    """Return documents with few fields and with many, nested ones with defaults and without among them."""
    lease = Lease(token_hash="", started_at=NOW, until=NOW + timedelta(minutes=5, microseconds=3), worker="w")
    run = Run(execution_id="e", scheduled_for=NOW, due_at=NOW, lease=lease, payload={}, note="")
    again = Run(execution_id="f", scheduled_for=NOW, due_at=NOW, attempt=2)
    task = make_task()
    full = make_task(
        payload={"none": None, "zero": 0, "off": False, "text": "", "list": [1, [2.0, None, [3]], {}], "float": 2.0},
        labels=("a=b",),
        retry=RetryPolicy(max_retries=5, base=timedelta(seconds=1.5)),
        catch_up=CatchUp(window=timedelta(minutes=2)),
        priority=Priority.HIGH,
        jitter=timedelta(seconds=90),
        query_per_execution=0.1,
        runs=(run, again),
        parent=Parent(task_id="p", execution_id="e", step=1, depth=1),
        usage=(
            TaskUsage(month="2026-12", handler="an older one", counts=UsageCounts(reads=3, estimated_queries=0.1)),
            TaskUsage(month="2027-01", handler="h"),
        ),
        recent_outcomes=("SUCCEEDED", "FAILED", "SKIPPED"),
        schedule=Schedule(rrule=("FREQ=DAILY", "FREQ=WEEKLY"), dtstart="2027-01-01T09:00:00", fold="both"),
    )
    record = make_execution(task, content={"a": [None, 0, False]}, queries=2)
    entry = JournalEntry(number=1, kind=StepKind.STEP, started_at=NOW, execution_id="e", result=[[1], None], queries=0)
    lock = Lock(key="k", queued_limit=1)
    waiter = Waiter(
        task_id="a", execution_id="e", revision=1, scheduled_for=NOW, attempt=1, due_at=NOW, limit=1, priority="LOW"
    )
    return [task, full, record, make_message(task, "m"), entry, lock, waiter]


def test_each_store_leaves_out_the_same(
    make_task: MakeTask, make_execution: Callable[..., Execution], make_message: Callable[..., Message]
) -> None:
    """What goes to Firestore and what SQLite keeps have the same fields, and both are read back as what was written."""
    for document in make_documents(make_task, make_execution, make_message):
        proto = Proto()
        encode_model(proto.fields, document)
        sent = decode(proto.fields)
        kind = type(document)
        assert to_jsonable_python(sent) == to_jsonable_python(document.to_stored())
        assert to_jsonable_python(sent) == json.loads(document.to_stored_json())
        assert kind.from_stored("it", sent) == document
        assert kind.from_stored_json("it", document.to_stored_json().encode()) == document


def test_packed_fields_have_a_fixed_form(make_task: MakeTask) -> None:
    """These texts are in stored documents: whoever changes what packs them still has to read these."""
    counts = UsageCounts(
        executions=1, queries=2, tokens=3, estimated_queries=0.1, estimated_tokens=5, reads=6, writes=7, deletes=8,
        dispatches=9,
    )  # fmt: skip
    usage = (
        TaskUsage(month="2026-12", handler="two words", counts=counts),
        TaskUsage(month="2027-01", handler=" h", counts=UsageCounts(reads=39, dispatches=39)),
        TaskUsage(month="2027-01", handler="x"),
    )
    task = make_task(usage=usage, recent_outcomes=tuple(ExecutionStatus))
    stored = task.to_stored()
    assert stored["usage"] == (
        "2026-12 1,2,3,0.1,5,6,7,8,9 two words", "2027-01 ,,,,,39,,,39  h", "2027-01  x",
    )  # fmt: skip
    assert stored["recentOutcomes"] == "rtsSFTCEK"
    assert Task.from_stored("t", stored) == task
    assert task.to_wire()["recentOutcomes"][:2] == ["RUNNING", "RETRYING"]
    assert task.to_wire()["usage"][0]["counts"]["reads"] == 6
    for damaged in ({"usage": ["2027-01 1,1,1,1,1,1,1,1,1,1 h"]}, {"usage": [""]}, {"recentOutcomes": "?"}):
        with pytest.raises(DamagedDocument):
            Task.from_stored("t", {**stored, **damaged})


def test_no_default_is_stored_at_any_depth(make_task: MakeTask) -> None:
    """A policy with one value of its own stores that one, and an open run what is not as always."""
    run = Run(execution_id="e", scheduled_for=NOW, due_at=NOW)
    stored = make_task(retry=RetryPolicy(max_retries=7), runs=(run,)).to_stored()
    assert stored["retry"] == {"maxRetries": 7}
    assert stored["runs"] == ({"executionId": "e", "scheduledFor": NOW, "dueAt": NOW},)
    assert "catchUp" not in stored
    assert not {"gap", "fold", "subDaily", "calendars"} & set(stored["schedule"])
