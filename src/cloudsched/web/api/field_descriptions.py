"""What the models' docstrings say about their fields, from a file that is generated from the source.

`tests/architecture` generates it, and checks that it is up to date.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import BaseModel


def find_field_descriptions(model: type[BaseModel]) -> dict[str, str]:
    """Return the docstrings of a model's fields, including inherited ones, by the fields' names."""
    found: dict[str, str] = {}
    for cls in reversed(model.__mro__):
        found |= _load().get(f"{cls.__module__}.{cls.__qualname__}", {})
    return found


@cache
def _load() -> dict[str, dict[str, str]]:
    content: dict[str, dict[str, str]] = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
    return content
