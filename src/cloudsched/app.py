"""The app: register handlers, and create, change and run their tasks.

::

    from cloudsched import App, Context, Schedule

    app = App()

    @app.handler("greet")
    def greet(ctx: Context, greeting: Greeting) -> str:
        ctx.notify("Hello", f"Good morning, {greeting.name}")
        return "greeted"

    app.create(owner="ada", title="Greet", handler="greet", payload={"name": "Ada"},
               schedule=Schedule(rrule="FREQ=DAILY", dtstart="2027-01-01T09:00:00", timezone="Europe/Paris"))

Creating an app, usually at import, opens nothing. The first call that needs the store or the queue opens it, as
`Settings` (by default from the environment) describe.
"""

from __future__ import annotations

import inspect
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import replace
from datetime import datetime, time, timedelta
from functools import partial, wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any, Concatenate, Final, Never, ParamSpec, Self, TypeAlias, TypeVar, Unpack, cast

from pydantic.alias_generators import to_camel

from cloudsched.domain.call_arguments import check_methods, require_instant
from cloudsched.domain.documents.authority import SYSTEM_OWNER, EventSender, Requesters
from cloudsched.domain.documents.verbs import NEXT, Verb
from cloudsched.domain.event_loops import warn_if_on_loop
from cloudsched.domain.handler_code import note_change
from cloudsched.domain.recurrence.iso8601 import add_duration
from cloudsched.domain.transitions.lifecycle import list_to_come
from cloudsched.domain.transitions.task_draft import (
    TaskDraft,
    find_all_faults,
    has_schedule_text,
    to_draft_content,
    to_wire_fields,
)
from cloudsched.domain.transitions.validation_errors import say_in_python
from cloudsched.engine.authority import OWN_CODE, Authority
from cloudsched.engine.handlers.registry import Declaration, Registry
from cloudsched.engine.handlers.typed_calls import HandlerFunction, add_handle
from cloudsched.engine.ports.procedure import run_procedure
from cloudsched.engine.storage.pages import Page, check_page_size
from cloudsched.errors import Forbidden, InvalidInput, Misconfigured, NotFound, QuotaExceeded
from cloudsched.features.table import has_feature
from cloudsched.runtime.container import Container

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence

    from cloudsched.client.client import AsyncClient, Client
    from cloudsched.client.flow import Flow
    from cloudsched.client.local_client import AsyncLocalClient, LocalClient, Send
    from cloudsched.client.views import TaskView
    from cloudsched.config.settings import Settings
    from cloudsched.domain.documents.execution import Execution, ExecutionStatus, Message
    from cloudsched.domain.documents.person import Person
    from cloudsched.domain.documents.policy import Priority, RetryPolicy
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.responses.api_responses import DeliveryReport, DraftResult
    from cloudsched.domain.schedules.schedule import Schedule
    from cloudsched.domain.transitions.claim import DeliveryResult
    from cloudsched.domain.transitions.commit import Commit
    from cloudsched.domain.transitions.idempotency import RequestMark
    from cloudsched.domain.transitions.task_arguments import PersonFields, RunArguments, TaskArguments, TaskChanges
    from cloudsched.engine.child_tasks import CallTree
    from cloudsched.engine.handlers.registry import OnFailure
    from cloudsched.engine.ports.search import ExecutionQuery, TaskQuery
    from cloudsched.engine.ports.sender import Template
    from cloudsched.engine.sweep.sweeper import Sweep
    from cloudsched.engine.tasks.declared_tasks import DeclaredTasks
    from cloudsched.engine.tasks.joined import WriteGroup
    from cloudsched.engine.tasks.scheduler import Scheduler
    from cloudsched.features.fields import Pull
    from cloudsched.runtime.factories import AppParts

MIDNIGHT: Final = time(0)
SNOOZE: Final = timedelta(minutes=10)
"""The duration of a snooze, unless its caller gives another one."""
P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
H = TypeVar("H", bound="OnFailure")
SHARED: Final = [
    "watch",
    "audit",
    "batch_change",
    "batch_retry",
    "budget",
    "budgets",
    "calendar",
    "calendars",
    "change_cursor",
    "count_executions",
    "count_retries",
    "create_feed",
    "create_many",
    "delete_budget",
    "delete_calendar",
    "delete_feed",
    "delete_person",
    "delete_script",
    "deliveries_of",
    "resend",
    "describe_schedule",
    "dispatch_queues",
    "erase_person",
    "explain",
    "export_person",
    "feeds",
    "handlers",
    "history",
    "locks",
    "logs",
    "mark_read",
    "occurrences",
    "overview",
    "pause_all",
    "preview",
    "purge_dispatch_queue",
    "put_budget",
    "put_calendar",
    "put_script",
    "queued_tasks",
    "queues",
    "restore",
    "rotate_webhook_secret",
    "script",
    "scripts",
    "search",
    "search_names",
    "unread",
    "update_dispatch_queue",
    "usage",
    "validate_task",
    "verify_chat",
    "verify_webhook",
    "wait",
    "workers",
]
"""The names of the methods that apps have from `Client`."""
OWN_CODE_SUBJECT: Final = "code"
"""The requester of a draft, if the app's own code made it."""


def reads(method: Callable[Concatenate[App, P], R]) -> Callable[Concatenate[App, P], R]:
    """Mark a method of `App` that waits for the store. On an event loop, `AsyncApp` has it."""

    @wraps(method)
    def call(app: App, /, *arguments: P.args, **named: P.kwargs) -> R:
        warn_if_on_loop(f"app.{method.__name__}", f"AsyncApp(app).{method.__name__}(…)")
        return method(app, *arguments, **named)

    return call


def changes(method: Callable[Concatenate[App, P], R]) -> Callable[Concatenate[App, P], R]:
    """Mark a method of `App` that changes something. A durable handler calls it in steps only."""

    @wraps(method)
    def call(app: App, /, *arguments: P.args, **named: P.kwargs) -> R:
        warn_if_on_loop(f"app.{method.__name__}", f"AsyncApp(app).{method.__name__}(…)")
        note_change(f"app.{method.__name__}")
        return cast("R", _promise(app, method(app, *arguments, **named)))

    return call


def _promise(app: App, answer: Any) -> Any:  # noqa: ANN401 - whatever a method returns
    """Return an answer whose task has a receipt, for whoever asks for it."""
    if isinstance(answer, tuple):
        return _promise(app, answer[0]), *answer[1:]
    if getattr(answer, "answer", True) is not None:
        return answer
    return _to_answer(app, answer, tuple)


def _to_answer(app: App, task: Task, find_assumed: Callable[[], Sequence[str]]) -> Task:
    container = app.container
    return task.answering(find_assumed, lambda: container.conditions.make_receipt(task))


