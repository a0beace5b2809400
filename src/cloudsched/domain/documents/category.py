"""Categories and labels of tasks.

Channels depend on the category, the kind of work. Labels are the owner's own.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from cloudsched.domain.documents.document import StoredEnum


class Category(StoredEnum):
    """The kind of work that a task does for its owner."""

    REMINDER = "REMINDER"
    REPORT = "REPORT"
    ANALYSIS = "ANALYSIS"
    OTHERS = "OTHERS"


MAX_LABELS = 16
"""The most labels of one task."""

Label = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_.-]{0,62}=[A-Za-z0-9_.:/@+-]{0,63}$")]
"""A key, ``=``, and a value. A key has at most 63 characters: a lower-case letter, then lower-case letters,
digits, hyphens, underscores and dots. A value has at most 63 letters, digits and characters of
``_.:/@+-``."""


def _sort_labels(labels: tuple[str, ...]) -> tuple[str, ...]:
    """Return the labels by key. Raises ValueError if two have the same key."""
    by_key = {label_key(label): label for label in labels}
    if len(by_key) < len(labels):
        repeated = next(key for key in by_key if sum(label_key(label) == key for label in labels) > 1)
        raise ValueError(f"has the key {repeated!r} twice")
    return tuple(by_key[key] for key in sorted(by_key))


Labels = Annotated[tuple[Label, ...], Field(max_length=MAX_LABELS), AfterValidator(_sort_labels)]
"""The labels of one task, sorted by key. Each key occurs once."""


def label_key(label: str) -> str:
    """Return the part of a label before the first ``=``."""
    return label.partition("=")[0]
