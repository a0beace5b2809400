"""The generated file of field descriptions says what the models say."""

from __future__ import annotations

from tests.architecture.field_descriptions import GENERATED, generate


def test_the_descriptions_are_those_of_the_models() -> None:
    """Whoever changes a field's docstring generates the file again."""
    stale = "run: python -m tests.architecture.field_descriptions"
    assert GENERATED.read_text("utf-8") == generate(), stale