class shared:  # noqa: N801 - used like a decorator
    """A method that apps have from `Client`. It is imported when it is first used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, app: App | AsyncApp | None, kind: type) -> Any:  # noqa: ANN401 - its own signature
        """Return the method of an app, or the function of its class."""
        from cloudsched.client.operations import SharedOperations  # noqa: PLC0415 - dispatches need none

        return inspect.getattr_static(SharedOperations, self._name).__get__(app, kind)


if TYPE_CHECKING:
    from cloudsched.client.operations import SharedOperations as _Shared
else:

    class _Shared:
        """The methods that apps and clients have alike."""

    for _name in SHARED:
        setattr(_Shared, _name, shared(_name))


@check_methods(but=("handler", "deliver"))
class App(_Shared):
    """A registry of handlers, and the scheduler, the executor and the sweep for their tasks.

    Args:
        settings: The settings, such as those of the store. Read from the environment on first use if None.
        store: A store to use instead of the one that the settings name.
        dispatcher: A queue to use instead of the one that the settings name.
        blobs: The storage of large results to use instead of the one that the settings name.
        clock: A clock to use instead of the system's (or of the local Cloud Tasks', where settings name one).
        chance: The source of randomness, for jitter.
        monotonic: A monotonic clock in seconds, which limits how long a claim searches.
        language_model: A language model to use instead of the one that the settings name.

    Attributes:
        container: Its store, clock, executor and so on, for code that runs it.
    """

    face: Final = "app"

    def __init__(self, settings: Settings | None = None, **parts: Unpack[AppParts]) -> None:
        self.container: Container = Container(Registry(), settings, **parts)
        self._authority = OWN_CODE
        self._joined: Scheduler | None = None
        self._mark: RequestMark | None = None

    @contextmanager
    def override(self, settings: Settings | None = None, **parts: Unpack[AppParts]) -> Iterator[Self]:
        """Replace the app's parts until the block ends, as a test, a simulation or the local stack does.

        Code that has imported the app sees the replacements, too. Afterwards the app has its earlier parts again. The
        replacements are not closed.
        """
        before = self.container
        if "language_model" not in parts:
            parts["language_model"] = before.given_model
        self.container = Container(before.registry, settings, **parts)
        try:
            yield self
        finally:
            self.container = before

    def close(self) -> None:
        """Close the store, the queue and a remote clock, if they were opened."""
        self.container.close()

    def handler(  # noqa: PLR0913 - each is an option of its own
        self,
        name: str,
        *,
        retry: RetryPolicy | int | bool | None = None,
        retry_on: type[Exception] | tuple[type[Exception], ...] = Exception,
        expected_duration: timedelta | None = None,
        pull: str | Pull | None = None,
        query_per_execution: float | None = None,
        tokens_per_execution: float | None = None,
        on_failure: OnFailure | None = None,
        tool: bool = False,
        task_id: Callable[[Any], str | None] | None = None,
        access: Requesters | str = Requesters.SERVERS,
        user_max_priority: Priority | str | None = None,
        user_queues: Iterable[str] = (),
        draft: str | None = None,
        logs: str = "admins",
        tell_errors: bool = False,
        events: Mapping[str, Any] | None = None,
        early_events: Iterable[str] = (),
        **unknown: Never,
    ) -> Callable[[Callable[P, R]], HandlerFunction[P, R]]:
        """Register a function as the handler of that name.

        The function does not change, but gains ``create`` and ``run_now``, which create its tasks.

        Args:
            name: The name by which tasks refer to it.
            retry: The default policy of its tasks: a `RetryPolicy`, a number of retries, or False for none.
            retry_on: The exceptions that are retried. Any other fails the occurrence at once.
            expected_duration: The default time limit of one attempt.
            pull: The queue, or the `Pull` with the skill, of the workers that run its tasks by default.
            query_per_execution: The queries that one run uses as a rule, for tasks that do not say it. Usage shows it
                beside what was reported. See ``docs/guides/quotas.md``.
            tokens_per_execution: The tokens of a language model that one run uses as a rule, likewise.
            on_failure: Called with the task and the execution when an occurrence has failed permanently, before the
                failure is stored. So it is called at least once, and again if the process dies in between. A process
                without the handler cannot call it. See ``docs/guides/workers.md``.
            tool: True if scripts, which users write, may call it. See ``docs/guides/scripts.md``. With
                ``access="users"`` and `draft`, the assistant may, too. See ``docs/guides/agents.md``.
            task_id: Returns the id of a task from its payload, so that creating a task about the same thing again edits
                it: ``lambda payload: f"remind-{payload.order}"``. It is for creations without an `id`. If it returns
                None, the id is random. With ``access="users"`` the id begins with a hash of the owner.
            access: The callers that may name it, directly, as a child or as a tool of a script. ``"servers"`` is the
                app's code, service accounts and admin keys. ``"users"`` is everyone who may create tasks. See
                ``docs/guides/access.md``.
            user_max_priority: The most urgent priority that users may ask for. HIGH if None.
            user_queues: The queues that users may ask for, besides the handler's own.
            draft: A description in one sentence, if drafts may propose it: ``"Sends a reminder"``. If None, they never
                do. Drafts for users propose only handlers that `access` opens to them. See
                ``docs/guides/plain-language.md``.
            logs: The callers that may read its log lines through the API. ``"admins"`` is those who see the tasks of
                all owners. ``"owner"`` adds the task's owner.
            tell_errors: True if messages about a failure have the text of its error. It is meant for developers, and
                may have an address or a password, so owners are told only that the task has failed.
            events: The types of the events that it waits for, by name: ``{"decision": Decision}``. An event is checked
                before it is accepted, and API, clients and dashboard know the type. `Context.wait_for` takes the same
                type.
            early_events: The events that are kept if they come before it waits for them, instead of being refused.
                ``"paid-*"`` are all whose names begin so.
            unknown: Nothing: another option is refused.

        Raises:
            Misconfigured: The name is taken, an option is wrong or unknown, or the function's parameters cannot be
                understood.

        >>> class Reminder(BaseModel):
        ...     about: str
        >>> @app.handler("tell", retry=3)
        ... def tell(ctx: Context, reminder: Reminder) -> None:
        ...     ctx.notify("Do not forget", reminder.about)
        >>> task = tell.create(Reminder(about="Tea"), owner="ada", schedule="every day at 9")
        """
        for option in unknown:
            raise _refuse_option(name, option)
        register = self.container.registry.register(
            name,
            retry=retry,
            retry_on=retry_on,
            expected_duration=expected_duration,
            pull=pull,
            query_per_execution=query_per_execution,
            tokens_per_execution=tokens_per_execution,
            on_failure=on_failure,
            tool=tool,
            task_id=task_id,
            access=access,
            user_max_priority=user_max_priority,
            user_queues=user_queues,
            draft=draft,
            logs=logs,
            tell_errors=tell_errors,
            events=events,
            early_events=early_events,
        )
        return lambda function: add_handle(register(function), self.create, self.run_now)

    def on_failure(self, hook: H) -> H:
        """Register a function that is called whenever an occurrence of any handler has failed permanently.

        It gets the task and the execution, like a handler's own `on_failure`, and is called after that, by the process
        that records the failure. It is called at least once, and again if the process dies before the failure is
        stored. An exception that it raises is logged, and changes nothing.

        >>> @app.on_failure
        ... def tell(task: Task, execution: Execution) -> None:
        ...     print(task.title, execution.error)
        """
        self.container.registry.registrations.failure_hooks.append(hook)
        return hook

    def mail_template(self, template: Template) -> Template:
        """Register the function that makes the HTML of mails from a message: its `title`, `body`, `data` and so on.

        These may come from users, so the function has to escape them (`html.escape`). The mail's text stays the
        message's own. An exception that it raises fails the attempt, which is repeated.
        """
        self.container.registry.registrations.mail_template = template
        return template

    @property
    def dependency_overrides(self) -> dict[Callable[..., Any], Callable[..., Any]]:
        """Return test replacements of dependencies' factories: ``app.dependency_overrides[open_session] = fake``."""
        return self.container.registry.registrations.dependency_overrides

    def scheduled(
        self,
        schedule: Schedule | datetime | str,
        *,
        id: str | None = None,  # noqa: A002 - the field's name
        timezone: str | None = None,
        owner: str = SYSTEM_OWNER,
        payload: Any = None,  # noqa: ANN401 - as the handler takes it
    ) -> Callable[[Callable[P, R]], HandlerFunction[P, R]]:
        """Declare a task that runs this function on a schedule. ``cloudsched apply`` creates it.

        A plain function becomes a handler of its own name. A handler, whose decorator stands below this one, gets the
        schedule in addition. In a `Simulation`, under ``cloudsched dev`` and ``serve`` the task exists at once.

        Args:
            schedule: Plain words, cron or another notation, or a `Schedule`.
            id: The task's id. The handler's name if None.
            timezone: The IANA time zone of words and cron. The owner's if None, or UTC if none is stored.
            owner: The task's owner.
            payload: An instance of the handler's model, or JSON.

        Raises:
            Misconfigured: The id is taken or invalid, or the function is a handler with several names.

        >>> @app.scheduled("every night at 2", timezone="Europe/Paris")
        ... def tidy() -> None:
        ...     print("tidied")
        """
        if callable(schedule):
            raise Misconfigured('@app.scheduled takes a time: write @app.scheduled("every day at 9").')

        def decorate(function: Callable[P, R]) -> HandlerFunction[P, R]:
            names = self.container.registry.names(function)
            if not names:
                self.handler(function.__name__)(function)
            name = self.container.registry.name_of(function)
            declaration = Declaration(id or name, name, schedule, timezone, owner, payload, function=function)
            self.container.registry.declare(declaration)
            return cast("HandlerFunction[P, R]", function)

        return decorate

    def declared_tasks(self, name: str = "default", source: str = "the code") -> DeclaredTasks:
        """Return an object that brings the stored tasks in line with declared schedules. See `DeclaredTasks`."""
        from cloudsched.engine.tasks.declared_tasks import DeclaredTasks  # noqa: PLC0415 - dispatches need none

        def read(content: dict[str, Any], now: datetime) -> TaskDraft:
            zone = partial(self._ask_person, content.get("owner"), "zone")
            fields, text = self._read_schedule(content, now, find_owner_zone=zone)
            return TaskDraft.from_wire(self._place(fields)).as_read_at(None, text)

        return DeclaredTasks(self.container.engine, self._scheduler, read, name, source)

    @changes
    def apply_declarations(self, owners: Iterable[str] = ()) -> None:
        """Create, edit and pause tasks as the code declares. `owners` are those that only older code named."""
        if self.container.registry.registrations.declarations or owners:
            declared = self.declared_tasks()
            declared.apply(declared.compare(list(self.container.registry.registrations.declarations.values()), owners))

    def acting_with(self, authority: Authority) -> Self:
        """Return the app with the rights of a caller that is not its own code. Lists are not checked task by task."""
        acting = copy(self)
        acting._authority = authority  # noqa: SLF001 - its own
        return acting

    def acting_for(self, user: str) -> LocalClient:
        """Return a client of this app that acts for a user, with exactly the authority of that user.

        It has the methods of `Client`, and needs no address: it asks this process.

        >>> app.acting_for("ada").get(task.id).title
        'Water the plants'
        """
        from cloudsched.client.local_client import LocalClient  # noqa: PLC0415 - dispatches need none

        return LocalClient(self._find_sender, user)

    def run_flow(self, flow: Flow[T]) -> T:
        """Run an operation of the API in this process, and return its result. Methods that `Client` has, too, use this.

        Raises Forbidden if this app has been limited to a part of what its code may do.
        """
        from cloudsched.client.local_client import LocalApi  # noqa: PLC0415 - dispatches need none

        return LocalApi(self._find_sender(None)).run_flow(flow)

    def _find_sender(self, user: str | None) -> Send:
        if self._authority is not OWN_CODE:
            raise Forbidden("Only an app that acts for its own code has this method. For a user, call acting_for.")
        web = import_module("cloudsched.web.own_api")  # which imports this module
        sender: Send = web.find_sender(self, user)
        return sender

    def limit(self, check: Callable[[Task], None]) -> Self:
        """Return the app with a further check of each task that it returns or changes."""
        return self.acting_with(self._authority.limit(check))

    def marked(self, mark: RequestMark | None) -> Self:
        """Return the app for one request, which this mark identifies: a task that has seen it is returned as it is."""
        marked = copy(self)
        marked._mark = mark  # noqa: SLF001 - its own
        return marked

    def _mark_of(self, verb: str, key: str | None, *content: object) -> RequestMark | None:
        """Return what identifies a request: its key, or else what this app was given."""
        if key is None:
            return self._mark
        from cloudsched.domain.transitions.idempotency import RequestMark  # noqa: PLC0415 - dispatches need none

        return RequestMark.of_name([verb, OWN_CODE_SUBJECT, key], [str(each) for each in content])

    def joining(self, group: WriteGroup, /) -> Self:
        """Return the app with changes of tasks that are part of your own commit in Firestore, all or none.

        ::

            @firestore.transactional
            def place(transaction: firestore.Transaction, order: Order) -> None:
                transaction.create(orders.document(order.id), order.as_dict())
                app.joining(transaction).create(handler="ship", payload={"order": order.id})

        Create, edit, pause, resume, cancel, trigger, snooze and send events with it. Each is checked when you call it:
        if it is refused, your commit has nothing of it. It is stored when the transaction or the batch is committed.
        The wake-up follows as soon as the commit returns. If your process ends in between, the sweep sends it within a
        minute of its time. Nothing is sent for what is aborted: call this in each attempt of a transaction.

        Neither holds the task until the commit. If it has changed meanwhile, the transaction is tried again, and the
        commit of a batch fails. Both fail with AlreadyExists if a task is created whose `id` is taken.

        Raises:
            InvalidInput: It is not of the database that has the tasks, or not in progress. A change raises it if more
                than the task would have to change, such as a lock or another task.
        """
        joined = copy(self)
        joined._joined = self.container.join(group)  # noqa: SLF001 - its own
        return joined

    def check(self, draft: TaskDraft) -> TaskDraft:
        """Return a draft with its handler's defaults, after all checks that need no store. Raises InvalidInput."""
        from cloudsched.engine.handlers.validation import validate_draft  # noqa: PLC0415 - imported only when used

        self._authority.require_owner(draft.owner)
        retention, requesters = self.container.settings.retention, self._authority.requesters
        return validate_draft(draft, self.container.handlers, retention, requesters)

    @property
    def _scheduler(self) -> Scheduler:
        return self._joined or self.container.scheduler

    @changes
    def create(
        self,
        /,
        draft: TaskDraft | None = None,
        *,
        idempotency_key: str | None = None,
        transaction: WriteGroup | None = None,
        batch: WriteGroup | None = None,
        **fields: Unpack[TaskArguments],
    ) -> Task:
        """Create a task, or edit the one of the same id and owner. See `TaskDraft` for the fields.

        With an id or an `idempotency_key` of your own, the same call again is a repetition: it returns the task as it
        is now, even if words such as "in 2 seconds" would mean another instant, or somebody has edited it since.

        `handler` may be the function itself, and `payload` an instance of its model. Without a `title` the task has the
        handler's name, and without an `owner` it belongs to ``system``. `schedule` may be an aware datetime (once) or
        text: a notation, such as cron, or plain words ("every weekday at 9"), whose times are those of `timezone`
        (default: its owner's, or UTC). Without one the task runs once, now. `assumed` of the task says what the call
        has left open. Its `receipt` says when it runs next, and what stands in the way of that.

        With a `transaction` or a `batch` of yours, the task is stored by its commit. See `joining`.

        Raises:
            AmbiguousSchedule: The words have several meanings, which `readings` lists. Nothing was stored.
            InvalidInput: A field is not valid. Nothing was stored.
            StoreUnavailable: The store did not respond, and the task may or may not be stored. With an id of the
                caller's own, repeating the call is safe.

        >>> task = app.create(handler="remind", payload={"about": "Tea"}, owner="ada", schedule="daily at 9")
        >>> print(task.next_execution_time)
        2027-01-03 09:00:00+00:00
        """
        from cloudsched.domain.transitions.idempotency import RequestMark  # noqa: PLC0415 - dispatches need none

        if transaction is not None and batch is not None:
            raise InvalidInput("batch", "is given beside a transaction", "A task is written by one commit: give one.")
        group = batch if transaction is None else transaction
        if group is not None:  # not `or`: an empty one counts as False
            return self.joining(group).create(draft, idempotency_key=idempotency_key, **fields)
        try:
            if draft is not None and idempotency_key is not None and draft.id is None:
                return self._put(*self._name_by_key(draft, idempotency_key))[0]
            if draft is not None:
                return self._put(draft, None if draft.id is None else RequestMark.of_content(draft))[0]
            content = self._to_content(fields)
            if idempotency_key is not None and fields.get("id") is None:
                scope = [OWN_CODE_SUBJECT, fields.get("owner"), idempotency_key]
                return self._answer(partial(self.put_by_key, content, scope), content)
            is_text = has_schedule_text(content)
            mark = None if fields.get("id") is None else RequestMark.of_content(content, depends_on_time=is_text)
            return self._answer(partial(self._put_content, content, mark), content)
        except InvalidInput as error:
            say_in_python(error, fields, TaskDraft)
            raise

    @changes
    def run_now(
        self,
        /,
        handler: str | Callable[..., Any],
        payload: Any = None,  # noqa: ANN401 - as the handler takes it
        *,
        idempotency_key: str | None = None,
        **fields: Unpack[RunArguments],
    ) -> Task:
        """Create a task that runs once, now. It is stored when this returns, and runs then.

        CLOUDSCHED_MINIMUM_LEAD_SECONDS does not apply. If the task's id, your own or one that the handler derives from
        the payload, is that of an existing task of the owner, that one is edited and triggered. If it may not be
        triggered, such as while it is paused or once it has ended, it is not edited either. An `idempotency_key`, in
        place of an id, makes the same call one task that runs once.

        >>> task = app.run_now("remind", {"about": "Tea"}, owner="ada", id="tea-of-today")
        """
        from cloudsched.domain.transitions.edits import NO_LEAD  # noqa: PLC0415 - dispatches need none
        from cloudsched.domain.transitions.manual_verbs import require_triggerable  # noqa: PLC0415 - the same

        given = {"handler": handler, **fields, **({} if payload is None else {"payload": payload})}
        draft = self.to_draft(given)
        mark: RequestMark | None = None
        if idempotency_key is not None:
            draft, mark = self._name_by_key(draft, idempotency_key)
        try:
            task, is_new = self.limit(require_triggerable).put(draft, mark=mark, lead=NO_LEAD)
        except InvalidInput as error:
            say_in_python(error, given, TaskDraft)
            raise
        if "owner" not in given:
            from cloudsched.engine.tasks.read_back import assume_owner  # noqa: PLC0415 - dispatches need none

            task = _to_answer(self, task, partial(assume_owner, given, task))
        return task if is_new or mark is not None else self.trigger(task.id)

    def _name_by_key(self, draft: TaskDraft, key: str) -> tuple[TaskDraft, RequestMark]:
        """Return a draft whose id is made of a key, and what identifies its creation. Raises InvalidInput."""
        from cloudsched.domain.transitions.idempotency import RequestMark, hash_name  # noqa: PLC0415 - dispatches need none

        if draft.id is not None or self.container.registry.derives_id(draft.handler):
            hint = "Leave it out: the id says which task it is. To run that once for a key, give the key to trigger."
            raise InvalidInput("idempotency_key", "is given beside an id, your own or the handler's", hint)
        name = hash_name([OWN_CODE_SUBJECT, draft.owner, key])
        return draft.model_copy(update={"id": f"k{name[:32]}"}), RequestMark.of_new_task(draft)

    def to_draft(self, fields: dict[str, Any]) -> TaskDraft:
        """Return the draft of a task from its fields by their Python names. A schedule in words is read."""
        try:
            return self._read_draft(self._to_content(fields))
        except InvalidInput as error:
            say_in_python(error, fields, TaskDraft)
            raise

    def _to_content(
        self,
        fields: Mapping[str, Any],
        convert: Callable[[Mapping[str, Any]], dict[str, Any]] = to_draft_content,
        task_id: str | None = None,
    ) -> dict[str, Any]:
        """Return fields with Python names as JSON. Raises InvalidInput, with all faults of the creation or patch."""
        if callable(handler := fields.get("handler")):
            fields = {**fields, "handler": self.container.registry.name_of(handler)}
        try:
            return convert(fields)
        except InvalidInput as error:
            given = {to_camel(name): value for name, value in fields.items()}
            raise self._find_all_faults(error, given, task_id, convert) from error.__cause__

    def _answer(self, change: Callable[[], Task | tuple[Task, bool]], content: dict[str, Any]) -> Task:
        """Create or change a task, and return it with the details that the call's text for a schedule left open."""
        from cloudsched.domain.schedules.assumptions import Notes, notes_of_call  # noqa: PLC0415 - dispatches need none
        from cloudsched.engine.tasks.read_back import list_assumed  # noqa: PLC0415 - dispatches need none

        notes = Notes()
        before = notes_of_call.set(notes)
        try:
            answer = change()
        finally:
            notes_of_call.reset(before)
        task = answer[0] if isinstance(answer, tuple) else answer
        return _to_answer(self, task, partial(list_assumed, content, task, notes.assumed, notes.language))

    def read_draft(self, content: dict[str, Any]) -> TaskDraft:
        """Return the draft of a task from its fields as JSON. A schedule in words is read."""
        return self._read_draft(content)

    def _read_draft(self, content: dict[str, Any]) -> TaskDraft:
        if not has_schedule_text(content):
            return TaskDraft.from_wire(self._place(content))
        now = self.container.clock.now()
        fields, text = self._with_schedule(content, now)
        return TaskDraft.from_wire(fields).as_read_at(now, text)

    def _place(self, content: dict[str, Any]) -> dict[str, Any]:
        """Return a task's fields with a schedule that says no zone in that of its owner, if one is stored of them."""
        schedule = content.get("schedule")
        said = getattr(schedule, "model_fields_set", None)
        if said is not None:  # made in Python
            if not said.isdisjoint(("timezone", "follows_owner")):
                return content
            schedule = to_wire_fields({"schedule": schedule})["schedule"]
        if not isinstance(schedule, dict) or not schedule.get("rrule"):  # an instant is the same everywhere
            return content
        if not schedule.keys().isdisjoint(("timezone", "followsOwner", "follows_owner")):
            return content
        zone = self._ask_person(content.get("owner"), "zone") or "UTC"
        return content if zone == "UTC" else {**content, "schedule": {**schedule, "timezone": zone}}

    @changes
    def put(
        self,
        draft: TaskDraft,
        *,
        mark: RequestMark | None = None,
        refusal: QuotaExceeded | None = None,
        lead: timedelta | None = None,
        as_of: datetime | None = None,
    ) -> tuple[Task, bool]:
        """Create or edit a task, and return it and whether it is new. See `Scheduler.create`.

        Without a mark, a repetition is an edit.
        """
        return self._put(draft, mark, refusal, lead, as_of)

    def _put(
        self,
        draft: TaskDraft,
        mark: RequestMark | None,
        refusal: QuotaExceeded | None = None,
        lead: timedelta | None = None,
        as_of: datetime | None = None,
    ) -> tuple[Task, bool]:
        if self.container.engine.reads_preferences:
            from cloudsched.engine.tasks.scheduler import with_preferred_channels  # noqa: PLC0415 - dispatches need none

            draft = with_preferred_channels(draft, self.container.engine)
        by = self._authority
        return self._scheduler.create(draft, by=by, mark=mark, refusal=refusal, lead=lead, as_of=as_of)

    @changes
    def put_content(
        self,
        content: dict[str, Any],
        *,
        mark: RequestMark | None = None,
        refusal: QuotaExceeded | None = None,
    ) -> tuple[Task, bool]:
        """Create or edit a task from JSON fields, like `put`. A repetition may have words whose time has passed."""
        return self._put_content(content, mark, refusal)

    @changes
    def put_by_key(
        self, content: dict[str, Any], scope: Sequence[object], refusal: QuotaExceeded | None = None
    ) -> tuple[Task, bool]:
        """Create a task whose id is made of a key in its scope, or by its handler of its payload."""
        from cloudsched.domain.transitions.idempotency import RequestMark, hash_name  # noqa: PLC0415 - dispatches need none

        if self.container.registry.derives_id(content.get("handler")):  # the key says which request it is
            return self._put_content(content, RequestMark.of_name(scope, content), refusal)
        keyed = {**content, "id": f"k{hash_name(scope)[:32]}"}
        return self._put_content(keyed, RequestMark.of_new_task(content), refusal)

    def _put_content(
        self, content: dict[str, Any], mark: RequestMark | None, refusal: QuotaExceeded | None = None
    ) -> tuple[Task, bool]:
        try:
            draft = self._read_draft(content)
            task, is_new = self._put(draft, mark, refusal)
            is_as_read = is_new or _is_of(task, draft)
        except InvalidInput as error:
            task_id = None if mark is None else self._find_id(content)
            found = task_id and mark and self._scheduler.find_repeated(task_id, mark, self._authority)
            if not found:
                raise self._find_all_faults(error, content) from error.__cause__
            task, is_new, is_as_read = found, False, False
        if not is_as_read:
            from cloudsched.domain.schedules.assumptions import forget_assumptions  # noqa: PLC0415 - dispatches need none

            forget_assumptions()
        return task, is_new

    def _find_id(self, content: dict[str, Any]) -> str | None:
        """Return the id of the task that a creation would create or edit. The schedule is ignored."""
        timeless = {name: value for name, value in content.items() if name not in {"schedule", "timezone"}}
        with suppress(InvalidInput):
            draft = TaskDraft.from_wire(timeless)
            return draft.id or self.check(draft).id
        return None

    @reads
    def get(self, task_id: str) -> Task:
        """Return a task. Raises NotFound.

        >>> app.get(task.id).title
        'Water the plants'
        """
        task: Task = _promise(self, self._scheduler.get(task_id, self._authority))
        return task

    @reads
    def tasks(self, query: TaskQuery | None = None, *, limit: int = 50, page_token: str | None = None) -> Page[Task]:
        """Return a page of the tasks that match a query. Large tasks make it shorter, with a token for the rest.

        Raises InvalidInput for an invalid page token.

        >>> page = app.tasks(TaskQuery(owner="ada", status=TaskStatus.ACTIVE), limit=20)
        >>> [each.title for each in page.items]
        ['Water the plants']
        """
        from cloudsched.engine.ports.search import TaskQuery  # noqa: PLC0415 - dispatches need none

        wanted, limit = query or TaskQuery(owner=None), check_page_size(limit)
        return self.container.store.list_tasks(wanted, limit=limit, page_token=page_token)

    @changes
    def update(self, /, task_id: str, *, idempotency_key: str | None = None, **changes: Unpack[TaskChanges]) -> Task:
        """Change some of a task's fields, by their Python names. None resets one to its default.

        `schedule` may be text, as in `create`. A whole schedule replaces the present one, and words such as "make it 10
        instead" change it. Its times stay in the task's zone unless `timezone` gives another, which alone moves the
        task there. `assumed` of the returned task lists the details that were left open. A `payload` is replaced as a
        whole: one that leaves out a field that the task has set is refused.

        >>> task = app.update(task.id, title="Water all plants", schedule="every Monday at 10")
        >>> print(task.next_execution_time)
        2027-01-04 10:00:00+00:00
        """
        try:
            patch = self._to_content(changes, to_wire_fields, task_id)
            mark = self._mark_of("update", idempotency_key, patch)
            if patch.get("schedule") is None and not has_schedule_text(patch):
                return self.patch(task_id, patch, mark=mark)
            return self._answer(partial(self.patch, task_id, patch, mark=mark), patch)
        except InvalidInput as error:
            say_in_python(error, changes, TaskDraft)
            raise

    @changes
    def patch(
        self,
        task_id: str,
        patch: dict[str, Any],
        *,
        mark: RequestMark | None = None,
        read_at: datetime | None = None,
    ) -> Task:
        """Change some of a task's fields by a JSON merge patch (RFC 7396). Its schedule may be text, as in `update`.

        With a mark, a repetition of the same request returns the task as it is now. `read_at` is given if words were
        read for the schedule, which then has a start that nobody has named.
        """
        try:
            return self._patch(task_id, patch, mark, read_at)
        except InvalidInput as error:
            raise self._find_all_faults(error, patch, task_id) from error.__cause__

    def _find_all_faults(
        self,
        error: InvalidInput,
        content: dict[str, Any],
        task_id: str | None = None,
        convert: Callable[[dict[str, Any]], dict[str, Any]] = dict,
    ) -> InvalidInput:
        """Return the error of a creation, or of a patch, with all faults of its fields."""
        from cloudsched.engine.tasks.read_back import make_dry_scheduler  # noqa: PLC0415 - only for errors

        dry = copy(self)
        dry._joined = make_dry_scheduler(self.container.engine)  # noqa: SLF001 - its own

        def check(rest: dict[str, Any]) -> object:
            if task_id is None:
                return dry._put(dry._read_draft(convert(rest)), None)  # noqa: SLF001 - its own
            return dry._patch(task_id, convert(rest), None)  # noqa: SLF001 - its own

        return find_all_faults(error, content, check)

    def _patch(
        self, task_id: str, patch: dict[str, Any], mark: RequestMark | None, read_at: datetime | None = None
    ) -> Task:
        if not has_schedule_text(patch):
            return self._scheduler.update(task_id, patch, self._authority, mark, read_at)
        task, now = self.get(task_id), self.container.clock.now()
        if mark is not None and mark.is_repeat_on(task):
            return task
        fields, text = self._with_schedule(patch, now, task)
        changed = self._scheduler.update(task_id, fields, self._authority, mark, now, text)
        if fields["schedule"].get("rrule") != changed.schedule.model_dump(mode="json")["rrule"]:  # the words are kept
            from cloudsched.domain.schedules.assumptions import forget_assumptions  # noqa: PLC0415 - dispatches need none

            forget_assumptions()
        return changed

    def _ask_person(self, owner: object, field: str) -> str | None:
        from cloudsched.domain.documents.person import Person  # noqa: PLC0415 - few schedules ask for one

        stored = self.container.store.records.load(Person, owner) if isinstance(owner, str) else None
        return None if stored is None else {"zone": stored.record.timezone, "locale": stored.record.locale}[field]

    def _with_schedule(
        self, content: dict[str, Any], now: datetime, task: Task | None = None
    ) -> tuple[dict[str, Any], str | None]:
        ask = partial(self._ask_person, content.get("owner") if task is None else task.owner)
        current = {} if task is None else {"current": task.schedule, "current_text": task.schedule_text}
        zone, locale = partial(ask, "zone"), partial(ask, "locale")
        return self._read_schedule(content, now, **current, find_owner_zone=zone, find_owner_locale=locale)

    def _read_schedule(self, content: dict[str, Any], now: datetime, **more: Any) -> tuple[dict[str, Any], str | None]:
        """Return fields whose schedule in words has been read, and these words, if they are a whole schedule.

        The owner's zone and locale need functions in `more`.
        """
        read: tuple[dict[str, Any], str | None] = self._words.read_schedule(content, now, **more)
        return read

    @property
    def _words(self) -> Any:  # noqa: ANN401 - of a satellite
        """Return what reads words: `DraftsWiring`."""
        return self.container.feature("words")

    @changes
    def pause(self, task_id: str, *, until: datetime | str | None = None, idempotency_key: str | None = None) -> Task:
        """Pause a task until it is resumed. Here and below, a key makes it safe to repeat.

        Args:
            task_id: The task.
            until: The time at which it goes on by itself: an instant, or words in its time zone. "Monday" begins at
                midnight. An occurrence at that time runs.
            idempotency_key: The same for requests that are to be one.

        Raises:
            InvalidInput: The time is not understood, past, or after the only time at which the task runs.
            NotAllowed: The task has ended, or others have paused it.

        >>> print(app.pause(task.id, until="Monday").paused_until)
        2027-01-04 00:00:00+00:00
        """
        mark = self._mark_of("pause", idempotency_key, until)
        ends_at: datetime | None = None
        if isinstance(until, str):
            task, now = self.get(task_id), self.container.clock.now()
            if mark is not None and mark.is_repeat_on(task):
                return task
            ends_at = self._words.read_until(until, now, task.timezone, MIDNIGHT, "until")
        elif until is not None:
            ends_at = require_instant("until", until)
        return self._scheduler.pause(task_id, self._authority, mark, until=ends_at)

    @changes
    def resume(self, task_id: str, *, idempotency_key: str | None = None) -> Task:
        """Resume a paused task from now.

        >>> task = app.pause(task.id)
        >>> print(app.resume(task.id).status)
        ACTIVE
        """
        return self._scheduler.resume(task_id, self._authority, self._mark_of("resume", idempotency_key))

    @changes
    def cancel(self, task_id: str, *, idempotency_key: str | None = None) -> Task:
        """Cancel a task. The task and its executions stay.

        >>> print(app.cancel(task.id).status)
        CANCELLED
        """
        return self._scheduler.cancel(task_id, self._authority, self._mark_of("cancel", idempotency_key))

    @changes
    def cancel_run(self, task_id: str, execution_id: str, *, idempotency_key: str | None = None) -> Task:
        """Cancel one run that has not ended, with its calls. The task and its schedule go on.

        A handler that is running is not interrupted, but can report nothing more.

        Raises:
            NotFound: The task has no such run.
            NotAllowed: The run has ended, and was not cancelled.

        >>> task = app.trigger(task.id)
        >>> task = app.cancel_run(task.id, task.runs[0].execution_id)
        >>> task.runs
        ()
        """
        mark = self._mark_of("cancelRun", idempotency_key, execution_id)
        return self._scheduler.cancel_run(task_id, execution_id, self._authority, mark)

    @changes
    def delete(self, task_id: str, *, idempotency_key: str | None = None) -> None:
        """Remove a task and its executions.

        >>> app.delete(task.id)
        """
        self._scheduler.delete(task_id, self._authority, self._mark_of("delete", idempotency_key))

    @changes
    def trigger(
        self,
        task_id: str,
        payload: Any = None,  # noqa: ANN401 - as the handler takes it
        *,
        idempotency_key: str | None = None,
    ) -> Task:
        """Run a task once, now, without changing its plan.

        Args:
            task_id: The task.
            payload: The payload for this run, its retries and its replays, in place of the task's, which does not
                change. The run's record has it.
            idempotency_key: The same for requests that are to be one.

        Raises:
            InvalidInput: The payload does not fit the handler, or is too large.
            NotAllowed: The task is not active, or has too many open runs.

        >>> task = app.trigger(task.id, {"about": "ferns"}, idempotency_key="click-17")
        """
        mark = self._mark_of("trigger", idempotency_key, payload)
        return self._scheduler.manual_runs.trigger(task_id, payload, mark, by=self._authority)

    @changes
    def snooze(self, task_id: str, duration: timedelta | str = SNOOZE, *, idempotency_key: str | None = None) -> Task:
        """Run a task's last run again, later. The schedule does not change, and its occurrences run meanwhile, too.

        Another snooze moves a pending one, and one for the same minute changes nothing. A one-time task that has ended
        is active again until then.

        Args:
            task_id: The task.
            duration: The delay, up to 30 days. Or words: "PT10M", "10 minutes", "tomorrow at 9:00".
            idempotency_key: The same for requests that are to be one.

        Raises:
            InvalidInput: The duration is not understood, or too long.
            NotAllowed: The task has not run, is paused or cancelled, or has too many open runs.

        >>> task = app.snooze(task.id, "tomorrow at 8:00")
        """
        from cloudsched.domain.transitions.manual_verbs import snooze  # noqa: PLC0415 - dispatches need none

        mark = self._mark_of("snooze", idempotency_key, duration)
        now = self.container.clock.now()
        if isinstance(duration, str):
            task = self.get(task_id)
            if mark is not None and mark.is_repeat_on(task):
                return task
            until = self._words.read_until(duration, now, task.timezone)
        else:
            until = add_duration(now, duration)
        return self._scheduler.act(Verb.SNOOZE, task_id, partial(snooze, until=until), self._authority, mark)

    @changes
    def skip(self, task_id: str, occurrence: datetime | str = NEXT, *, idempotency_key: str | None = None) -> Task:
        """Leave out one occurrence of a task: the next, or the one at an instant. All others stay.

        Raises:
            InvalidInput: The task has no such occurrence to come.
            NotAllowed: The task is not active, or runs once: cancel it.

        >>> print(app.skip(task.id).next_execution_time)
        2027-01-04 09:00:00+00:00
        """
        from cloudsched.domain.transitions.single_occurrences import skip  # noqa: PLC0415 - dispatches need none

        return self._scheduler.act(
            Verb.SKIP,
            task_id,
            partial(skip, occurrence=occurrence),
            self._authority,
            self._mark_of("skip", idempotency_key, occurrence),
        )

    @changes
    def move(
        self, task_id: str, occurrence: datetime | str, to: datetime | str, *, idempotency_key: str | None = None
    ) -> Task:
        """Run one occurrence of a task, the next or the one at an instant, at another time. All others stay.

        Args:
            task_id: The task.
            occurrence: The instant of the occurrence, or "next".
            to: Its new time: an instant, or words in the task's time zone. "17:00" is on the same day, "Friday" at the
                same time, and "an hour later" counts from the occurrence.
            idempotency_key: The same for requests that are to be one.

        Raises:
            InvalidInput: The task has no such occurrence, or cannot run at that time. Or the words are not understood.
            NotAllowed: The task is not active.

        >>> print(app.move(task.id, "next", "17:00").next_execution_time)
        2027-01-03 17:00:00+00:00
        """
        from cloudsched.domain.transitions.single_occurrences import move  # noqa: PLC0415 - dispatches need none

        def decide(task: Task, now: datetime) -> Commit:
            read: Any = to
            if isinstance(to, str):
                read = partial(self._words.read_new_time, to, now=now, timezone=task.timezone)
            return move(task, now, occurrence=occurrence, to=read)

        return self._scheduler.act(
            Verb.MOVE, task_id, decide, self._authority, self._mark_of("move", idempotency_key, occurrence, to)
        )

    @changes
    def retry(
        self,
        task_id: str,
        execution_id: str | None = None,
        *,
        from_step: int | None = None,
        idempotency_key: str | None = None,
    ) -> Task:
        """Retry an execution (default: the last) from its failure or from a step, which is done again.

        >>> app.executions(task.id).items[0].status.value
        'FAILED'
        >>> task = app.retry(task.id)
        """
        runs = self._scheduler.manual_runs
        return runs.retry(
            task_id,
            execution_id,
            from_step=from_step,
            by=self._authority,
            mark=self._mark_of("retry", idempotency_key, execution_id, from_step),
        )

    @changes
    def backfill(self, task_id: str, start: datetime, end: datetime, *, idempotency_key: str | None = None) -> Task:
        """Run the past occurrences from `start` to `end` (both included), one after the other.

        >>> new_year = datetime(2027, 1, 1, tzinfo=UTC)
        >>> task = app.backfill(task.id, new_year, new_year + timedelta(days=1))
        """
        from cloudsched.domain.transitions.manual_verbs import backfill  # noqa: PLC0415 - dispatches need none

        decide = partial(backfill, start=start, end=end)
        return self._scheduler.act(
            Verb.BACKFILL, task_id, decide, self._authority, self._mark_of("backfill", idempotency_key, start, end)
        )

    @reads
    def upcoming(self, task_id: str, count: int = 10) -> list[datetime]:
        """Return the task's next occurrences that are to run, in UTC.

        >>> [str(each) for each in app.upcoming(task.id, 2)]
        ['2027-01-03 09:00:00+00:00', '2027-01-04 09:00:00+00:00']
        """
        return list_to_come(self.get(task_id), self.container.clock.now(), count)

    @reads
    def executions(
        self,
        task_id: str,
        *,
        limit: int = 50,
        page_token: str | None = None,
        status: ExecutionStatus | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Page[Execution]:
        """Return a page of a task's executions, the latest first. Open ones are on the first page.

        With a `status`, a page may be shorter: it looks through at most 1,000 executions.

        >>> [each.status.value for each in app.executions(task.id, limit=2).items]
        ['FAILED', 'SUCCEEDED']
        """
        from cloudsched.engine.queries.execution_search import (  # noqa: PLC0415 - dispatches need none
            TaskExecutionFilter,
            list_executions,
        )

        only = TaskExecutionFilter(status, since, until)
        task = self.get(task_id)
        return list_executions(self.container.engine, task, check_page_size(limit), page_token, only)

    @reads
    def find_executions(
        self, query: ExecutionQuery | None = None, *, limit: int = 50, page_token: str | None = None
    ) -> Page[Execution]:
        """Return a page of the executions of all tasks that match a query, without their results and steps.

        First come those that failed or timed out, then the open ones, then all others. Each part has the latest first.

        >>> failed = ExecutionQuery(owner="ada", status=ExecutionStatus.FAILED)
        >>> [(each.task_id, each.error.message) for each in app.find_executions(failed).items]
        [('water', 'the pump is dry')]
        """
        from cloudsched.engine.ports.search import ExecutionQuery  # noqa: PLC0415 - dispatches need none
        from cloudsched.engine.queries.execution_search import find_executions  # noqa: PLC0415 - the same

        search = self.container.store.search
        return find_executions(search, query or ExecutionQuery(owner=None), check_page_size(limit), page_token)

    @reads
    def execution(self, task_id: str, execution_id: str) -> Execution:
        """Return one execution, open or finished. Raises NotFound.

        >>> print(app.execution(task.id, "20270101T090000Z").status)
        SUCCEEDED
        """
        from cloudsched.engine.queries.execution_search import load_execution  # noqa: PLC0415 - dispatches need none

        return load_execution(self.container.engine, self.get(task_id), execution_id)

    @reads
    def deliveries(self, task_id: str, execution_id: str) -> list[DeliveryReport]:
        """Return the progress of an execution's deliveries, by channel. Raises NotFound."""
        found = self.get(task_id), self.execution(task_id, execution_id).id
        reports: list[DeliveryReport] = self.container.feature("deliveries").report(*found)
        return reports

    @changes
    def send_event(
        self,
        task_id: str,
        event: str,
        payload: Any = None,  # noqa: ANN401 - any JSON
        *,
        execution_id: str | None = None,
        early: bool = False,
        sender: EventSender | None = None,
        idempotency_key: str | None = None,
    ) -> Task:
        """Send an event to the execution of a task that waits for it, and takes it with `Context.wait_for`.

        The event belongs to that execution, and ends with it. The same payload from the same sender again, as by a
        second click, changes nothing.

        Args:
            task_id: The task.
            event: The event's name.
            payload: Any JSON, or the type that the handler has declared for this event.
            execution_id: The execution that it is for. Needed only if several wait for it.
            early: Keep it if none waits for it yet: for the open execution, or for the next one if none is open.
            sender: The sender. `Context.wait_for` says whose events count. If None, it is this code, as an admin.
            idempotency_key: The same for requests that are to be one.

        Raises:
            InvalidInput: The payload is too large, not JSON, or not of the type that the handler has declared.
            NotAwaited: No execution waits for it, or several do. `awaited` has the awaited events, and their ends.
            NotAllowed: Too many events are waiting for it.

        >>> order = app.run_now("order", owner="ada")
        >>> sim.advance(timedelta(minutes=1))  # in a test; it waits for the event now
        >>> task = app.send_event(order.id, "approved", {"by": "grace"})
        """
        by = self._authority if sender is None else replace(self._authority, sender=sender)
        return self._scheduler.send_event(
            task_id,
            event,
            payload,
            execution_id,
            early=early,
            by=by,
            mark=self._mark_of("send_event", idempotency_key, event, payload, execution_id),
        )

    @reads
    def tree(self, task_id: str, execution_id: str | None = None) -> CallTree:
        """Return a task with the tasks that it called, from all its executions or from one.

        If the tree is too large, each node has the number of its calls that are omitted. Raises NotFound.

        >>> app.tree(task.id).task.title
        'Water the plants'
        """
        from cloudsched.engine.child_tasks import load_tree  # noqa: PLC0415 - dispatches need none

        return load_tree(self._scheduler.get(task_id, self._authority), self.container.child_tasks, execution_id)

    @reads
    def person(self, owner: str) -> Person:
        """Return a person's contacts and preferences. Raises NotFound if none are stored.

        >>> app.person("ada").email.address
        'ada@example.com'
        """
        if self._authority.owner not in {None, owner}:
            raise NotFound("person", owner)
        person: Person = self._people.get(owner)
        return person

    @property
    def _people(self) -> Any:  # noqa: ANN401 - of a satellite
        """Return what keeps contacts: `People`."""
        return self.container.feature("people").people

    @changes
    def put_person(
        self, owner: str, /, *, replace: bool = False, etag: str | None = None, **fields: Unpack[PersonFields]
    ) -> Person:
        """Store a person, or replace all of their contacts and preferences. To change some, use `update_person`.

        Mail is sent to a verified address alone: ``email={"address": "ada@example.com", "verified": True}``. If the
        webhook is new, `webhook_secret` of the answer signs its messages. It is shown only here.

        Args:
            owner: The person.
            replace: Also remove what the fields leave out. Without it, or an `etag`, such a call is refused.
            etag: The `etag` of the person as you have seen them. If they have changed since, nothing happens.
            fields: `name`, `email`, `devices`, `webhook`, `timezone`, `locale`, `channels`.

        Raises:
            InvalidInput: A field is not valid, or would be removed.
            PreconditionFailed: The person has changed since this `etag`. Nothing was changed.

        >>> grace = {"address": "grace@example.com", "verified": True}
        >>> person = app.put_person("grace", email=grace, timezone="Europe/Paris")
        """
        may_remove = replace or etag is not None
        by = self._authority
        person: Person = self._people.put_fields(owner, fields, by=by, etag=etag, may_remove=may_remove)
        return person

    @changes
    def update_person(self, owner: str, /, *, etag: str | None = None, **changes: Unpack[PersonFields]) -> Person:
        """Change some of a person's contacts and preferences, by their Python names. All others stay.

        None removes a field. `email`, `webhook` and `devices` are replaced as a whole. Of `channels` only the
        categories that you name change, and None removes one. To add a device, give the `etag` of the person with those
        that you have read. See `put_person` for addresses, and the secret of a new webhook.

        Raises:
            NotFound: Nothing is stored of the person: use `put_person`.
            InvalidInput: A field is not valid.
            PreconditionFailed: The person has changed since this `etag`. Nothing was changed.

        >>> app.update_person("ada", timezone="Europe/Paris", locale="de").locale
        'de'
        """
        person: Person = self._people.change_fields(owner, changes, by=self._authority, etag=etag)
        return person

    @reads
    def inbox(self, owner: str, *, limit: int = 50, page_token: str | None = None) -> Page[Message]:
        """Return a page of an owner's inbox, the newest first.

        >>> [message.title for message in app.inbox("ada").items]
        ['Failed: Water the plants', 'Do not forget']
        """
        page = self.container.store.inbox.list(owner, limit=check_page_size(limit), page_token=page_token)
        by = self._authority
        # A link is the proof of a person, so whoever acts for them has none: they answer as themselves.
        is_person = by.sender is not None and by.owner == owner and by.sender.via is None
        may_answer = is_person or (by.sender is not None and by.sender.subject is None)
        if not may_answer or not any(each.event for each in page.items) or not has_feature("people"):
            return page
        people = self.container.feature("people")
        return replace(page, items=[people.with_answer_url(each) for each in page.items])

    @reads
    def draft(  # noqa: PLR0913 - named, but for the text
        self,
        text: str,
        *,
        timezone: str,
        owner: str = SYSTEM_OWNER,
        conversation: Sequence[dict[str, str]] = (),
        context: dict[str, Any] | None = None,
        now: datetime | None = None,
        requesters: Requesters = Requesters.USERS,
        locale: str | None = None,
    ) -> DraftResult:
        """Return the draft of a person's words: what they ask for, such as a task to create. It stores nothing.

        Show it, and give it to `confirm`.

        Args:
            text: The person's words.
            timezone: The person's IANA time zone.
            owner: The task's owner.
            conversation: The earlier messages, each with `role` and `content`.
            context: The knowledge of the app. See ``docs/guides/plain-language.md``.
            now: The instant from which "tomorrow" counts. Now if None.
            requesters: SERVERS proposes handlers that users may not name, too.
            locale: The person's language, such as ``de``. If None, it is detected from the words.

        Raises:
            InvalidInput: An argument is not valid.

        >>> draft = app.draft("remind me of tea every Monday at 9", timezone="Europe/Paris", owner="ada")
        >>> task = app.confirm(draft, owner="ada")
        """
        content = {
            "text": text,
            "timezone": timezone,
            "conversation": list(conversation),
            "context": context or {},
            "now": None if now is None else now.isoformat(),
            "locale": locale,
        }
        authority = replace(OWN_CODE, requesters=requesters, owner=owner)
        draft: DraftResult = self._words.make_draft(content, OWN_CODE_SUBJECT, owner, authority)
        return draft

    @changes
    def confirm(self, draft: DraftResult, *, owner: str = SYSTEM_OWNER) -> Task:
        """Store a draft of this app's code: create its task, or do to its task what the draft shows.

        Repeating it changes nothing more. A deleted task is returned as it was, and not found by a repetition.

        Raises:
            InvalidInput: The draft is no longer valid, or not the one that was made for this owner.
            PreconditionFailed: The task has changed since.

        >>> draft = app.draft("remind me of tea every Monday at 9", timezone="Europe/Paris", owner="ada")
        >>> print(app.confirm(draft, owner="ada").next_execution_time)
        2027-01-04 08:00:00+00:00
        """
        task: Task
        task, _is_new = self._words.confirm(self, draft.require_complete(), OWN_CODE_SUBJECT, owner, draft.task_id)
        return task

    def deliver(self, body: bytes, token: str) -> DeliveryResult:
        """Process what the queue has delivered. See `Executor.deliver`."""
        return run_procedure(self.container.deliver(body, token))

    def sweep(self) -> Sweep:
        """Repair lost work. See `Sweeper.sweep`. Call it once a minute."""
        return self.container.shard_sweeps.sweep()


def awaited(method: Callable[Concatenate[App, P], R]) -> Callable[Concatenate[AsyncApp, P], Coroutine[Any, Any, R]]:
    """Return a method of `App` to be awaited: it runs in a thread, and the loop goes on."""

    @wraps(method)
    async def call(app: AsyncApp, /, *arguments: P.args, **named: P.kwargs) -> R:
        import asyncio  # noqa: PLC0415 - only code on an event loop needs it

        return cast("R", await asyncio.to_thread(getattr(app.app, method.__name__), *arguments, **named))

    return call


class AsyncApp(_Shared):
    """`App`'s methods on tasks, executions, people, messages and drafts, by the same names, to be awaited.

    Each runs in a thread of the event loop's, with the caller's context variables. Methods that set an app up, such as
    `handler`, are on `App` alone, as are `deliver` and `sweep`, which a function calls.
    An await that is cancelled does not take back what the method does: with an `id` of your own, call it again.
    """

    def __init__(self, app: App) -> None:
        self.app: Final = app

    def acting_with(self, authority: Authority) -> Self:
        """Return the app with the rights of a caller that is not its own code. See `App.acting_with`."""
        return type(self)(self.app.acting_with(authority))

    def joining(self, group: WriteGroup, /) -> Self:
        """Return the app with changes of tasks that are part of your own commit in Firestore. See `App.joining`."""
        return type(self)(self.app.joining(group))

    def acting_for(self, user: str) -> AsyncLocalClient:
        """Return a client of this app that acts for a user, to be awaited. See `App.acting_for`."""
        from cloudsched.client.local_client import AsyncLocalClient  # noqa: PLC0415 - dispatches need none

        return AsyncLocalClient(self.app.acting_for(user))

    async def run_flow_async(self, flow: Flow[T]) -> T:
        """Run an operation of the API in this process. See `App.run_flow`."""
        import asyncio  # noqa: PLC0415 - only code on an event loop needs it

        return await asyncio.to_thread(self.app.run_flow, flow)

    create = awaited(App.create)
    run_now = awaited(App.run_now)
    put = awaited(App.put)
    put_content = awaited(App.put_content)
    put_by_key = awaited(App.put_by_key)
    get = awaited(App.get)
    tasks = awaited(App.tasks)
    update = awaited(App.update)
    patch = awaited(App.patch)
    pause = awaited(App.pause)
    skip = awaited(App.skip)
    move = awaited(App.move)
    resume = awaited(App.resume)
    cancel = awaited(App.cancel)
    cancel_run = awaited(App.cancel_run)
    delete = awaited(App.delete)
    trigger = awaited(App.trigger)
    snooze = awaited(App.snooze)
    retry = awaited(App.retry)
    backfill = awaited(App.backfill)
    upcoming = awaited(App.upcoming)
    executions = awaited(App.executions)
    find_executions = awaited(App.find_executions)
    execution = awaited(App.execution)
    deliveries = awaited(App.deliveries)
    person = awaited(App.person)
    put_person = awaited(App.put_person)
    update_person = awaited(App.update_person)
    send_event = awaited(App.send_event)
    tree = awaited(App.tree)
    inbox = awaited(App.inbox)
    draft = awaited(App.draft)
    confirm = awaited(App.confirm)


if TYPE_CHECKING:
    AppLike: TypeAlias = App | Client | LocalClient
    AsyncAppLike: TypeAlias = AsyncApp | AsyncClient | AsyncLocalClient
    TaskLike: TypeAlias = Task | TaskView
else:  # so that nobody has to install or import what they do not use

    class AppLike:
        """An `App`, or a `Client` of its API, or what `App.acting_for` returns: they have the same methods."""

    class AsyncAppLike:
        """An `AsyncApp`, or an `AsyncClient`, or what `AsyncApp.acting_for` returns: the same, awaited."""

    class TaskLike:
        """A task, as each of them returns it."""


def _refuse_option(handler: str, option: str) -> Misconfigured:
    """Return the refusal of an option that handlers do not have."""
    import difflib  # noqa: PLC0415 - only where something is wrong
    import inspect  # noqa: PLC0415 - the same

    known = [each for each in inspect.signature(App.handler).parameters if each not in {"self", "name", "unknown"}]
    near = difflib.get_close_matches(option, known, n=1)
    hint = f"Did you mean {near[0]!r}?" if near else f"There are {', '.join(known)}."
    return Misconfigured(f"the handler {handler!r} has no option {option!r}. {hint}")


def _is_of(task: Task, draft: TaskDraft) -> bool:
    """Return whether a task's schedule is the reading of a draft's words. What records supply may differ."""
    read = draft.schedule
    return read is None or read.equals_unresolved(task.schedule)
