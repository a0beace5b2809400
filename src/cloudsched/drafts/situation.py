"""The situation in which a text is read: its request, the time, and the handlers and tasks that it may name."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.authority import Requesters
from cloudsched.domain.documents.category import Category
from cloudsched.domain.documents.system_tasks import ASSISTANT_HANDLER
from cloudsched.domain.documents.task import Task, TaskStatus
from cloudsched.domain.in_words import to_words
from cloudsched.domain.recurrence.notations import is_notation
from cloudsched.domain.responses.api_responses import Decision, DraftAnswer, DraftQuestion, MissingField
from cloudsched.domain.schedules.planned_words import describe_planned
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.drafts.deliveries import list_languages
from cloudsched.drafts.phrases import content_words, count_shared, find_category, join_words, to_singular
from cloudsched.drafts.request import Proposal
from cloudsched.errors import InvalidSchedule
from cloudsched.language.languages import LANGUAGES
from cloudsched.language.messages import Said, say, tell
from cloudsched.language.reader import MAX_LENGTH, Reader
from cloudsched.language.result import Problem, Reading

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cloudsched.config.settings import Settings
    from cloudsched.drafts.draft_tokens import Requester
    from cloudsched.drafts.request import DraftRequest
    from cloudsched.engine.authority import Authority
    from cloudsched.engine.handlers.registry import Handler, Registry


def open_handlers(registry: Registry, requesters: Requesters) -> list[Handler]:
    """Return the handlers that the app opens for drafts and the caller may name, by their names.

    The built-in assistant is among them where it is on.
    """
    visible = registry.for_users() if requesters is Requesters.USERS else registry
    found = [each for each in visible if each.draft is not None]
    assistant = registry.find(ASSISTANT_HANDLER)
    if assistant is not None and assistant.is_built_in:
        found.append(assistant)
    return sorted(found, key=lambda each: each.name)


def choose_handler(situation: Situation, named: object) -> Proposal:
    """Return a new task of the handler that is meant: the named one, or the one whose words fit best."""
    creation, handlers = Proposal(decision=Decision.CREATION), situation.handlers
    scores = {each.name: _score_handler(each, situation.request.text) for each in handlers}
    best = max(scores.values(), default=0)
    fitting = [each for each in handlers if (scores[each.name] == best if named is None else each.name == named)]
    if len(fitting) == 1:
        return replace(creation, handler=fitting[0])
    if not fitting:
        code, reason = "unknown", f"There is no such handler here, but {', '.join(scores)}."
        if not handlers:
            hint = 'The app opens one by @app.handler("remind", access="users", draft="Sends a reminder").'
            code, reason = "none-open", f"No handler is open for drafts. {hint}"
        return replace(creation, missing=(MissingField(field="handler", code=code, reason=reason),))
    answers = tuple(
        DraftAnswer(label=each.name, description=each.draft or "", context={"handler": each.name}) for each in fitting
    )
    question = tell(situation.language, "What should it do?")
    return replace(creation, questions=(DraftQuestion(field="handler", question=question, answers=answers),))


def _score_handler(handler: Handler, text: str) -> int:
    about = f"{handler.draft} {handler.name.replace('_', ' ').replace('-', ' ')}"
    category = find_category(text)
    is_kind = category is not Category.OTHERS and category is find_category(about)
    return 2 * is_kind + count_shared(content_words(about), content_words(text))


Lead = tuple[tuple[str, int], ...]
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True)
class Situation:
    """The situation in which a text is read.

    Attributes:
        requester: Who asks, and for whom.
        authority: What they may do.
        handlers: The handlers that may be proposed.
        tools: The handlers that the assistant may call.
        load_tasks: Returns the owner's tasks that may be meant. Only texts that may change one pay for it.
    """

    request: DraftRequest
    requester: Requester
    authority: Authority
    settings: Settings
    now: datetime
    handlers: Sequence[Handler]
    tools: Sequence[Handler]
    load_tasks: Callable[[], Sequence[Task]]

    @property
    def tasks(self) -> Sequence[Task]:
        """Return the owner's tasks that may be meant. If the context names one, only that."""
        return self.load_tasks()

    @property
    def least_lead(self) -> timedelta:
        """Return the shortest delay of a drafted task that runs once."""
        return max(self.settings.minimum_lead, self.settings.draft_least_lead)

    @cached_property
    def language(self) -> str:
        """Return the language in which the person is answered: the request's, or that of its words."""
        if self.request.locale is not None:
            return self.request.locale
        return list_languages(self.request.text[:MAX_LENGTH])[0].code

    def read(self, text: str, current: Schedule | None = None, locale: str | None = None, lead: Lead = ()) -> Reading:
        """Return the meaning of words, or of a notation such as cron. A date alone counts as words.

        Without a locale, the language is the request's, or is detected. Words in English are read beside
        any other. `lead` is what is said before the words, by classes of the lexicon and their values.
        """
        if current is None and is_notation(text) and not _DATE.fullmatch(text.strip()):
            try:
                return Reading("schedule", Schedule.parse(text, timezone=self.request.timezone, now=self.now))
            except InvalidSchedule as error:
                return Reading("refusal", problems=(Problem((0, len(text)), "invalid", str(error)),))

        found = self._read_words(text, current, locale or self.request.locale, lead)
        is_unread = any(each.code in {"other-language", "not-understood", "half-known"} for each in found.problems)
        if is_unread and locale is None and self.request.locale is not None:
            english = self._read_words(text, current, "en", lead)
            if english.kind != "refusal":
                return english
        if self.request.locale is None and locale not in {None, "en"} and found.kind == "schedule":
            note = tell(self.language, "The words were read as {language}.", language=say(LANGUAGES[f"{locale}"].name))
            return replace(found, assumptions=(note, *found.assumptions))
        return found

    def _read_words(self, text: str, current: Schedule | None, locale: str | None, lead: Lead) -> Reading:
        default_time = self.settings.default_time
        reader = partial(
            Reader,
            now=self.now,
            timezone=self.request.timezone,
            locale=locale,
            current=current,
            default_time=(default_time.hour, default_time.minute),
            default_calendar=self.settings.default_calendar,
        )
        found = reader(text, lead=lead).read()
        when = self.request.context.get("answer.schedule")
        if found.kind == "question" and isinstance(when, str):
            return replace(reader(when).read(), title=found.title)
        return found

    def read_without_time(self) -> Reading:
        """Return the reading of words without a time: soon enough for a reminder, late enough to confirm it."""
        lead = max(self.settings.default_lead, self.least_lead)
        full_second = self.now + timedelta(microseconds=-self.now.microsecond % 1_000_000)  # never sooner
        schedule = Schedule.once(full_second + lead, timezone=self.request.timezone)
        note = tell(self.language, "No time was given, so it runs in {lead}.", lead=say_length(lead))
        return Reading("schedule", schedule, None, (note,))

    def answered(self, answers: dict[str, str]) -> Situation:
        """Return the situation in which some questions are answered."""
        context = {**self.request.context, **answers}
        return replace(self, request=self.request.model_copy(update={"context": context}))

    def find_handler(self, name: str) -> Handler | None:
        """Return a handler that is open for drafts."""
        return next((each for each in self.handlers if each.name == name), None)


