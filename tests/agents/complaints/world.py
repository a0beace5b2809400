"""A person, their agent and a scheduler, and a judge that believes nothing that the scheduler says of itself.

What ran is a list that the handlers write, at the times of the test's clock. What was mailed is a list that the
test's own mail server writes. What should have run are instants that each complaint works out by itself. The judge
compares these with everything that was promised: in the answers of the agent's tools, and in their sentences.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo

from pydantic import BaseModel

from cloudsched import App, Context, Settings
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.config.access import Access
from cloudsched.domain.control_flow import ControlFlow
from cloudsched.domain.documents.execution import ExecutionStatus
from cloudsched.engine.authority import OWN_CODE
from cloudsched.engine.ports.search import TaskQuery
from cloudsched.errors import DeliveryDelayed, EventTimedOut, Unavailable
from cloudsched.features.budgets.budgets import Budgets
from cloudsched.people.wiring import PeopleWiring
from cloudsched.testing import START, Simulation

if TYPE_CHECKING:
    from tests.agents.conftest import Caller

    from cloudsched.domain.documents.execution import Execution
    from cloudsched.domain.transitions.claim import DeliveryResult
    from cloudsched.engine.ports.sender import OutgoingMessage, Recipient

SECOND: Final = timedelta(seconds=1)
MINUTE: Final = timedelta(minutes=1)
HOUR: Final = timedelta(hours=1)
DAY: Final = timedelta(days=1)
IN_TIME: Final = 2 * MINUTE
"""A run that begins so soon after its time is in time."""
LATE: Final = 6 * MINUTE
"""A message that is later than this has to say so. One that is in time must not."""
NOT_LATE: Final = 4 * MINUTE
_NEXT: Final = re.compile(r"(?:It runs next|After that, it runs) on \w+ (\d+ \w+ \d{4}) at (\d\d:\d\d) \(([^)]+)\)")
_NO_RUN: Final = {ExecutionStatus.SKIPPED, ExecutionStatus.EXPIRED, ExecutionStatus.CANCELLED}


class Killed(ControlFlow):
    """The process has ended: nothing that it was about to write is written."""


class Reminder(BaseModel):
    """What a reminder is given."""

    text: str = "stretch"
    city: str = ""


@dataclass(frozen=True)
class Start:
    """One start of a handler, as the handler itself has seen it."""

    task: str
    at: datetime
    says: str
    """What it has said. Nobody else says the same. Empty if it has said nothing, or has failed."""


@dataclass(frozen=True)
class Promise:
    """What an answer said of the times of a task."""

    task: str
    made_at: datetime
    next: tuple[datetime, ...]
    due_by: datetime | None
    is_sure: bool
    """False if the same answer has told what stands in the way."""


@dataclass(frozen=True)
class Told:
    """A message that has reached the person."""

    task: str
    at: datetime
    title: str
    body: str
    is_mail: bool = False


class MailServer:
    """Takes mail, unless it is down. It stands for a company's own."""

    def __init__(self, read_clock: Callable[[], datetime]) -> None:
        self.is_down = False
        self.mails: list[Told] = []
        self._read_clock = read_clock

    def send(self, message: OutgoingMessage, _recipient: Recipient) -> str:
        if self.is_down:
            raise DeliveryDelayed("The mail server", "it is down")
        self.mails.append(Told("", self._read_clock(), message.title, message.body, is_mail=True))
        return f"mail-{len(self.mails)}"


