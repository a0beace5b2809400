"""The text of a model's answer, and what it has used."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from cloudsched.engine.ports.model import Usage
from cloudsched.errors import UnusableAnswer

_MILLION: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Prices:
    """What a million tokens cost, in dollars."""

    input: float = 0.0
    output: float = 0.0

    def count(self, read: object, written: object) -> Usage:
        """Return the usage of a call from the numbers that a server gives; what is no number counts as 0."""
        inputs, outputs = _to_count(read), _to_count(written)
        return Usage(inputs, outputs, (inputs * self.input + outputs * self.output) / _MILLION)


def parse_answer(text: object) -> Any:  # noqa: ANN401 - any JSON
    """Return the JSON of a model's text; fences around it are what models add, and no part of it.

    Raises:
        UnusableAnswer: It is not JSON.
    """
    if not isinstance(text, str):
        raise UnusableAnswer("garbage", "it has no text")
    bare = text.strip().removeprefix("```json").removeprefix("```").removesuffix("```").strip()
    try:
        return json.loads(bare, parse_constant=_reject_constant)
    except (ValueError, RecursionError) as error:
        raise UnusableAnswer("not-json", f"it is not JSON: {error}", text) from error


def _reject_constant(name: str) -> Any:  # noqa: ANN401 - the signature of json's hook
    raise ValueError(f"{name} is not JSON")


def _to_count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
