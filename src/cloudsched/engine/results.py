"""Where the results of steps and calls are: in the journal, or by reference where they are too large for it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from cloudsched.domain.journal import MAX_INLINE
from cloudsched.domain.storable import require_storable

if TYPE_CHECKING:
    from cloudsched.domain.journal import StepRecord
    from cloudsched.engine.ports import Blobs

MAX_RESULT = 32 * 1024 * 1024
"""How many bytes a result may have as JSON."""


class Results:
    """The results of one execution."""

    def __init__(self, blobs: Blobs, prefix: str, attempt: int) -> None:
        self._blobs = blobs
        self._prefix = prefix
        self._attempt = attempt

    def kept(self, number: int, value: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
        """Return how an entry keeps a result: itself, or where it is.

        Raises:
            InvalidInput: No store can keep it.
        """
        require_storable("result", value, MAX_RESULT)
        content = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
        if len(content) <= MAX_INLINE:
            return {"result": value, "reference": None}
        key = f"{self._prefix}/{number}-{self._attempt}"
        self._blobs.put(key, content)
        return {"result": None, "reference": key}

    def read(self, step: StepRecord) -> Any:  # noqa: ANN401 - any JSON
        """Return a step's result, wherever it is."""
        return step.result if step.reference is None else json.loads(self._blobs.get(step.reference))