class World:
    """What a complaint plays in: Ada, who is in Paris, her agent `ada`, and Bob's agent `bob`."""

    def __init__(self, connect: Callable[[App, ExitStack], dict[str, Caller]], access: Access) -> None:
        self.zone = ZoneInfo("Europe/Paris")
        self.starts: list[Start] = []
        self.failures: dict[str, datetime] = {}
        """When each task has failed first."""
        self.kills: set[str] = set()
        """The tasks whose handler takes the process with it."""
        self.is_broken = False
        self.news = ""
        """What the watching handler has found."""
        self.actions: list[str] = []
        """What handlers have done to the world, beside saying something."""
        self.mail = MailServer(lambda: self.now)
        self._promises: list[Promise] = []
        self._expected: dict[str, list[datetime]] = {}
        self._meant: dict[tuple[str, datetime], datetime] = {}
        """Which of the expected times each start was for."""
        self._outages: list[tuple[datetime, datetime]] = []
        self._store = SqliteStore()
        self._connect = connect
        self._access = access
        self._parts = ExitStack()

    # ------------------------------------------------------------------ the stage

    def begin(self, start: datetime = START, zone: str = "Europe/Paris", **access: Any) -> None:
        """Begin at an instant. Ada is in a zone, and has a mail address that was proved to be hers."""
        self.zone = ZoneInfo(zone)
        self._access = replace(self._access, **access)
        self._open(start)
        self.ask("i_am_in", zone=zone)
        self.sim.app.update_person("ada", email={"address": "ada@example.com", "verified": True})

    def end(self) -> None:
        """Free what it holds."""
        self._parts.close()
        self._store.close()

    def travel(self, zone: str) -> None:
        """Let Ada say that she is somewhere else."""
        self.ask("i_am_in", zone=zone)
        self.zone = ZoneInfo(zone)

    def restart(self, after: timedelta = timedelta(0), declare: Callable[[App], object] | None = None) -> None:
        """End the process, with all that it and the queue had in memory, and start another one on the same store."""
        began = self.now
        self._parts.close()
        self._open(began + after, declare)
        self._outages.append((began, self.now))

    def _open(self, start: datetime, declare: Callable[[App], object] | None = None) -> None:
        app = make_app(self)
        if declare is not None:
            declare(app)
        self.sim = self._parts.enter_context(Simulation(app, start, store=self._store, access=self._access))
        self.sim.queue.deliver = self._survive(app.deliver)
        wiring = PeopleWiring.of(app.container)
        wiring.replace(senders={**wiring.senders, "EMAIL": self.mail})
        self.agents = self._connect(app, self._parts)

    def _survive(self, deliver: Callable[[bytes, str], DeliveryResult]) -> Callable[[bytes, str], DeliveryResult]:
        """Return the delivery to a process that another one replaces when it dies."""

        def call(body: bytes, token: str) -> DeliveryResult:
            try:
                return deliver(body, token)
            except Killed:
                raise Unavailable("The executor", "its process has ended") from None

        return call

    @property
    def now(self) -> datetime:
        return self.sim.clock.at

    def advance(self, by: timedelta) -> None:
        self.sim.advance(by)

    def until(self, local: str) -> None:
        """Let time pass until a local time of Ada's."""
        self.sim.advance_to(self.at(local))

    def use_up_the_budget(self) -> None:
        """Let a task of Ada's use more than she may use in a month."""
        Budgets.of(self.sim.app.container).put("ada", 10, by=OWN_CODE)
        self.sim.app.run_now("think", owner="ada")
        self.advance(10 * MINUTE)

    def sleep(self, by: timedelta) -> None:
        """Let time pass in which the machine sleeps."""
        began = self.now
        self.sim.clock.advance(by)
        self._outages.append((began, self.now))

    # ------------------------------------------------------------------ what the agent does

    def ask(self, tool: str, who: str = "ada", **given: Any) -> Any:  # noqa: ANN401 - the tool's answer
        """Call a tool, and note all that its answer promises."""
        answer = self.agents[who](tool, **given)
        if isinstance(answer, str):
            assert not _NEXT.search(answer), f"a refusal that promises something: {answer}"
            return answer
        for row in [answer, *answer.get("tasks", ())]:
            if "id" in row and "next" in row:
                self._note(row, changes=tool not in {"find_tasks", "read_task"})
        return answer

    def new(self, when: str, **given: Any) -> str:
        """Let Ada's agent create a task, and return its id."""
        answer = self.ask("create_task", **{"title": "Stretch", "handler": "remind", "when": when, **given})
        assert isinstance(answer, dict), answer
        return str(answer["id"])

    def _note(self, row: dict[str, Any], *, changes: bool) -> None:
        named = row["next"] if isinstance(row["next"], list) else [row["next"]]
        instants = tuple(datetime.fromisoformat(each) for each in named if each is not None)
        due_by = None if row.get("due_by") is None else datetime.fromisoformat(row["due_by"])
        made = Promise(row["id"], self.now, instants, due_by, is_sure=row.get("scheduled", False))
        self._promises.append(made)
        if not changes:
            self._compare(made)

        told = row.get("told", "")
        if match := _NEXT.search(told):
            said = datetime.strptime(f"{match[1]} {match[2]}", "%d %B %Y %H:%M").replace(tzinfo=ZoneInfo(match[3]))
            assert match[3] == self.zone.key, told
            assert instants, told
            assert said == instants[0].replace(second=0, microsecond=0), told
        assert all(each > self.now - MINUTE for each in instants), f"a time that is past: {row}"

    # ------------------------------------------------------------------ what should happen

    def at(self, local: str) -> datetime:
        """Return a local time of Ada's as an instant."""
        return datetime.fromisoformat(local).replace(tzinfo=self.zone).astimezone(UTC)

    def daily(self, first: str, days: int, weekdays: Iterable[int] = range(7)) -> list[datetime]:
        """Return a time on Ada's wall on each of so many days, if they are one of these weekdays."""
        begins = datetime.fromisoformat(first)
        dates = [begins.date() + timedelta(days=number) for number in range(days)]
        return [self._on(each, begins.time()) for each in dates if each.weekday() in weekdays]

    def _on(self, day: date, clock: time) -> datetime:
        return datetime.combine(day, clock, self.zone).astimezone(UTC)

    def every(self, length: timedelta, first: datetime, count: int) -> list[datetime]:
        return [first + number * length for number in range(count)]

    def expect(self, task: str, due: Sequence[datetime]) -> None:
        """Say when a task should run, from now on, until at least the end of the play."""
        past = [each for each in self._expected.get(task, ()) if each <= self.now]
        self._expected[task] = sorted({*past, *due})
        for promise in [each for each in self._promises if each.task == task][-1:]:
            self._compare(promise)

    # ------------------------------------------------------------------ what has happened

    def ran(self, task: str) -> list[str]:
        """Return the local times of Ada's at which a task has started."""
        return [f"{each.at.astimezone(self.zone):%m-%d %H:%M}" for each in self.starts if each.task == task]

    def inbox(self) -> list[Told]:
        return [Told(each.task_id, each.created_at, each.title, each.body) for each in self.sim.inbox("ada")]

    def told(self) -> list[Told]:
        """Return all that has reached Ada."""
        return [*self.inbox(), *self.mail.mails]

    def say(self, ctx: Context, text: str) -> str:
        """Note that a handler runs, and return what it says: its text, with a number that nobody else says."""
        said = f"{text} #{len(self.starts) + 1}." if text else ""
        self.starts.append(Start(ctx.task.id, self.now, said))
        if ctx.task.id in self.kills:
            raise Killed
        return said

    def check(self, ctx: Context) -> None:
        """Fail if the world is broken."""
        if self.is_broken:
            self.failures.setdefault(ctx.task.id, self.now)
            raise RuntimeError("the model does not answer")

    # ------------------------------------------------------------------ the judge

    def judge(self) -> None:
        """Check that nothing was promised that did not happen, done twice, or left out in silence."""
        for task, due in self._expected.items():
            self._judge_runs(task, due)
        for number, promise in enumerate(self._promises):
            later = (each.made_at for each in self._promises[number + 1 :] if each.task == promise.task)
            self._judge_promise(promise, next(later, self.now))
        for told in self.told():
            assert told.body.strip() not in {"", "null", "None"}, f"a message that says nothing: {told}"
        self._judge_messages()
        self._judge_failures()

    def _judge_runs(self, task: str, due: list[datetime]) -> None:
        """Check each time that is over: it has run once, or its record says why it has not. Nothing else has run."""
        left = list(due)
        for start in self._list_starts(task):
            is_told = any(self._announces(each, start) for each in self._promises if each.task == task)
            meant = [each for each in left if each <= start and (is_told or start <= self._deadline(each))]
            assert meant, f"nobody wanted {task} to run at {start}, or not once more"
            left.remove(max(meant))
            self._meant[task, start] = max(meant)

        records = self.sim.executions(task)
        for each in left:
            is_over = self._deadline(each) < self.now
            covers = [record for record in records if _covers(record, each)]
            assert covers or not is_over, f"{task} was due at {each}, and has neither run nor a record of why not"

    def _compare(self, promise: Promise) -> None:
        """Check that the times of an answer are those that should come next."""
        due = self._expected.get(promise.task)
        if due is None:
            return
        coming = [each for each in due if each > promise.made_at]
        for meant, said in zip(coming, promise.next, strict=False):
            assert abs(meant - said) < SECOND, f"{said} was promised, and {meant} was wanted"
        is_silent = promise.is_sure and coming and not promise.next and promise.due_by is None
        assert not is_silent, f"nothing was said of {coming[0]}"

    def _judge_promise(self, promise: Promise, taken_back_at: datetime) -> None:
        """Check that a promise was kept, as long as no later answer has changed it, or that its breach was told."""
        if not promise.is_sure:
            return
        starts = self._list_starts(promise.task)
        over = min(taken_back_at, self.now)
        said = [(each, each + LATE) for each in promise.next]  # outside of outages, `_judge_runs` is stricter
        if not said and promise.due_by is not None:
            said = [(promise.made_at - MINUTE, promise.due_by)]
        for begins, ends in said:
            if ends <= over:
                is_kept = any(begins <= each <= ends for each in starts) or self._is_left_out(promise.task, begins)
                assert is_kept or self._is_told(promise.task, begins), f"a false promise: {begins} of {promise}"

    def _announces(self, promise: Promise, start: datetime) -> bool:
        """Return whether an answer says that what was due already starts before the times that it names."""
        if promise.due_by is None or not promise.next or promise.due_by >= promise.next[0]:
            return False
        return promise.made_at <= start <= self._deadline(promise.due_by)

    def _judge_messages(self) -> None:
        """Check that what a run has said came once by each way, and that it says so if it is late."""
        for start in self.starts:
            if not start.says:
                continue
            due = self._meant.get((start.task, start.at))
            heard = [each for each in self.told() if start.says in each.body]
            for is_mail in (False, True):
                assert sum(each.is_mail is is_mail for each in heard) <= 1, f"told twice: {start.says}"
            for each in heard:
                came_at = each.at if each.is_mail else start.at
                lateness = LATE if due is None else came_at - due
                if lateness > LATE or lateness < NOT_LATE:
                    says_so = re.search(r"^\d+ (minutes|hours|days) late\.", each.body)
                    assert bool(says_so) == (lateness > LATE), f"{each} was due at {due}"

    def _judge_failures(self) -> None:
        """Check that the first failure of each task was told."""
        for task, at in self.failures.items():
            assert any(each.task == task and each.at >= at and "Failed" in each.title for each in self.inbox()), task

    def _is_told(self, task: str, since: datetime) -> bool:
        """Return whether Ada was told after an instant that something of a task was late, was missed or has failed."""
        words = re.compile(r"^\d+ (minutes|hours|days) late|did not run|has failed", re.MULTILINE)
        return any(each.task == task and each.at >= since and words.search(each.body) for each in self.inbox())

    def _is_left_out(self, task: str, due: datetime) -> bool:
        """Return whether a record says that another run had its place, or that the task was changed or ended first."""
        records = [each for each in self.sim.executions(task) if _covers(each, due)]
        return any(
            re.search("still open|rescheduled|A newer run was due|Cancelled", each.message or "") for each in records
        )

    def _list_starts(self, task: str) -> list[datetime]:
        return [each.at for each in self.starts if each.task == task]

    def _deadline(self, due: datetime) -> datetime:
        """Return until when a time of a task is over: it may run as soon as the machine is awake again."""
        at = due
        for began, ended in self._outages:
            if began - IN_TIME <= at <= ended:
                at = ended
        return at + IN_TIME


