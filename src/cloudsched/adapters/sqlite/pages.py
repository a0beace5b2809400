"""Pages of rows: run a list's statement, and read the documents that it returns."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar

from cloudsched.adapters.sqlite.queries import from_microseconds
from cloudsched.domain.documents.document import Document
from cloudsched.engine.ports.look_through import find_matching_rows
from cloudsched.engine.ports.pages import Page, make_token, read_token, skip_unreadable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from cloudsched.adapters.sqlite.database import Database, Row
    from cloudsched.adapters.sqlite.queries import Listing

D = TypeVar("D", bound=Document)


def fetch_page(
    database: Database, kind: type[D], listing: Listing, query: object, limit: int, page_token: str | None
) -> Page[D]:
    """Return a page of a list. `query` is what its page tokens belong to."""
    start = read_token(query, page_token) if page_token else None

    def read(after: Row | None, count: int) -> Sequence[Row]:
        return database.read(*listing.to_statement(start if after is None else _to_position(after), count))

    is_bounded = bool(listing.looked_for)
    found = find_matching_rows(read, lambda row: bool(row[2]), limit, is_bounded=is_bounded)
    items = skip_unreadable(
        [(row[-1], partial(kind.from_stored_json, row[-1], row[1])) for row in found.rows],
    )
    token = None if found.last is None else make_token(query, *_to_position(found.last))
    return Page(items, token, len(found.rows) - len(items), found.passed_over)


def _to_position(row: Row) -> tuple[datetime, str]:
    """Return where a row stands in its list: its instant, and its id behind those of what it belongs to."""
    at, _, _, *keys = row
    return from_microseconds(at), ".".join(keys)
