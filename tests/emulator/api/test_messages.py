"""The protobuf messages that the emulator declares itself."""

from __future__ import annotations

from typing import Any

from google.cloud import tasks_v2

from cloudsched.emulator.api import messages

LEFT_OUT = {"app_engine_http_request", "app_engine_routing_override"}
"""The fields of the client's messages that the emulator does not have: those of App Engine targets."""


def test_messages_match_those_of_the_installed_client() -> None:
    """Every field of our messages has the same name, number, type, repetition and oneof there, and none is missing."""
    seen: set[str] = set()

    def compare(theirs: Any, mine: Any) -> None:  # noqa: ANN401 - descriptors have no types
        if theirs.full_name in seen:
            return
        seen.add(theirs.full_name)
        assert mine.full_name == theirs.full_name
        for field in theirs.fields:
            if field.name in LEFT_OUT:
                continue
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

    file = messages.message_class("Task").DESCRIPTOR.file
    for name, mine in file.message_types_by_name.items():
        compare(getattr(tasks_v2, name).pb().DESCRIPTOR, mine)
    assert len(seen) > 30
