"""What people are shown of queues: the work that waits, who listens, and which workers a task waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.domain.documents.execution import WaitingFor
from cloudsched.domain.documents.policy import Priority
from cloudsched.domain.documents.task import NeedCause
from cloudsched.domain.explanation.findings import Finding, Workers, say_no_worker
from cloudsched.domain.responses.count import Count
from cloudsched.domain.responses.overview_responses import Need, Queue, QueuedTask, QueuedTaskPage
from cloudsched.engine.storage.pages import make_token, read_token
from cloudsched.features.pull.fields import queue_keys
from cloudsched.features.pull.presence import is_listening, list_workers, may_serve
from cloudsched.features.pull.wiring import PullWiring

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.ports.store import Store
    from cloudsched.features.pull.presence import WorkerPresence
    from cloudsched.runtime.container import Container

MAX_QUEUE_KEYS = 200
"""The number of pairs of queue and skill that are shown."""
MAX_KEYS_OF_QUEUE = 30
"""The number of skills of one queue that are looked at: as many values as Firestore's ``IN`` takes."""
MAX_COUNT = 1000
"""The most tasks with waiting runs that are counted."""
_READ = 20
"""The first offers of a queue, which are read for the runs that wait behind each."""


def list_queues(store: Store, owner: str | None, now: datetime) -> tuple[Queue, ...]:
    """Return each queue key where work of all owners or of one waits, and those where workers listen.

    Costs at most 22 reads for each key, and one for each worker.
    """
    present = [one for one in list_workers(store, None) if is_listening(one, now)]
    keys = list(store.search.list_queue_keys(owner, limit=MAX_QUEUE_KEYS))
    listened = {one.queue for one in present if owner is None or one.serves == owner}
    named = {key.partition("/")[0] for key in keys}
    states = []
    for key in sorted({*keys, *(queue for queue in listened if queue not in named)}):
        queue, _, skill = key.partition("/")
        first = store.list_offers((key,), owner, limit=_READ)
        waiting = Count(value=sum(each.count_waiting(now) for each in first))
        if len(first) == _READ:  # of the others it is not known whether more than one run waits
            counted = store.search.count_offers(key, owner, MAX_COUNT).value
            waiting = Count(value=waiting.value + max(0, counted - _READ), at_least=counted > _READ)
        workers = sum(may_serve(one, queue, skill, owner) for one in present)
        if not (waiting or workers):
            continue
        states.append(
            Queue(
                queue=queue,
                skill=skill or None,
                waiting=waiting,
                first_since=next((each.since for each in first if each.count_waiting(now)), None),
                workers=workers,
            )
        )
    return tuple(states)


def find_causes(container: Container, owner: str | None) -> Iterator[Need]:
    """Yield each queue key where work waits and no worker listens. Costs what `list_queues` does."""
    for each in list_queues(container.store, owner, container.clock.now()):
        if each.waiting and not each.workers:
            skill = f" with the skill {each.skill}" if each.skill else ""
            wait = each.waiting.write("run waits", "runs wait")
            yield Need(
                cause=NeedCause.NO_WORKER,
                sentence=f"No worker{skill} listens at the queue {each.queue}: {wait}.",
                count=each.waiting,
                since=each.first_since,
                subject=each.queue,
                path="queues",
                query={"queue": each.queue},
            )


def list_queued_tasks(
    store: Store,
    queue: str,
    skill: str | None,
    owner: str | None,
    now: datetime,
    *,
    limit: int,
    page_token: str | None = None,
) -> QueuedTaskPage:
    """Return a page of what a worker could claim from a queue, in its order. Two reads for each.

    It needs the skill, or none; without one, any skill.
    """
    query = ("queued", queue, skill, owner)
    after = None
    if page_token:
        since, key = read_token(query, page_token)
        rank, _, task_id = key.partition(".")
        after = f"{rank} {since.isoformat(timespec='microseconds')}", task_id

    skilled = store.search.list_queue_keys(owner, limit=MAX_KEYS_OF_QUEUE - 1, prefix=f"{queue}/")
    keys = (queue, *skilled) if skill is None else queue_keys(queue, (skill,))
    offers = store.list_offers(keys, owner, limit=limit + 1, after=after)
    page = offers[:limit]
    tasks = {each.task.id: each.task for each in store.load_many([offer.task_id for offer in page])}
    token = None
    if len(offers) > limit:
        last = page[-1]
        token = make_token(query, last.since, f"{last.rank}.{last.task_id}")
    shown = tuple(
        QueuedTask(
            task_id=offer.task_id,
            owner=offer.owner,
            handler=offer.handler,
            title=task.title,
            skill=offer.queue_key.partition("/")[2] or None,
            priority=tuple(Priority)[int(offer.rank)],
            offered_at=offer.since,
            runs=runs,
        )
        for offer in page
        if (task := tasks.get(offer.task_id)) and (runs := offer.count_waiting(now))
    )
    return QueuedTaskPage(tasks=shown, next_page_token=token)


def explain_workers(store: Store, task: Task, now: datetime) -> Workers | None:
    """Return which workers a run of a task waits for, and how many listen. None if no run waits for one.

    Costs one read for each worker that was there in the last day.
    """
    offered = next((run for run in task.runs if run.waiting_for is WaitingFor.WORKER), None)
    if task.pull is None or offered is None:
        return None

    return _find_workers(task, task.as_begun(offered), list_workers(store, None), now)


def _find_workers(task: Task, begun: Task, known: Sequence[WorkerPresence], now: datetime) -> Workers | None:
    """Return which of the known workers would claim a run of a task that began as `begun` says."""
    if task.pull is None:
        return None
    is_users = begun.is_for_user and not begun.is_made_by_code
    queue = task.pull.queue
    skill = task.pull.skill or ""
    listening = [one for one in known if is_listening(one, now) and (is_users or not one.is_user)]
    return Workers(
        needed=f"worker{f' with the skill {skill!r}' if skill else ''} on the queue {queue!r}",
        listeners=sum(may_serve(one, queue, skill, task.owner) for one in listening),
    )


def find_conditions(container: Container, task: Task, _person: object, now: datetime) -> Iterator[Finding]:
    """Yield whether no worker listens that would claim a task's next run.

    The workers are read anew, each with one read, once those that are known here would not.
    """
    known = PullWiring.of(container).presence
    workers = _find_workers(task, task, known.seen, now)
    if workers is not None and not workers.listeners:
        known.seen = known.list_all()
        workers = _find_workers(task, task, known.seen, now)
    if workers is not None and not workers.listeners:
        yield say_no_worker(workers)
