"""Where results that are too large for a document are kept."""

from __future__ import annotations

from typing import Protocol


class Blobs(Protocol):
    """Where results are kept that are too large for a document.

    * What is stored under a key is there, whole, once `put` has returned; it is never changed afterwards but by the
      same content.
    """

    def put(self, key: str, content: bytes) -> None:
        """Keep a content under a key: segments of letters, digits, dots, hyphens and underscores, between slashes.

        Raises:
            BlobsUnavailable: It could not be kept.
        """
        ...

    def get(self, key: str) -> bytes:
        """Return what is kept under a key.

        Raises:
            NotFound: There is nothing.
            BlobsUnavailable: It could not be read.
        """
        ...

    def delete(self, key: str) -> None:
        """Remove what is kept under a key, and below it: it is not asked for any more. Harmless to repeat.

        A place that removes what is old by itself (a bucket, by its lifecycle rule) does nothing.

        Raises:
            StoreUnavailable: It could not be removed, or not all of it.
        """
        ...
