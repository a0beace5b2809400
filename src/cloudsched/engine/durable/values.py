"""Random numbers and UUIDs that are the same in every attempt at an occurrence, without being recorded."""

from __future__ import annotations

import hashlib
import uuid
from functools import cached_property
from random import Random


class RepeatableValues:
    """The values of one attempt, in the order in which its handler asks for them."""

    def __init__(self, task_id: str, execution_id: str) -> None:
        self._name = f"{task_id} {execution_id}"
        self._uuids = 0

    @cached_property
    def _seed(self) -> bytes:
        return hashlib.sha256(self._name.encode()).digest()

    @cached_property
    def random(self) -> Random:
        """A random generator with the same seed in every attempt."""
        return Random(self._seed)  # noqa: S311 - it must be repeatable

    def uuid(self) -> uuid.UUID:
        """Return a new UUID; every attempt gets the same ones in the same order."""
        self._uuids += 1
        return uuid.uuid5(uuid.UUID(bytes=self._seed[:16]), str(self._uuids))
