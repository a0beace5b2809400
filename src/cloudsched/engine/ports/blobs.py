"""The port for results that are too large for a document."""

from __future__ import annotations

from typing import Protocol


class Blobs(Protocol):
    """Stores results that are too large for a document.

    * Once `put` has returned, the complete content can be read under its key. It is only ever overwritten with the same
      content.
    """

    def put(self, key: str, content: bytes) -> None:
        """Store content under a key: segments of letters, digits, dots, hyphens and underscores, between slashes.

        Raises BlobsUnavailable.
        """
        ...

    def get(self, key: str) -> bytes:
        """Return the content of a key. Raises NotFound or BlobsUnavailable."""
        ...

    def delete(self, key: str) -> None:
        """Delete the content of a key and of all keys below it, which is no longer needed. Safe to repeat.

        An adapter whose storage expires old content itself (a bucket, by its lifecycle rule) does nothing. Raises
        StoreUnavailable if not everything could be deleted.
        """
        ...
