"""The values of closed sets: UPPER_SNAKE, read in any case, and as camelCase, as early versions wrote some."""

from __future__ import annotations

import re
from typing import Any, Final

from pydantic import BeforeValidator


def to_upper_snake(text: object) -> Any:  # noqa: ANN401 - what is no text stays what it is
    """Return a text as the values of closed sets are written."""
    if not isinstance(text, str) or text.isupper():
        return text
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", text).upper()


AnyCase: Final = BeforeValidator(to_upper_snake)
"""Reads the values of a `Literal` in any case, as `domain.documents.document.StoredEnum` does."""
