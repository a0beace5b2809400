"""Who paused a queue of Cloud Tasks, which does not note that itself."""

from __future__ import annotations

from typing import ClassVar

from cloudsched.domain.documents.record import Record


class QueuePause(Record):
    """A pause of a queue by an operation of the API. ``queuePauses/{queue}``.

    Its `created_at` is when. A queue that was paused in another way, as with ``gcloud``, has none. One that was
    resumed in another way, and paused again, has that of its last pause here.
    """

    collection: ClassVar[str] = "queuePauses"
    is_listed_by_owner: ClassVar[bool] = False

    by: str
    """The caller who paused it, as the log names them."""
