"""Answers by a tap: a person who is asked by name approves or rejects without signing in.

A link names a message in the person's inbox, and when it asked. That message has the question, and what it
belongs to. So a link shows what the person may see anyway, and nothing is left of it once they are erased.
It answers one wait of one execution: a later one, which asks the same again, has another time.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.documents.authority import PERSON, EventSender, Requesters, SenderRole
from cloudsched.domain.documents.journal import StepKind, StepStatus
from cloudsched.domain.documents.person import Person
from cloudsched.domain.transitions.suspend import find_wait
from cloudsched.engine.authority import Authority
from cloudsched.engine.queries.execution_search import load_execution
from cloudsched.engine.state.record_changes import find_record
from cloudsched.errors import CloudschedError, InvalidInput, NotAwaited, NotFound

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.domain.documents.execution import Message
    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.engine_context import EngineContext
    from cloudsched.engine.tasks.scheduler import Scheduler
    from cloudsched.people.signed_links import SignedLinks

MAX_NOTE: Final = 500
"""The most characters of a note."""
_PURPOSE: Final = "answer"
_TOO_LATE: Final = "It is too late to answer."
_OVER: Final = "Nobody waits for your answer any more."


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer that counts."""

    approved: bool | None
    """None if it was not given by a tap, and says something else than yes or no."""
    note: str
    by: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedQuestion:
    """A question to a person, as it is now."""

    message: Message
    person: Person | None
    answer: Answer | None = None
    """The first answer, if there is one."""
    problem: str = ""
    """Why it cannot be answered by a tap, if that is so and there is no answer."""
    takes_note: bool = True


class Answers:
    """Makes links to questions, shows what they ask, and sends the answers."""

    def __init__(self, engine: EngineContext, scheduler: Callable[[], Scheduler], links: SignedLinks) -> None:
        self._engine = engine
        self._scheduler = scheduler
        self._links = links

    def make_url(self, root: str, owner: str, message_id: str, asked_at: datetime) -> str:
        """Return the address of the page that asks an owner."""
        content = [owner, message_id, asked_at.isoformat()]
        return f"{root}/v1/links/answer/{self._links.sign(_PURPOSE, content)}"

    def read(self, token: str) -> Message:
        """Return the message that a link leads to. Raises NotFound if the link is forged, or that is gone."""
        owner, message_id, asked_at = self._links.read(_PURPOSE, token)
        return self.find_message(owner, message_id, datetime.fromisoformat(asked_at))

    def find_message(self, owner: str, message_id: str, asked_at: datetime) -> Message:
        """Return the message that asked a question at that time. Raises NotFound."""
        message = self._engine.store.inbox.get(owner, message_id)
        if message is None or message.created_at != asked_at:
            raise NotFound("question", message_id)
        return message

    def look(self, message: Message) -> AskedQuestion:
        """Return a question as it is now."""
        person = find_record(self._engine.store.records, Person, message.owner)
        stored = self._engine.store.load(message.task_id)
        if stored is None or stored.task.deleted_at is not None:
            return AskedQuestion(message=message, person=person, problem=_OVER)

        task = stored.task
        wait = find_wait(task, message)
        if wait is None:
            return self._look_back(task, message, person)
        for event in task.events:
            if event.is_for(message.event or "", message.execution_id, wait.senders):
                answer = self._make_answer(event.payload, event.sender, event.at)
                return AskedQuestion(message=message, person=person, answer=answer)

        problem = ""
        if wait.deadline is not None and wait.deadline <= self._engine.clock.now():
            problem = _TOO_LATE
        elif not self._takes(task, message, {"approved": True}):
            problem = "It takes more than yes or no. Answer it where you sign in."
        takes_note = self._takes(task, message, {"approved": True, "note": ""})
        return AskedQuestion(message=message, person=person, problem=problem, takes_note=takes_note)

    def send(self, message: Message, *, approved: bool, note: str = "", via: str) -> AskedQuestion:
        """Answer a question in the name of the person who is asked, and return it as it is then.

        The first answer counts: any later one changes nothing. Raises InvalidInput if the note is too long,
        or the handler does not take the answer.
        """
        if len(note) > MAX_NOTE:
            raise InvalidInput("note", f"has {len(note)} characters", f"At most {MAX_NOTE} are kept.")
        payload: dict[str, Any] = {"approved": approved}
        if note:
            payload["note"] = note

        def authorize(task: Task) -> None:
            if find_wait(task, message) is None:
                raise NotAwaited(message.event or "", [])
            if task.owner != message.owner:
                raise NotFound("task", message.task_id)  # but for what it asks them by name

        sender = EventSender(role=SenderRole.OWNER, subject=f"{PERSON}{message.owner}", via=via)
        by = Authority(Requesters.USERS, sender, owner=message.owner, is_valid=lambda: True, authorize=authorize)
        try:
            self._scheduler().send_event(message.task_id, message.event or "", payload, message.execution_id, by=by)
        except (NotAwaited, NotFound):
            return self.look(message)  # it has been answered, or is no longer asked
        now = self._engine.clock.now()
        self._engine.store.inbox.mark_read(message.owner, message.id, now)
        return self.look(message)

    def _look_back(self, task: Task, message: Message, person: Person | None) -> AskedQuestion:
        """Return a question that is not asked any more, by the journal of its execution."""
        try:
            steps = load_execution(self._engine, task, message.execution_id).steps
        except CloudschedError:  # the record is gone, or the journal cannot be read here
            steps = ()
        for step in steps:
            is_asked = step.kind is StepKind.EVENT and step.name == message.event
            if not is_asked or step.started_at != message.created_at:
                continue
            if step.status is StepStatus.SUCCEEDED and step.sender is not None:
                answer = self._make_answer(step.result, step.sender, step.finished_at or step.started_at)
                return AskedQuestion(message=message, person=person, answer=answer)
            if step.status is StepStatus.TIMED_OUT:
                return AskedQuestion(message=message, person=person, problem=_TOO_LATE)
        return AskedQuestion(message=message, person=person, problem=_OVER)

    def _make_answer(self, payload: object, sender: EventSender, at: datetime) -> Answer:
        said = payload if isinstance(payload, dict) else {}
        approved = said.get("approved")
        by = (sender.person or "").removeprefix(PERSON)
        person = find_record(self._engine.store.records, Person, by) if by else None
        return Answer(
            approved=approved if isinstance(approved, bool) else None,
            note=str(said.get("note") or ""),
            by=(person.name if person is not None else "") or by or "somebody else",
            at=at,
        )

    def _takes(self, task: Task, message: Message, payload: dict[str, Any]) -> bool:
        """Return whether the handler, if this process has it, takes an answer."""
        handler = self._engine.registry.find(task.handler)
        try:
            if handler is not None:
                handler.check_event(message.event or "", payload)
        except InvalidInput:
            return False
        return True
