"""The protobuf messages that the adapters declare themselves are those of Google's APIs."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from google.cloud import tasks_v2
from google.cloud.firestore_v1 import types as firestore_types
from google.rpc import status_pb2  # type: ignore[import-untyped]
from google.type import latlng_pb2  # type: ignore[import-untyped]

from cloudsched.adapters.firestore import protos as firestore
from cloudsched.adapters.google import cloud_tasks as tasks
from cloudsched.adapters.google.protobuf import build_messages
from cloudsched.emulator.api import protos as emulator

ELSEWHERE = {"LatLng": latlng_pb2.LatLng.DESCRIPTOR, "Status": status_pb2.Status.DESCRIPTOR}
"""The messages of other packages, which the table repeats in its own."""


def _find_theirs(module: ModuleType, name: str) -> Any:  # noqa: ANN401 - descriptors have no types
    return ELSEWHERE.get(name) or getattr(module, name).pb().DESCRIPTOR


def _short(kind: Any) -> str:  # noqa: ANN401 - the same
    name = str(kind.full_name)
    return name.rpartition(".")[2] if kind.name in ELSEWHERE else name


def _compare(ours: Any, theirs: Any) -> int:  # noqa: ANN401 - the same
    """Compare a message and those nested in it, and return how many fields were compared."""
    for field in ours.fields:
        same = theirs.fields_by_number.get(field.number)
        assert same is not None, field.full_name
        assert field.name == same.name, field.full_name
        assert (field.type, field.is_repeated) == (same.type, same.is_repeated), field.full_name
        groups = [one.containing_oneof.name if one.containing_oneof else "" for one in (field, same)]
        assert groups[0] == groups[1], field.full_name
        if field.message_type is not None:
            assert _short(field.message_type) == _short(same.message_type), field.full_name
        if field.enum_type is not None:
            values = [[(value.name, value.number) for value in one.enum_type.values] for one in (field, same)]
            assert values[0] == values[1], field.full_name
    nested = {kind.name: kind for kind in theirs.nested_types}
    return len(ours.fields) + sum(_compare(kind, nested[kind.name]) for kind in ours.nested_types)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [(firestore, firestore_types), (tasks, tasks_v2), (emulator, tasks_v2)],
    ids=["firestore", "tasks", "emulator"],
)
def test_fields_are_those_of_the_installed_client(ours: ModuleType, theirs: ModuleType) -> None:
    """Each field that we declare has the name, number, type, repetition, oneof and enum of the client's."""
    built = build_messages(ours.PACKAGE, ours.TABLE)
    compared = sum(_compare(kind.DESCRIPTOR, _find_theirs(theirs, name)) for name, kind in built.items())
    assert compared >= 15


def test_every_kind_of_value_can_be_read() -> None:
    """A value of a kind that we did not declare would look empty: what a document can hold is declared."""
    ours = set(firestore.Value.DESCRIPTOR.fields_by_name)
    expressions = {"field_reference_value", "variable_reference_value", "function_value", "pipeline_value"}
    assert ours == set(firestore_types.Value.pb().DESCRIPTOR.fields_by_name) - expressions


def test_google_client_can_be_imported_beside_them() -> None:
    """The pools are our own: the same names in the default pool are the client's, whichever comes first."""
    client = firestore_types.Value.pb()
    assert client is not firestore.Value
    assert client.FromString(firestore.Value(integer_value=3).SerializeToString()).integer_value == 3
    assert client.DESCRIPTOR.file.pool is not firestore.Value.DESCRIPTOR.file.pool
