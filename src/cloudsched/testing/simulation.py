"""Test your own schedules: the test moves the clock instead of waiting.

::

    from datetime import timedelta
    from handlers import app

    def test_the_birthday_comes_every_year():
        with Simulation(app) as sim:
            task = app.create(owner="ada", title="Birthday", handler="remind", ...)
            sim.advance(timedelta(days=400))
            assert [e.status for e in sim.executions(task.id)] == ["SUCCEEDED"]

The simulation is the product itself on a SQLite store in memory, the queue model of the local Cloud Tasks and
a clock that only the test moves: no sockets, no threads, no waiting. Dispatches are encoded and signed as in
production, payloads pass through real JSON, the sweep runs every minute, and limits of use are enforced every five.

With pytest, define a fixture `cloudsched_app` that returns your app, and use the fixture `simulation`.
"""

from __future__ import annotations

import random
import re
import secrets
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, TypeVar, Unpack, cast

from cloudsched.adapters.clocks import ManualClock
from cloudsched.adapters.operation_counts import Counts, count_dispatcher, count_store
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.config.access import Access
from cloudsched.config.settings import Settings
from cloudsched.domain.call_arguments import check_arguments, check_methods
from cloudsched.domain.documents.delivery_channels import SENDER_NAMES
from cloudsched.domain.documents.record import secret_hash
from cloudsched.engine.ports.procedure import run_procedure
from cloudsched.engine.signed_dispatches import SigningKeys
from cloudsched.engine.storage.pages import iterate_pages
from cloudsched.engine.sweep.shard_sweeps import SWEEP_NOTE_ID, SweepNote
from cloudsched.engine.sweep.sweeper import GRACE, Sweep
from cloudsched.engine.usage.usage_limit import Looks
from cloudsched.errors import InvalidInput, QueueUnavailable, StoreUnavailable
from cloudsched.features.pull.fields import Pull
from cloudsched.features.pull.presence import PresenceNotes, WorkerPresence, make_presence
from cloudsched.features.pull.wiring import PullWiring
from cloudsched.features.pull.work_queue import THIS_PROCESS, WorkerFilter
from cloudsched.features.table import has_feature
from cloudsched.testing.simulated_channel import SentMessage, SimulatedChannel
from cloudsched.testing.simulated_queue import SimulatedQueue
from cloudsched.testing.wall_clocks import warn_of_wall_clocks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from cloudsched.app import App
    from cloudsched.domain.documents.execution import Execution
    from cloudsched.domain.documents.execution import Message as InboxMessage
    from cloudsched.domain.documents.person import Person
    from cloudsched.domain.transitions.claim import DeliveryResult
    from cloudsched.domain.transitions.task_arguments import PersonFields
    from cloudsched.engine.ports.model import Model
    from cloudsched.engine.ports.queue import QueueMessage
    from cloudsched.engine.ports.store import Store
    from cloudsched.engine.storage.pages import Page

T = TypeVar("T")

START: Final = datetime(2027, 1, 1, tzinfo=UTC)
"""The default start of a simulation: a Friday."""
EACH_LOOK = timedelta(milliseconds=1)
"""The time by which a simulation's clock moves at each look."""
_MINUTE: Final = timedelta(minutes=1)