def _covers(record: Execution, due: datetime) -> bool:
    """Return whether a record says why nothing ran at an instant. It may stand for many."""
    if record.status not in _NO_RUN or not record.message:
        return False
    until = record.scheduled_for if record.covers is None else record.covers.until
    return record.scheduled_for <= due <= until


def make_app(world: World) -> App:
    """Return the app of a world: handlers that note what they do."""
    app = App(Settings())

    @app.handler("remind", access="users")
    def remind(ctx: Context, reminder: Reminder) -> str:
        """Sends a reminder."""
        return world.say(ctx, reminder.text)

    @app.handler("watch", access="users")
    def watch(ctx: Context) -> str:
        """Says what is new, if anything is."""
        return world.say(ctx, world.news)

    @app.handler("research", access="users", retry=False)
    def research(ctx: Context) -> str:
        """Asks a model, which may not answer."""
        said = world.say(ctx, "" if world.is_broken else "found")
        world.check(ctx)
        return said

    _add_long_work(app, world)
    return app


def _add_long_work(app: App, world: World) -> None:
    """Add what costs something, takes long, or waits."""

    @app.handler("think", access="users")
    def think(ctx: Context) -> None:
        """Asks a model many times."""
        ctx.used(queries=100)

    @app.handler("read-long", access="users")
    def read_long(ctx: Context) -> None:
        """Works for ninety minutes."""
        ctx.step("begin", lambda: world.say(ctx, ""))
        ctx.sleep(timedelta(minutes=90))

    @app.handler("pay", access="users", retry=False)
    def pay(ctx: Context) -> str:
        """Pays, if Ada approves within an hour."""
        ctx.step("begin", lambda: world.say(ctx, ""))
        with suppress(EventTimedOut):
            if ctx.wait_for("approval", timeout=HOUR, question="May I pay?").ok:
                ctx.step("check", lambda: world.check(ctx))
                ctx.step("pay", lambda: world.actions.append("paid"))
                return "Paid."
        return "Not paid: you have not approved it."

    @app.handler("again", access="users")
    def again(ctx: Context) -> None:
        """Makes two reminders like itself."""
        for _ in range(2):
            app.create(owner=ctx.task.owner, title="Again", handler="again", schedule="now")
            world.actions.append("made")

    @app.handler("print", access="users", pull="office")
    def print_() -> None:
        """Prints, at a worker in the office."""


@dataclass(frozen=True)
class Complaint:
    """What people have complained of elsewhere, and what happens here."""

    words: str
    thread: str
    """Where, as ``owner/repository#number``."""
    here: str
    play: Callable[[World], None]
    settings: dict[str, Any] = field(default_factory=dict)


COMPLAINTS: Final[list[Complaint]] = []
"""All of them, in the order of the page."""


def complaint(
    words: str, thread: str, here: str, **settings: Any
) -> Callable[[Callable[[World], None]], Callable[[World], None]]:
    """Add a complaint, which a function plays."""

    def add(play: Callable[[World], None]) -> Callable[[World], None]:
        COMPLAINTS.append(Complaint(words, thread, here, play, settings))
        return play

    return add


def list_tasks(world: World, owner: str = "ada") -> list[Any]:
    """Return what is stored of an owner."""
    return list(world.sim.app.tasks(TaskQuery(owner=owner), limit=500).items)
