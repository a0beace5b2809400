"""The page on transactions (transactions.md), killed at each step: it loses nothing, the one by hand reminders."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from copy import deepcopy
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from google.api_core.exceptions import Aborted, AlreadyExists
from google.cloud import firestore
from tests.adapters.firestore.production import PREFIX, list_names
from tests.deployables.fake_databases import add_app
from tests.deployables.fake_project import IN_USE, Cloud
from tests.harness import new_project, wait_until
from tests.instants import DAY, MINUTE
from tests.recipes.conftest import Load, load_code

from cloudsched import Settings, TaskReference, TaskStatus
from cloudsched.adapters.firestore.store import FirestoreStore
from cloudsched.engine.ports.queue import QueueMessage
from cloudsched.errors import InvalidInput, NotFound
from cloudsched.runtime.factories import open_firestore_store
from cloudsched.testing import Simulation
from cloudsched.testing.simulated_queue import SimulatedQueue

load = load_code


class Death(BaseException):
    """The process ends here."""


class Shop:
    """The page's modules over Google's emulator, in processes that end after so many steps."""

    def __init__(self, load: Load, store: FirestoreStore, monkeypatch: pytest.MonkeyPatch) -> None:
        self.orders = load("transactions.md", "orders")
        self.others = {name: load("transactions.md", name) for name in ("by_hand", "changes")}
        self.sim = Simulation(self.orders.app, store=store)
        self.left = self.aborts = 0
        self.sent = list[bytes]()
        self.orders.client.document("stock/tea").set({"left": 100})
        api, create = self.orders.client._firestore_api, SimulatedQueue.create  # noqa: SLF001 - where Firestore answers
        commit = api.commit

        def commit_or_die(request: dict[str, Any], **options: Any) -> Any:  # noqa: ANN401 - Google's
            self.step()
            if self.aborts:
                self.aborts -= 1
                api.rollback({"database": request["database"], "transaction": request["transaction"]})
                raise Aborted("contention")  # type: ignore[no-untyped-call]
            answer = commit(request, **options)
            self.step()
            return answer

        def send_or_die(queue: SimulatedQueue, message: QueueMessage) -> None:
            self.step()
            self.sent.append(message.body)
            create(queue, message)

        monkeypatch.setattr(api, "commit", commit_or_die)
        monkeypatch.setattr(SimulatedQueue, "create", send_or_die)

    def step(self) -> None:
        """Take one step, or die before it."""
        self.left -= 1
        if self.left == 0:
            raise Death

    def kill_everywhere(self, code: ModuleType) -> dict[str, tuple[bool, list[Any]]]:
        """Place orders, each in a process that ends one step later. Return whether each is there, and what it ran."""
        orders = list[str]()
        for aborts in (0, 1):
            for steps in count(1):
                orders.append(order := f"order-{aborts}-{steps}")
                self.left, self.aborts = steps, aborts
                try:
                    self.place(code, order)
                    break
                except BaseException:
                    if self.left:  # else it has died, and Google's library tried to roll back
                        raise
        self.left = 0
        self.sim.advance(4 * DAY)
        return {each: (self.has(each), [self.list_runs(f"{each}-{number}") for number in (1, 2, 3)]) for each in orders}

    def place(self, code: ModuleType, order: str) -> None:
        code.place_order(*([self.orders.client.transaction()] if code is self.orders else []), order, "tea")

    def has(self, order: str) -> bool:
        """Return whether an order is stored."""
        return bool(self.orders.client.document(f"orders/{order}").get().exists)

    def list_runs(self, task_id: str) -> list[Any] | None:
        """Return the results of a task's runs, None if there is no task."""
        try:
            return [run.content for run in self.sim.executions(self.sim.app.get(task_id).id)]
        except NotFound:
            return None