@check_methods()
class Simulation:
    """An app with a store, a queue and a clock of its own. The test moves the clock.

    Args:
        app: The app whose handlers run. While the simulation is open, the app uses the simulation's parts.
        start: The initial time.
        seed: Seeds all randomness (the jitter of retries), so that a run can be repeated.
        store: A store to use instead of one in memory.
        retention: The time for which finished tasks are kept. For ever by default, so that the test can
            inspect them.
        replay: Suspend and replay durable handlers at every durable point, which reveals code that is not
            deterministic.
        language_model: The model of drafts and of the assistant. None by default, whatever the app was given.
        each_look: The time by which the clock moves whenever cloudsched looks at it, by default a
            millisecond. With ``timedelta(0)`` it stands still, and no time passes between two instants of a
            run, as on no real clock.
        settings: Any other field of `Settings`, by its name.
    """

    @check_arguments
    def __init__(  # noqa: PLR0913 - each is an option of its own
        self,
        app: App,
        start: datetime = START,
        *,
        seed: int = 0,
        store: Store | None = None,
        retention: timedelta | None = None,
        replay: bool = False,
        language_model: Model | None = None,
        each_look: timedelta | None = None,
        **settings: Any,
    ) -> None:
        settings.setdefault("access", Access(open=not settings.get("is_deployed")))
        settings.setdefault("replays_each_step", replay)
        self._settings = Settings(secret=secrets.token_hex(16), retention=retention, **settings)
        self._language_model = language_model
        self._chance = random.Random(seed)  # noqa: S311 - must be repeatable

        self.app = app
        self.clock: ManualClock = ManualClock(start, EACH_LOOK if each_look is None else each_look)
        self.counts: Counts = Counts()
        self.queue: SimulatedQueue = SimulatedQueue(self.clock, app.deliver)
        self._parts = ExitStack()
        self._is_open = False
        self._owns_store = store is None
        self._inner = SqliteStore() if store is None else store
        self._store = count_store(self._inner, self.counts)
        self._channels = {name: SimulatedChannel(name, self.clock) for name in SENDER_NAMES}
        self._workers: list[WorkerFilter] = []
        self._swept_at = start
        self._looks = Looks()

    def __enter__(self) -> Self:
        """Make the app use this simulation's parts."""
        warn_of_wall_clocks(each.function for each in self.app.container.registry)
        self._is_open = True
        self._parts.enter_context(
            self.app.override(
                self._settings,
                store=self._store,
                dispatcher=count_dispatcher(self.queue, self.counts),
                clock=self.clock,
                chance=self._chance,
                language_model=self._language_model,
            )
        )
        # Its sweeps are left out where nothing is due, and are never late.
        self.app.container.replace(load_sweep=self._note_sweep, queue_watch=self.queue)
        PullWiring.of(self.app.container).replace(presence=_Presence(self._store, self.clock, self._workers))
        self._looks = self.app.container.usage_limit.make_looks(self._inner)
        if has_feature("people"):
            self._connect_channels()
        self.app.apply_declarations()
        return self

    def _note_sweep(self) -> SweepNote:
        return SweepNote.of(SWEEP_NOTE_ID, self.now, self.now, Sweep())

    def _connect_channels(self) -> None:
        """Collect what is delivered to people, instead of sending it."""
        from cloudsched.people.wiring import PeopleWiring  # noqa: PLC0415 - of a satellite, which may be gone
        from cloudsched.testing.simulated_recipients import SimulatedRecipients  # noqa: PLC0415 - the same

        wiring = PeopleWiring.of(self.app.container)
        recipients = SimulatedRecipients(
            self._store.records,
            self.clock,
            self._channels,
            wiring.make_unsubscribe_url,
            self._settings.access.ping_hosts,
        )
        wiring.replace(senders=self._channels, recipients=recipients)

    def __exit__(self, *_error: object) -> None:
        """Restore the app's own parts."""
        self._is_open = False
        self._parts.close()
        if self._owns_store:
            self._inner.close()

    @property
    def now(self) -> datetime:
        """Return the current time of the simulation, in UTC."""
        return self.clock.at

    def advance(self, by: timedelta) -> None:
        """Move the clock forward. Everything that comes due runs at its instant, in order.

        Raises:
            TypeError: `by` is not a `timedelta`.
            ValueError: `by` is negative.

        >>> sim.advance(timedelta(days=7))
        >>> len(sim.executions(task.id))
        9
        """
        self.advance_to(self.now + by)

    def advance_to(self, until: datetime) -> None:
        """Move the clock to an instant. Everything due up to and including that instant runs, in order.

        Raises:
            RuntimeError: The simulation is not in use: it has to be entered by ``with``.
            InvalidInput: `until` has no time zone.
            ValueError: `until` is in the past.

        >>> sim.advance_to(datetime(2027, 2, 1, tzinfo=UTC))
        """
        self._run_until(until)
        self.clock.move_to(until)

    def run_until_idle(self, limit: timedelta = timedelta(days=1)) -> bool:
        """Move the clock until nothing is left to do, or at most by `limit`. Return whether nothing is left.

        A recurring task always has something left. `advance` shows its runs in a week or a year.

        >>> once = app.run_now("remind", {"about": "Tea"}, owner="ada")
        >>> sim.run_until_idle(timedelta(hours=1))
        False
        """
        return self._run_until(self.now + limit)

    def add_worker(
        self, queue: str, *skills: str, handlers: Iterable[str] | None = None, owner: str | None = None
    ) -> None:
        """Add a worker that claims and runs whatever its queue offers, from now on.

        It runs the app's own handlers, in this process. Tasks of queues without a worker wait.

        Args:
            queue: The queue that it claims from.
            skills: Its skills. It also claims tasks of the queue that require one of them.
            handlers: The handlers that it has. All of the app's if None.
            owner: The only owner whose tasks it may run. Any owner's if None.

        Raises:
            InvalidInput: `queue` or a skill is not a valid name.

        >>> sim.add_worker("gpu", "cuda")
        """
        for skill in (None, *skills):
            try:
                Pull(queue=queue, skill=skill)
            except InvalidInput as error:
                hint = "Give letters, digits, - and _ (a skill: dots, too), at most 64."
                raise InvalidInput(error.field, "is no name", hint) from None
        if handlers is None:
            handlers = [each.name for each in self.app.container.registry]
        name = f"worker-{len(self._workers) + 1}"
        self._workers.append(WorkerFilter(queue, skills, frozenset(handlers), owner, name))

    def work(self) -> int:
        """Let the workers claim and run everything that is offered now. Return the number of attempts.

        `advance` does this by itself.
        """
        attempts, parts = 0, PullWiring.of(self.app.container)
        for worker in self._workers:
            while claims := parts.work_queue.claim(worker, THIS_PROCESS):
                started = parts.worker_claims.start(claims[0])
                if started is not None:
                    report = run_procedure(self.app.container.executor.call(started))
                    parts.worker_claims.finish(started, report)
                attempts += 1
        return attempts

    def pending(self) -> list[QueueMessage]:
        """Return the calls that wait in the queue, the earliest first.

        Hand one to `redeliver` to see the effect of a duplicate, or read its body as anybody with access to
        the queue can.
        """
        return self.queue.pending()

    def redeliver(self, message: QueueMessage) -> DeliveryResult:
        """Deliver a call now, whatever the queue's state: early, late or once more.

        Raises:
            Unauthenticated: Its token does not fit its body.
            InvalidInput: Its body is not one that the queue carries.
        """
        return self.app.deliver(message.body, message.token)

    def sign(self, body: bytes) -> str:
        """Return the token that the queue would carry for this body, made with the simulation's secret."""
        return SigningKeys(self._settings.secret).sign(body)

    def executions(self, task_id: str) -> list[Execution]:
        """Return all executions of a task, the earliest first.

        >>> [each.status.value for each in sim.executions(task.id)]
        ['SUCCEEDED', 'FAILED']
        """
        return list(_iter_pages(lambda token: self.app.executions(task_id, limit=500, page_token=token)))[::-1]

    def inbox(self, owner: str) -> list[InboxMessage]:
        """Return all messages in an owner's inbox, the earliest first.

        >>> [message.title for message in sim.inbox("ada")]
        ['Do not forget', 'Failed: Water the plants']
        """
        return list(_iter_pages(lambda token: self.app.inbox(owner, limit=500, page_token=token)))[::-1]

    def add_person(self, owner: str, **fields: Unpack[PersonFields]) -> Person:
        """Store an owner with a verified address, a device and a verified webhook, so that all channels reach them.

        People who are not stored get nothing, as in production. The inbox, ``WEB``, works without. Somebody
        who is stored already is not touched: change them as your own code does, with ``App.update_person``.

        Args:
            owner: The owner of these contacts.
            fields: Other values for any field of ``App.put_person``.

        Raises:
            InvalidInput: The owner is stored already, or a field is not valid.

        >>> person = sim.add_person("grace", timezone="Europe/Paris")
        """
        if self.app.container.feature("people").people.find(owner) is not None:
            hint = f"Change some of their fields as your own code does: app.update_person({owner!r}, …)."
            raise InvalidInput("owner", f"is {owner!r}, who is stored already", hint)
        local = re.sub(r"[^A-Za-z0-9]+", "-", owner).strip("-") or "someone"
        known: PersonFields = {
            "email": {"address": f"{local}@example.com", "verified": True},
            "devices": [{"token": f"device-of-{local}"}],
            "webhook": {"url": f"https://example.com/{local}", "verified": True},
            "telegram": {"id": str(int(secret_hash(owner)[:12], 16) + 1), "verified": True},
            "slack": {"id": f"U{secret_hash(owner)[:10].upper()}", "verified": True},
        }
        return self.app.put_person(owner, **cast("PersonFields", {**known, **fields}))

    def channel(self, name: str) -> SimulatedChannel:
        """Return a channel of deliveries, such as ``EMAIL``, to make it fail.

        ``sim.channel("EMAIL").fails(2)``, ``….drops_answers(1)``, ``….is_down = True``.

        Raises:
            InvalidInput: It is none of those that are sent to. Messages of ``WEB`` are in `inbox`.

        >>> sim.channel("EMAIL").fails(2)
        """
        if name not in self._channels:
            raise InvalidInput("channel", f"is {name!r}", f"Give one of {', '.join(self._channels)}. WEB is sim.inbox.")
        return self._channels[name]

    def sent(self, channel: str, *, to: str | None = None) -> list[SentMessage]:
        """Return the messages that a channel has sent, in order: all, or those for an owner or an address.

        >>> task = app.run_now("remind", {"about": "Tea"}, owner="ada", delivery_channels=["EMAIL"])
        >>> sim.advance(timedelta(minutes=1))
        >>> [message.title for message in sim.sent("EMAIL", to="ada")]
        ['Do not forget']
        """
        return [each for each in self.channel(channel).sent if to is None or to in {each.owner, each.address}]

    def _run_until(self, until: datetime) -> bool:
        """Run everything that is due up to an instant. Return whether nothing is left after it."""
        if not self._is_open:
            raise RuntimeError("The simulation is not in use; write `with Simulation(app) as sim:` around this.")
        if until < self.now:
            raise ValueError(
                f"{until} is in the past: the simulation is at {self.now}, and its clock only moves forward."
            )
        self._work()
        while (event := self._next_event()) is not None and event.at <= until:
            self._run_event(event)
        return event is None

    def _next_event(self) -> _Event | None:
        """Return what happens next. None if nothing is left."""
        wake_at = self.queue.wake_at()
        sweep_at = self._next_sweep()
        look_at = self._looks.find_next(self.now)
        instants = [*filter(None, (wake_at, sweep_at, look_at))]
        if not instants:
            return None
        at = min(instants)
        return _Event(at, sweeps=sweep_at == at, looks=look_at == at)

    def _next_sweep(self) -> datetime | None:
        """Return the first full minute at which the sweep has something to do. The others can be skipped."""
        wake_at = self._store.sweep.next_wakeup()
        if wake_at is None:
            return None
        earliest = max(wake_at + GRACE, self._swept_at + timedelta(microseconds=1), self.now)
        past = timedelta(seconds=earliest.second, microseconds=earliest.microsecond)
        return earliest + (-past % _MINUTE)

    def _run_event(self, event: _Event) -> None:
        self.clock.move_to(event.at)
        if event.sweeps:
            self._swept_at = event.at
            with suppress(QueueUnavailable):  # as in production: Cloud Scheduler starts the next sweep anyway
                self.app.sweep()
        if event.looks:
            self._looks.look(event.at)
        self.queue.deliver_due()
        self._work()

    def _work(self) -> None:
        """Run the workers, and deliver the dispatches that this makes due now, until nothing is left."""
        with suppress(StoreUnavailable):  # as in production: a worker polls again
            while self._workers and self.work():
                self.queue.deliver_due()


class _Presence(PresenceNotes):
    """The stored workers, and those of a simulation, which always listen."""

    def __init__(self, store: Store, clock: ManualClock, workers: Sequence[WorkerFilter]) -> None:
        super().__init__(store, clock)
        self._own = workers
        self._manual = clock

    def list_all(self) -> Sequence[WorkerPresence]:
        """Return the workers that were there in the last day."""
        return [*super().list_all(), *(make_presence(each, THIS_PROCESS, self._manual.at) for each in self._own)]


class _Event(NamedTuple):
    at: datetime
    sweeps: bool
    """True if the sweep runs then."""
    looks: bool
    """True if the limit of what owners use is enforced then."""


def _iter_pages(page_after: Callable[[str | None], Page[T]]) -> Iterator[T]:
    for page in iterate_pages(page_after):
        yield from page.items
