"""The tables and indexes of a SQLite file. A file of another layout is refused.

Tasks and offers have the columns by which lists find them.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from cloudsched.features.table import FEATURES, find_place

if TYPE_CHECKING:
    from collections.abc import Sequence

LAYOUT_VERSION: Final = 21

_LATEST = "scheduled_for, task_id, id"
_COUNTED = "counted_as, occurrences, is_at_least, is_late"
"""What counts of runs sum up. Their indexes have it, so that no record is read for a count."""
_ADD_LABELS = "INSERT INTO labels SELECT value, NEW.created_at, NEW.id FROM json_each(NEW.labels)"
_REMOVE_LABELS = """DELETE FROM labels WHERE task_created_at = OLD.created_at AND task_id = OLD.id
    AND label IN (SELECT value FROM json_each(OLD.labels))"""

_BEGIN_COUNT = "INSERT INTO changes (owner, number) VALUES (NEW.owner, 0) ON CONFLICT DO NOTHING"
_COUNT_CHANGE = """UPDATE changes SET number = number + 1 WHERE owner = '';
    UPDATE changes SET number = (SELECT number FROM changes WHERE owner = '') WHERE owner = {0}.owner"""

LAYOUT: Final[Sequence[str]] = (
    """CREATE TABLE tasks (
        id TEXT PRIMARY KEY,
        version INTEGER NOT NULL,
        owner TEXT NOT NULL,
        handler TEXT NOT NULL,
        category TEXT NOT NULL,
        status TEXT NOT NULL,
        is_unlisted INTEGER NOT NULL,
        created_at INTEGER NOT NULL,
        next_at INTEGER,
        wake_at INTEGER,
        parent TEXT,
        is_delivery INTEGER NOT NULL,
        labels TEXT,
        open_status TEXT,
        open_since INTEGER,
        asks INTEGER,
        trouble TEXT,
        trouble_since INTEGER,
        pause_id TEXT,
        names TEXT NOT NULL,
        acted_at INTEGER,
        used_at INTEGER,
        body TEXT NOT NULL)""",
    "CREATE INDEX tasks_newest_of_owner ON tasks (owner, created_at, id) WHERE NOT is_unlisted",
    "CREATE INDEX tasks_newest_of_handler ON tasks (handler, created_at, id) WHERE NOT is_unlisted",
    "CREATE INDEX tasks_newest_of_status ON tasks (status, created_at, id) WHERE NOT is_unlisted",
    "CREATE INDEX tasks_next ON tasks (next_at, id) WHERE NOT is_unlisted AND next_at IS NOT NULL",
    """CREATE INDEX tasks_next_of_owner ON tasks (owner, next_at, id)
        WHERE NOT is_unlisted AND next_at IS NOT NULL""",
    """CREATE INDEX tasks_newest_of_parent ON tasks (parent, created_at, id)
        WHERE NOT is_unlisted AND parent IS NOT NULL""",
    "CREATE INDEX deliveries_newest_of_owner ON tasks (owner, created_at, id) WHERE is_delivery",
    "CREATE INDEX tasks_waking ON tasks (wake_at, id) WHERE wake_at IS NOT NULL",
    "CREATE INDEX tasks_open ON tasks (open_status, open_since, id) WHERE open_status IS NOT NULL",
    "CREATE INDEX tasks_asking ON tasks (open_since, id, owner) WHERE asks",
    "CREATE INDEX tasks_by_names ON tasks (created_at, id, owner, names) WHERE NOT is_unlisted",
    "CREATE INDEX tasks_acted_on ON tasks (acted_at, id) WHERE NOT is_unlisted AND acted_at IS NOT NULL",
    "CREATE INDEX tasks_in_trouble ON tasks (trouble, trouble_since, id, handler, owner) WHERE trouble IS NOT NULL",
    "CREATE INDEX tasks_paused ON tasks (pause_id, created_at, id) WHERE pause_id IS NOT NULL",
    "CREATE INDEX tasks_used ON tasks (used_at, id, owner) WHERE used_at IS NOT NULL",
    "CREATE TABLE changes (owner TEXT PRIMARY KEY, number INTEGER NOT NULL) WITHOUT ROWID",
    "INSERT INTO changes VALUES ('', 0)",
    f"""CREATE TRIGGER change_by_new_task AFTER INSERT ON tasks
        BEGIN {_BEGIN_COUNT}; {_COUNT_CHANGE.format("NEW")}; END""",
    f"CREATE TRIGGER change_by_changed_task AFTER UPDATE ON tasks BEGIN {_COUNT_CHANGE.format('NEW')}; END",
    f"CREATE TRIGGER change_by_deleted_task AFTER DELETE ON tasks BEGIN {_COUNT_CHANGE.format('OLD')}; END",
    """CREATE TABLE labels (
        label TEXT NOT NULL, task_created_at INTEGER NOT NULL, task_id TEXT NOT NULL,
        PRIMARY KEY (label, task_created_at, task_id)) WITHOUT ROWID""",
    f"""CREATE TRIGGER labels_of_new_task AFTER INSERT ON tasks WHEN NEW.labels IS NOT NULL
        BEGIN {_ADD_LABELS}; END""",
    f"""CREATE TRIGGER labels_of_changed_task AFTER UPDATE OF labels, created_at ON tasks
        BEGIN {_REMOVE_LABELS}; {_ADD_LABELS}; END""",
    f"""CREATE TRIGGER labels_of_deleted_task AFTER DELETE ON tasks WHEN OLD.labels IS NOT NULL
        BEGIN {_REMOVE_LABELS}; END""",
    """CREATE TABLE offers (
        task_id TEXT PRIMARY KEY, owner TEXT NOT NULL, queue_key TEXT NOT NULL, offer_order TEXT NOT NULL,
        body TEXT NOT NULL) WITHOUT ROWID""",
    "CREATE INDEX offers_first ON offers (queue_key, offer_order, task_id)",
    "CREATE INDEX offers_first_of_owner ON offers (owner, queue_key, offer_order, task_id)",
    """CREATE TABLE executions (
        task_id TEXT NOT NULL,
        id TEXT NOT NULL,
        scheduled_for INTEGER NOT NULL,
        owner TEXT NOT NULL,
        handler TEXT,
        category TEXT,
        status TEXT NOT NULL,
        is_failure INTEGER,
        counted_as TEXT,
        occurrences INTEGER,
        is_at_least INTEGER,
        is_late INTEGER,
        labels TEXT,
        error TEXT,
        body TEXT NOT NULL,
        PRIMARY KEY (task_id, id))""",
    "CREATE INDEX executions_latest ON executions (task_id, scheduled_for, id)",
    f"""CREATE INDEX executions_finished ON executions (is_failure, {_LATEST}, {_COUNTED})
        WHERE is_failure IS NOT NULL""",
    f"""CREATE INDEX executions_of_owner ON executions (owner, is_failure, {_LATEST}, {_COUNTED})
        WHERE is_failure IS NOT NULL""",
    f"CREATE INDEX executions_late ON executions (is_failure, {_LATEST}) WHERE is_late",
    f"""CREATE INDEX executions_with_error ON executions (is_failure, {_LATEST}, error)
        WHERE is_failure IS NOT NULL AND error IS NOT NULL""",
    """CREATE TABLE messages (
        owner TEXT NOT NULL, id TEXT NOT NULL, created_at INTEGER NOT NULL, body TEXT NOT NULL,
        PRIMARY KEY (owner, id))""",
    "CREATE INDEX messages_newest ON messages (owner, created_at, id)",
    """CREATE TABLE steps (
        task_id TEXT NOT NULL, execution_id TEXT NOT NULL, number INTEGER NOT NULL, body TEXT NOT NULL,
        PRIMARY KEY (task_id, execution_id, number)) WITHOUT ROWID""",
    """CREATE TABLE expiring (
        kind TEXT NOT NULL, expire_at INTEGER NOT NULL, parent TEXT NOT NULL, id TEXT NOT NULL,
        PRIMARY KEY (kind, expire_at, parent, id)) WITHOUT ROWID""",
    """CREATE TABLE records (
        kind TEXT NOT NULL,
        id TEXT NOT NULL,
        owner TEXT NOT NULL,
        version INTEGER NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (kind, id))""",
    "CREATE INDEX records_of_owner ON records (kind, owner, id)",
)

DELETE_OFFER: Final = "DELETE FROM offers WHERE task_id = ?"


def list_layout() -> Sequence[str]:
    """Return the statements that make the tables, those of features among them."""
    places = [feature.tables for feature in FEATURES if feature.tables]
    return (*LAYOUT, *(statement for place in places for statement in find_place(place)))


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


@lru_cache(maxsize=100)  # most tasks wake at their next occurrence, and are written several times
def to_microseconds(instant: datetime) -> int:
    """Convert an instant to the stored form: whole microseconds since 1970."""
    return (instant - _EPOCH) // _MICROSECOND


def from_microseconds(ticks: int) -> datetime:
    """Convert stored microseconds to an instant."""
    return _EPOCH + ticks * _MICROSECOND