@pytest.fixture
def shop(load: Load, firestore_address: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    """A shop with a hundred packets of tea."""
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", firestore_address)
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", project := new_project())
    store = FirestoreStore(project=project, emulator=firestore_address, deadline=MINUTE)
    with closing(store):
        shop = Shop(load, store, monkeypatch)
        with shop.sim:
            yield shop


def test_an_order_and_its_reminders_are_all_there_or_none_is(shop: Shop) -> None:
    """Wherever the process ends, in a first attempt or after an abort. Each runs once, and no other is sent."""
    whole = [[text] for text in shop.orders.REMINDERS.values()]
    found = shop.kill_everywhere(shop.orders)
    assert {True, False} == {is_there for is_there, _ in found.values()}
    assert len(found) >= 11
    for order, (is_there, runs) in found.items():
        assert runs == (whole if is_there else [None] * 3), order
        assert is_there == any(f"{order}-".encode() in body for body in shop.sent), order
    left = shop.orders.client.document("stock/tea").get().get("left")
    assert left == 100 - sum(is_there for is_there, _ in found.values())


APP: dict[str, dict[str, object]] = {
    "tasks/one": {"title": "Buy tea", "owner": "ada", "status": "ACTIVE", "wakeAt": datetime(2020, 1, 1, tzinfo=UTC)},
    "tasks/one/executions/e": {"status": "RUNNING", "expireAt": datetime(2020, 1, 1, tzinfo=UTC)},
    "messages/m": {"text": "Hi", "expireAt": datetime(2020, 1, 1, tzinfo=UTC)},
    "people/ada": {"name": "Ada"},
    "inboxes/ada/messages/m": {"title": "Own"},
    "locks/l": {"key": "k"},
}
"""Documents of an app, in collections that are called as some of ours."""


def test_the_page_works_in_the_database_of_an_app(
    load: Load, firestore_address: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With the environment that its deployment prints: nothing of the app's changes, and all else has the prefix."""
    cloud = Cloud(tmp_path, deepcopy(IN_USE), DATABASE="'(default)'", COLLECTION_PREFIX=PREFIX)
    add_app(cloud.state)
    for line in cloud.ok("deploy.sh", "--step=settings").out.splitlines():
        monkeypatch.setenv(*line.split("=", 1))
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", project := new_project())
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", firestore_address)
    monkeypatch.setenv("CLOUDSCHED_SECRET", "s" * 40)
    client = firestore.Client()
    for path, fields in APP.items():
        client.document(path).set(fields)
    before = {path: client.document(path).get() for path in APP}
    settings = Settings.from_environment()
    assert settings.database == "(default)"
    with closing(open_firestore_store(settings)) as store:
        shop = Shop(load, store, monkeypatch)
        with shop.sim:
            shop.place(shop.orders, "order-7")
            assert shop.has("order-7")
            shop.sim.advance(2 * DAY)
            assert getattr(TaskReference(client, "order-7-1").get(), "status", None) is TaskStatus.COMPLETED
            with client.batch() as batch:
                shop.sim.app.joining(batch).cancel("order-7-3")
                batch.update(client.document("orders/order-7"), {"paid": True})
            shop.sim.advance(9 * DAY)
            assert [len(shop.list_runs(f"order-7-{number}") or ()) for number in (1, 2, 3)] == [1, 1, 0]
    after = {path: client.document(path).get() for path in APP}
    for path, fields in APP.items():
        assert (after[path].to_dict(), after[path].update_time) == (fields, before[path].update_time), path
    added = set(list_names(firestore_address, project)) - set(APP) - {"stock/tea", "orders/order-7"}
    assert len(added) > 3
    assert all(each.startswith(PREFIX) for name in added for each in name.split("/")[::2]), added


def test_the_version_by_hand_loses_reminders(shop: Shop) -> None:
    """So the page's claim is true: an order without any reminder, and orders with some of theirs."""
    found = shop.kill_everywhere(shop.others["by_hand"])
    missing = {runs.count(None) for is_there, runs in found.values() if is_there}
    assert missing >= {0, 3, 2, 1}


def test_what_the_page_says_besides_holds(shop: Shop) -> None:
    """An order is placed once, a batch cancels a reminder, a listener sees that, and some changes are refused."""
    shown = list[str]()
    shop.place(shop.orders, "order-7")
    with pytest.raises(AlreadyExists):
        shop.place(shop.orders, "order-7")
    watch = shop.others["changes"].watch("order-7", shown)
    wait_until(lambda: shown == ["ACTIVE"], "the reminder")
    shop.others["changes"].pay("order-7")
    wait_until(lambda: shown[-1] == "CANCELLED", "its end")
    watch.unsubscribe()
    batch = shop.orders.client.batch()
    for refused in ("delete", "retry"):
        with pytest.raises(InvalidInput, match="cannot carry this change"):
            getattr(shop.sim.app.joining(batch), refused)("order-7-1")