MAX_PAST_TASKS: Final = 100
"""The number of an owner's tasks, the newest first, that a text may mean."""
MAX_ANSWERS: Final = 5


def say_length(span: timedelta) -> Said:
    """Return a length of time in the largest unit of which it is a whole number: ``2 hours``."""
    count, _, unit = to_words(span).partition(" ")
    return say(f"{{count}} {unit}", count=count)


_LIVE: Final = {TaskStatus.ACTIVE, TaskStatus.PAUSED}


def find_meant(tasks: Sequence[Task], what: str) -> list[Task]:
    """Return the tasks that fit some words best: one if it is clear, several if it is not.

    Live tasks come before ended ones. Words such as "it" fit every live task.
    """
    wanted = content_words(what)
    live, ended = ([task for task in tasks if (task.status in _LIVE) is is_live] for is_live in (True, False))
    if not wanted:
        return live
    for group in (live, ended):
        scores = list[int]()
        for task in group:
            title = content_words(task.title)
            about = content_words(f"{task.description} {task.purpose} {task.category} {task.handler.replace('_', ' ')}")
            scores.append(3 * count_shared(wanted, title) + count_shared(wanted - title, about))
        best = max(scores, default=0)
        if best > 0:
            return [task for task, score in zip(group, scores, strict=True) if score == best]
    return []


def find_named(tasks: Sequence[Task], what: str) -> list[Task]:
    """Return the tasks that fit some words best, if each of those is one of a task's own, such as of its title."""
    wanted = content_words(what)
    return [
        task
        for task in find_meant(tasks, what)
        if len(wanted)
        == count_shared(
            wanted, content_words(f"{task.title} {task.purpose} {task.category} {task.handler.replace('_', ' ')}")
        )
    ]


_SMALL: Final = re.compile(rf"\b(?:{join_words('article')}|{join_words('own')})\b")
_COPULA: Final = re.compile(rf"\s(?:{join_words('copula')})\b.*")


def list_begun(tasks: Sequence[Task], title: str, *, wholly: bool = False) -> list[Task]:
    """Return the live tasks with a title, or with one that begins with it, or with which it begins.

    Those with the title itself come alone, and if `wholly`, no others come. Articles and what follows a copula do not
    count: "the yoga should be".
    """
    said, *titles = (list_words(_COPULA.sub("", each.casefold())) for each in (title, *(task.title for task in tasks)))
    live = [(task, own) for task, own in zip(tasks, titles, strict=True) if task.status in _LIVE]
    same = [task for task, own in live if own == said]
    if same or wholly or not said:
        return same
    return [task for task, own in live if own and all(one == each for one, each in zip(own, said, strict=False))]


def list_words(text: str) -> list[str]:
    """Return the words of a title, in lower case and without articles, a plural's s, or one of possession."""
    words = re.findall(r"[^\W_]+", _SMALL.sub("", re.sub(r"['’]s\b", "", text.casefold())))  # noqa: RUF001
    return [to_singular(word) for word in words]


def ask_which(tasks: Sequence[Task], language: str) -> DraftQuestion:
    """Return the question that asks for one of several tasks, which are described in a language."""
    answers = tuple(
        DraftAnswer(
            label=task.title,
            description=describe_planned(task.schedule, task.next_execution_time, language).text,
            context={"taskId": task.id},
        )
        for task in tasks[:MAX_ANSWERS]
    )
    return DraftQuestion(field="taskId", question=tell(language, "Which task do you mean?"), answers=answers)
