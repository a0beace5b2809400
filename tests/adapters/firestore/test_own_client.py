"""Tasks in commits of a caller's own client: all or nothing, dispatched once they are there, and read by it live."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from weakref import ref

import pytest
from google.api_core.exceptions import Aborted, AlreadyExists, FailedPrecondition
from google.api_core.exceptions import NotFound as NotFoundByGoogle
from google.cloud import firestore
from tests.conftest import NOW
from tests.harness import new_project, wait_until

from cloudsched import App, AsyncApp, Schedule, Settings, TaskReference
from cloudsched.adapters.clocks import ManualClock
from cloudsched.adapters.firestore.store import FirestoreStore
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.domain.documents.task import Task, TaskStatus
from cloudsched.engine.ports.queue import QueueMessage
from cloudsched.errors import InvalidInput, NotFound, QueueUnavailable

LATER = Schedule.once(NOW + timedelta(days=1))
SETTINGS = Settings(secret="a secret of this test")  # noqa: S106 - so it says


class Queue:
    """A queue that keeps what it gets, unless it is down."""

    def __init__(self) -> None:
        self.sent: list[QueueMessage] = []
        self.is_down = False

    def create(self, message: QueueMessage) -> None:
        if self.is_down:
            raise QueueUnavailable("The queue", "it is down")
        self.sent.append(message)

    def close(self) -> None:
        """Do nothing."""


@pytest.fixture
def queue() -> Queue:
    return Queue()


@pytest.fixture
def project() -> str:
    return new_project()


@pytest.fixture
def app(firestore_address: str, project: str, queue: Queue) -> Iterator[App]:
    """An app over Firestore, whose clock stands still."""
    store = FirestoreStore(project=project, emulator=firestore_address, deadline=timedelta(minutes=1))
    app = App(SETTINGS, store=store, dispatcher=queue, clock=ManualClock(NOW))

    @app.handler("ship", events={"paid": None})
    def handle(payload: dict[str, Any]) -> None:
        """Do nothing."""

    yield app
    store.close()


@pytest.fixture
def client(firestore_address: str, project: str, monkeypatch: pytest.MonkeyPatch) -> firestore.Client:
    """The caller's own client of the same database."""
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", firestore_address)
    return firestore.Client(project=project)


def ship(app: App, **fields: Any) -> Task:
    return app.create(owner="ada", title="Ship", handler="ship", schedule=LATER, **fields)


def run(transaction: firestore.Transaction, do: Callable[[firestore.Transaction], Any]) -> Any:  # noqa: ANN401 - what it returns
    return firestore.transactional(do)(transaction)


def test_an_order_and_its_task_are_one_commit(app: App, client: firestore.Client, queue: Queue) -> None:
    """In a transaction or a batch: nothing is there before the commit, and the dispatch is sent when it returns."""
    order = client.document("orders/1")

    def place(transaction: firestore.Transaction) -> Task:
        transaction.create(order, {"n": 1})
        task = ship(app, transaction=transaction)
        assert queue.sent == []
        return task

    task = run(client.transaction(), place)
    assert (app.get(task.id), order.get().exists, len(queue.sent)) == (task, True, 1)
    with client.batch() as batch:
        batch.update(order, {"n": 2})
        other = ship(app, batch=batch)
        assert len(queue.sent) == 1
    assert (app.get(other.id), order.get().get("n"), len(queue.sent)) == (other, 2, 2)
    batch.update(order, {"n": 3})  # a batch may be used again
    batch.commit()
    assert len(queue.sent) == 2
    ship(app, batch=batch)
    batch.commit()
    assert len(queue.sent) == 3


