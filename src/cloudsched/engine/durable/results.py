"""Stores the results of steps and calls: in the journal, or in the blob store if they are too large for it."""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from cloudsched import errors
from cloudsched.domain.documents.journal import MAX_INLINE_RESULT_BYTES, StepError
from cloudsched.domain.documents.json_limits import (
    MAX_CONTENT,
    deep_copy_json,
    escape_surrogates,
    exception_text,
    max_size,
    require_storable,
)
from cloudsched.errors import BlobsUnavailable, StoreUnavailable

if TYPE_CHECKING:
    from cloudsched.domain.documents.journal import StepRecord
    from cloudsched.engine.ports.blobs import Blobs

log = logging.getLogger(__name__)

_MAX_ERROR_CHARS = 1000
"""How many characters of an error are stored."""

_MAX_TRIES = 3
"""How often a blob is put before the blob store counts as unavailable."""

MAX_RESULT_BYTES = 32 * 1024 * 1024
"""How many bytes a result may have as JSON."""


class Results:
    """The results of one execution, as the holder of one claim stores them.

    Its blobs have keys of their own: those of another claim of the same attempt, which was released, are not
    overwritten.
    """

    def __init__(self, blobs: Blobs, prefix: str, claim: str) -> None:
        self._blobs = blobs
        self._prefix = prefix
        self._claim = claim

    def store(self, number: int, value: Any, *, is_stored_elsewhere: bool) -> dict[str, Any]:  # noqa: ANN401 - any JSON
        """Return the fields of an entry that hold a result: the result itself, or the key of its blob.

        Args:
            number: The entry's number.
            value: The result.
            is_stored_elsewhere: Whether it is also stored elsewhere. If not, and the blob store cannot be reached, it
                goes into the entry where a document has room, so that it is not lost.

        Raises:
            InvalidInput: No store can hold it.
            StoreUnavailable: It is large, and the blob store cannot be reached.
        """
        require_storable("result", value, MAX_RESULT_BYTES)
        size = max_size(value)
        if size <= MAX_INLINE_RESULT_BYTES:
            return {"result": value, "reference": None}
        content = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
        key = f"{self._prefix}/{number}-{self._claim}"
        try:
            put_blob_with_retry(self._blobs, key, content)
        except StoreUnavailable:
            if is_stored_elsewhere or size > MAX_CONTENT:
                raise
            log.warning(
                "blob %s not stored; its content is kept in the journal entry", key, extra={"action": "blob_put_failed"}
            )
            return {"result": value, "reference": None}
        return {"result": None, "reference": key}

    def read(self, step: StepRecord) -> Any:  # noqa: ANN401 - any JSON
        """Return a step's result, from the journal or the blob store; a copy, which its reader may change."""
        return deep_copy_json(step.result) if step.reference is None else json.loads(self._blobs.get(step.reference))


def put_blob_with_retry(blobs: Blobs, key: str, content: bytes) -> None:
    """Store a blob, with some retries.

    Raises:
        BlobsUnavailable: The blob store cannot be reached.
    """
    for _ in range(_MAX_TRIES - 1):
        with suppress(StoreUnavailable):
            blobs.put(key, content)
            return
    try:
        blobs.put(key, content)
    except StoreUnavailable as error:
        raise BlobsUnavailable(error.service, error.reason) from error


def encode_refusal(error: Exception) -> dict[str, Any]:
    """Return the fields of an entry that record why a call was refused."""
    if not isinstance(error, errors.InvalidInput | errors.LimitExceeded):  # the code of the payload's own model
        error = errors.InvalidInput("call", f"cannot be made: {type(error).__qualname__}: {exception_text(error)}")
    arguments = [error.field, error.problem, error.hint] if isinstance(error, errors.InvalidInput) else [str(error)]
    recorded = StepError(type=type(error).__name__, message=escape_surrogates(str(error)[:_MAX_ERROR_CHARS]))
    return {"error": recorded, "result": [escape_surrogates(text[:_MAX_ERROR_CHARS]) for text in arguments]}


def decode_refusal(step: StepRecord) -> Exception:
    """Return the error with which a call was refused."""
    kind = getattr(errors, step.error.type if step.error else "", errors.InvalidInput)
    refused: Exception = kind(*step.result)
    return refused
