"""Pages of documents: run a list's query, and read what it returns."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar

from cloudsched.adapters.firestore.deliveries import unhide
from cloudsched.adapters.firestore.list_fields import drop_list_fields
from cloudsched.adapters.firestore.preconditions import COMMIT_ID
from cloudsched.adapters.firestore.queries import OFFER_WRITTEN_AT, Listing
from cloudsched.adapters.firestore.shards import query_in_order
from cloudsched.adapters.firestore.values import decode, decode_instant
from cloudsched.domain.documents.document import Document
from cloudsched.engine.ports.page_tokens import make_token, read_token, skip_unreadable
from cloudsched.engine.ports.pages import Page
from cloudsched.errors import DamagedDocument

if TYPE_CHECKING:
    from cloudsched.adapters.firestore.rpc import FirestoreRpc
    from cloudsched.adapters.google.channel import Message

D = TypeVar("D", bound=Document)


def fetch_page(  # noqa: PLR0917 - a list and the position in it
    rpc: FirestoreRpc,
    kind: type[D],
    parent: str | None,
    listing: Listing,
    query: object,
    limit: int,
    page_token: str | None,
) -> Page[D]:
    """Return a page of a list; an empty one if there is no parent. `query` is what its page tokens belong to."""
    start: tuple[object, str] | None = read_token(query, page_token) if page_token else None
    if parent is None:
        return Page(())
    rows: list[Message] = []
    while True:
        missing = limit + 1 - len(rows)
        part = query_in_order(rpc, parent, listing, missing, start)
        rows += [each for each in part if not listing.excluded_field or listing.excluded_field not in each.fields]
        if len(rows) > limit or len(part) < missing:
            break
        start = to_sort_key(part[-1], listing)
    page = rows[:limit]
    items = skip_unreadable((each.name, partial(to_document, kind, each)) for each in page)
    unreadable = len(page) - len(items)
    if len(rows) <= limit:
        return Page(items, unreadable=unreadable)
    value, key = to_sort_key(page[-1], listing)
    return Page(items, make_token(query, decode_instant(value), key), unreadable)


def to_sort_key(document: Message, listing: Listing) -> tuple[Message, str]:
    """Return a document's position in a list, without decoding the rest of it, which may be damaged."""
    *path, last = listing.order.split(".")
    fields = document.fields
    for name in path:
        fields = fields[name].map_value.fields
    return fields[last], listing.to_key(document.name)


def to_document(kind: type[D], document: Message) -> D:
    """Return a document as the model of its kind.

    Raises:
        DamagedDocument: It cannot be read.
        UnsupportedDocument: It was written by a newer cloudsched.
    """
    key = document.name.rpartition("/")[2]
    try:
        data = decode(document.fields)
    except Exception as error:  # whatever another program has written
        raise DamagedDocument(kind.__name__, key, "it has a value that cannot be decoded") from error
    data.pop(COMMIT_ID, None)
    data.pop(OFFER_WRITTEN_AT, None)
    return kind.from_stored(key, drop_list_fields(unhide(data)))