def test_nothing_is_left_of_what_fails(
    app: App, client: firestore.Client, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the function raises, the commit is refused, or a later attempt wants no task."""

    def fail(transaction: firestore.Transaction) -> None:
        ship(app, transaction=transaction)
        raise LookupError

    with pytest.raises(LookupError):
        run(client.transaction(), fail)
    batch = client.batch()
    batch.update(client.document("orders/none"), {"n": 1})
    ship(app, batch=batch)
    with pytest.raises(Exception, match="no entity to update"):
        batch.commit()
    stock, attempts = client.document("stock/1"), list[bool]()
    stock.set({"n": 1})

    api = client._firestore_api  # noqa: SLF001 - where Firestore answers
    commit = api.commit

    def abort(request: dict[str, Any], **_: Any) -> None:
        monkeypatch.setattr(api, "commit", commit)
        api.rollback({"database": request["database"], "transaction": request["transaction"]})
        stock.set({"n": 0})  # somebody else has bought the last one
        raise Aborted("contention")  # type: ignore[no-untyped-call]

    def sell(transaction: firestore.Transaction) -> None:
        attempts.append(is_there := bool(stock.get(transaction=transaction).get("n")))
        if is_there:
            ship(app, transaction=transaction)
            transaction.update(stock, {"n": 0})
            monkeypatch.setattr(api, "commit", abort)

    run(client.transaction(), sell)
    assert attempts == [True, False]
    assert (list(app.tasks().items), queue.sent) == ([], [])


def test_coroutines_join_alike(app: App, client: firestore.Client, project: str, queue: Queue) -> None:
    """With Google's async client, in a transaction and a batch."""
    async_app = AsyncApp(app)

    async def place() -> tuple[Task, Task]:
        own = firestore.AsyncClient(project=project)

        @firestore.async_transactional
        async def create(transaction: firestore.AsyncTransaction) -> Task:
            transaction.create(own.document("orders/1"), {"n": 1})
            return await async_app.create(
                owner="ada", title="Ship", handler="ship", schedule=LATER, transaction=transaction
            )

        task = await create(own.transaction())
        batch = own.batch()
        other = await async_app.joining(batch).update(task.id, title="Ship it")
        await batch.commit()
        return task, other

    task, other = asyncio.run(place())
    assert app.get(task.id) == other
    assert client.document("orders/1").get().exists
    assert len(queue.sent) == 2


def test_changes_of_a_task_join(app: App, client: firestore.Client, queue: Queue) -> None:
    """One after the other in one transaction, each seeing those before it, and a new task among them."""
    task, events = ship(app), ship(app)
    queue.sent.clear()

    def change(transaction: firestore.Transaction) -> str:
        joined = app.joining(transaction)
        joined.pause(task.id)
        joined.update(task.id, title="Later")
        assert joined.get(task.id).status is TaskStatus.PAUSED
        joined.resume(task.id)
        joined.trigger(task.id)
        new = joined.create(owner="ada", title="New", handler="ship", schedule=LATER)
        joined.update(new.id, title="Newer")
        joined.cancel(events.id)
        assert (app.get(task.id), queue.sent) == (task, [])
        return new.id

    new = run(client.transaction(), change)
    assert (app.get(task.id).title, app.get(new).title) == ("Later", "Newer")
    assert app.get(events.id).status is TaskStatus.CANCELLED
    assert [run.trigger for run in app.get(task.id).runs] == ["MANUAL"]
    assert {message.name for message in queue.sent} >= {queue.sent[-1].name}


def test_a_task_that_changes_meanwhile_is_read_again(app: App, client: firestore.Client) -> None:
    """By a transaction, which is tried again, with whatever else it has read. A batch is not: its commit fails.

    Until the commit, nothing is held: what changes the task meanwhile, such as a run that ends, waits for nobody.
    """
    task, attempts = ship(app), list[str]()
    batch = client.batch()
    app.joining(batch).update(task.id, title="Batch")
    app.update(task.id, title="Meanwhile")
    with pytest.raises(FailedPrecondition):
        batch.commit()

    stock = client.document("stock/1")
    stock.set({"n": 1})

    def rename(transaction: firestore.Transaction) -> None:
        left = stock.get(transaction=transaction).get("n")
        attempts.append(app.joining(transaction).update(task.id, title="Ship").description)
        transaction.update(stock, {"n": left - 1})
        if len(attempts) == 1:
            app.update(task.id, description="Other")

    run(client.transaction(), rename)
    assert attempts == ["", "Other"]
    assert (app.get(task.id).title, app.get(task.id).description) == ("Ship", "Other")
    assert stock.get().get("n") == 0


def test_a_caller_s_own_precondition_is_not_tried_again(app: App, client: firestore.Client) -> None:
    """It fails as without a task in the transaction."""
    task, attempts = ship(app), list[int]()

    def fail(transaction: firestore.Transaction) -> None:
        attempts.append(1)
        app.joining(transaction).update(task.id, title="Ship it")
        transaction.delete(client.document("orders/none"), option=client.write_option(exists=True))

    with pytest.raises(NotFoundByGoogle):
        run(client.transaction(), fail)
    assert (app.get(task.id).title, attempts) == ("Ship", [1])


def test_an_id_is_taken_once(app: App, client: firestore.Client, queue: Queue) -> None:
    """The caller's whole commit fails, and neither task is dispatched again."""
    ship(app, id="order-1")
    queue.sent.clear()

    def place(transaction: firestore.Transaction) -> None:
        transaction.create(client.document("orders/1"), {"n": 1})
        ship(app, id="order-1", transaction=transaction)

    with pytest.raises(AlreadyExists):
        run(client.transaction(), place)
    assert not client.document("orders/1").get().exists
    assert queue.sent == []


def test_the_sweep_sends_what_the_queue_did_not_take(app: App, client: firestore.Client, queue: Queue) -> None:
    """The caller's commit stands, and hears nothing of it."""
    queue.is_down = True
    with client.batch() as batch:
        task = app.create(owner="ada", title="Ship", handler="ship", batch=batch)
    queue.is_down = False
    assert isinstance(app.container.clock, ManualClock)
    app.container.clock.advance(timedelta(minutes=1))
    app.sweep()
    assert [task.id.encode() in message.body for message in queue.sent] == [True]


def test_what_cannot_join_says_so(app: App, client: firestore.Client) -> None:
    """Nothing of it is stored."""
    locked = ship(app, lock_key="truck")
    batch = client.batch()
    embedded = App(SETTINGS, store=SqliteStore(), dispatcher=Queue(), clock=ManualClock(NOW))
    refused: list[Callable[[], object]] = [
        lambda: app.joining(client.transaction()),  # it has not begun
        lambda: app.joining(client.bulk_writer()),  # each of its writes is a commit
        lambda: app.joining(firestore.Client(project="other").batch()),
        lambda: app.joining(batch).delete(locked.id),
        lambda: app.joining(batch).retry(locked.id),
        lambda: ship(app, transaction=client.transaction(), batch=batch),
        lambda: embedded.joining(batch),
    ]
    for each in refused:
        with pytest.raises(InvalidInput, match="transaction"):
            each()
    with pytest.raises(NotFound):
        app.joining(batch).cancel("none")
    assert len(batch) == 0
    embedded.close()


def test_a_clients_own_reference_shows_a_task_as_it_is(app: App, client: firestore.Client) -> None:
    """Once or live, with whatever it has, and in a transaction of the caller's. One that is deleted is gone."""
    shown = list[Task | None]()
    task = ship(
        app, payload={"matrix": [[1, [2.5, None]], []], "at": "2027-01-01T00:00:00Z"}, labels=("team=a", "site=b")
    )
    reference = TaskReference(client, task.id)
    watch = reference.on_snapshot(shown.append)
    wait_until(lambda: shown == [task], "the task")
    changed = app.update(task.id, title="Ship it")
    wait_until(lambda: shown[-1] == changed, "the change")
    assert reference.get() == changed
    triggered = app.trigger(task.id)
    get: Any = reference.document.get
    read = run(client.transaction(), lambda own: reference.to_task(get(transaction=own)))
    assert read == triggered
    app.delete(task.id)
    wait_until(lambda: shown[-1] is None, "its end")
    watch.unsubscribe()  # type: ignore[no-untyped-call]
    assert reference.get() is None


def test_nothing_stays_of_what_was_never_committed(app: App, client: firestore.Client) -> None:
    """A process that runs for months sees many of them."""
    batches = [client.batch() for _ in range(3)]
    for batch in batches:
        ship(app, batch=batch)
    left = [ref(batch) for batch in batches]
    del batch, batches
    gc.collect()
    assert [each() for each in left] == [None] * 3
