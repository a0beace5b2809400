"""The protobuf messages that the emulator declares itself."""

from __future__ import annotations

from typing import Any

from google.cloud import tasks_v2

from cloudsched.emulator.api import messages


def test_messages_match_those_of_the_installed_client() -> None:
    """Every field of every message of the client has the same name, number, type, repetition and oneof in ours."""
    installed = tasks_v2.CreateTaskRequest.pb().DESCRIPTOR
    ours = messages.message_class("CreateTaskRequest").DESCRIPTOR
    seen: set[str] = set()

    def compare(theirs: Any, mine: Any) -> None:  # noqa: ANN401 - descriptors have no types
        if theirs.full_name in seen:
            return
        seen.add(theirs.full_name)
        assert mine.full_name == theirs.full_name
        for field in theirs.fields:
            same = mine.fields_by_name[field.name]
            assert (same.number, same.type, same.is_repeated) == (field.number, field.type, field.is_repeated), (
                field.full_name
            )
            oneofs = [one.containing_oneof.name if one.containing_oneof else "" for one in (field, same)]
            assert oneofs[0] == oneofs[1], field.full_name
            if field.message_type is not None:
                compare(field.message_type, same.message_type)
            if field.enum_type is not None:
                values = [[(value.name, value.number) for value in one.enum_type.values] for one in (field, same)]
                assert values[0] == values[1]

    compare(installed, ours)
    for name in dir(tasks_v2):
        kind = getattr(tasks_v2, name)
        if isinstance(kind, type(tasks_v2.Task)):
            compare(kind.pb().DESCRIPTOR, messages.message_class(kind.pb().DESCRIPTOR.full_name).DESCRIPTOR)
    assert len(seen) > 30
