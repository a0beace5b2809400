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
from cloudsched.engine.ports.look_through import find_matching_rows
from cloudsched.engine.ports.pages import Page, make_token, read_token, skip_unreadable
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

    def read(after: Message | None, count: int) -> list[Message]:
        return query_in_order(rpc, parent, listing, count, start if after is None else to_sort_key(after, listing))

    is_bounded = bool(listing.looked_for)
    found = find_matching_rows(read, lambda each: _is_match(each, listing), limit, is_bounded=is_bounded)
    items = skip_unreadable((each.name, partial(to_document, kind, each)) for each in found.rows)
    token = None
    if found.last is not None:
        value, key = to_sort_key(found.last, listing)
        token = make_token(query, decode_instant(value), key)
    return Page(items, token, len(found.rows) - len(items), found.passed_over)


def _is_match(document: Message, listing: Listing) -> bool:
    """Return whether a list has a document that its query has found."""
    if listing.excluded_field and listing.excluded_field in document.fields:
        return False
    return all(_has(document.fields, path, text) for path, text in (listing.looked_for or {}).items())


def _has(fields: Message, path: str, text: str) -> bool:
    """Return whether a field is a text, or an array that has it, without decoding the rest of the document."""
    *outer, last = path.split(".")
    for name in outer:
        if name not in fields:
            return False
        fields = fields[name].map_value.fields
    if last not in fields:
        return False
    value = fields[last]
    if value.HasField("array_value"):
        return any(each.string_value == text for each in value.array_value.values)
    return value.HasField("string_value") and bool(value.string_value == text)


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
