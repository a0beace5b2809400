"""The work that waits in queues, for people to look at. Nothing is claimed."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from cloudsched.domain.responses.overview_responses import Queue
from cloudsched.engine.pull.presence import MAX_WORKERS, WorkerPresence, is_listening, may_serve
from cloudsched.engine.storage.pages import Page, make_token, read_token

if TYPE_CHECKING:
    from cloudsched.domain.documents.pull import OfferEntry
    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.ports.store import Store

MAX_QUEUE_KEYS = 200
"""The number of pairs of queue and skill that are shown."""
MAX_KEYS_OF_QUEUE = 30
"""The number of skills of one queue that are looked at: as many values as Firestore's ``IN`` takes."""
MAX_COUNT = 1000
"""The most waiting runs that are counted."""


def list_queues(store: Store, owner: str | None, now: datetime) -> tuple[Queue, ...]:
    """Return each queue key where work of all owners or of one waits, and those where workers listen.

    Costs two reads for each key, one more for each 1,000 that wait, and one for each worker.
    """
    present = [one for one in store.records.list_all(WorkerPresence, limit=MAX_WORKERS) if is_listening(one, now)]
    keys = list(store.search.list_queue_keys(owner, limit=MAX_QUEUE_KEYS))
    listened = {one.queue for one in present if owner is None or one.serves == owner}
    named = {key.partition("/")[0] for key in keys}
    states = []
    for key in sorted({*keys, *(queue for queue in listened if queue not in named)}):
        queue, _, skill = key.partition("/")
        first = store.list_offers((key,), owner, limit=1)
        states.append(
            Queue(
                queue=queue,
                skill=skill or None,
                waiting=store.search.count_offers(key, owner, MAX_COUNT) if first else 0,
                first_since=get_offered_since(first[0]) if first else None,
                workers=sum(may_serve(one, queue, skill, owner) for one in present),
            )
        )
    return tuple(states)


def list_queued_tasks(
    store: Store, queue: str, owner: str | None, limit: int, page_token: str | None = None
) -> Page[tuple[OfferEntry, Task | None]]:
    """Return a page of what waits in a queue, in its order, without claiming it. Two reads for each."""
    query = ("queued", queue, owner)
    after = None
    if page_token:
        since, key = read_token(query, page_token)
        rank, _, task_id = key.partition(".")
        after = f"{rank} {since.isoformat(timespec='microseconds')}", task_id
    skilled = store.search.list_queue_keys(owner, limit=MAX_KEYS_OF_QUEUE - 1, prefix=f"{queue}/")
    offers = store.list_offers((queue, *skilled), owner, limit=limit + 1, after=after)
    page = offers[:limit]
    tasks = {each.task.id: each.task for each in store.load_many([offer.task_id for offer in page])}
    token = None
    if len(offers) > limit:
        last = page[-1]
        token = make_token(query, get_offered_since(last), f"{last.order.partition(' ')[0]}.{last.task_id}")
    return Page([(offer, tasks.get(offer.task_id)) for offer in page], token)


def get_offered_since(offer: OfferEntry) -> datetime:
    """Return the instant since which an offer has been waiting."""
    return datetime.fromisoformat(offer.order.partition(" ")[2])
