"""The parts of words in a container, each made on first use: readers of schedules, drafts, models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cloudsched.domain.documents.system_tasks import ASSISTANT_HANDLER
from cloudsched.domain.transitions.task_draft import has_schedule_text
from cloudsched.engine.signed_dispatches import SigningKeys
from cloudsched.runtime.container import Wiring
from cloudsched.runtime.lazy_property import lazy_property

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime, time

    from cloudsched.app import App
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.explanation.findings import Finding
    from cloudsched.domain.responses.api_responses import DraftResult
    from cloudsched.drafts.draft_tokens import DraftTokens
    from cloudsched.drafts.open_models import LanguageModels
    from cloudsched.drafts.service import Drafts
    from cloudsched.engine.authority import Authority
    from cloudsched.engine.handlers.registry import Registry
    from cloudsched.engine.ports.model import Model
    from cloudsched.runtime.container import Container


class DraftsWiring(Wiring):
    """Makes the readers of words."""

    @lazy_property
    def draft_tokens(self) -> DraftTokens:
        """Signs and checks what was shown."""
        from cloudsched.drafts.draft_tokens import DraftTokens  # noqa: PLC0415 - only when used

        settings = self.container.settings
        keys = SigningKeys(settings.secret, settings.previous_secret, purpose="draft")
        return DraftTokens(keys, self.container.clock)

    @lazy_property
    def drafts(self) -> Drafts:
        """Makes drafts."""
        from cloudsched.drafts.service import Drafts  # noqa: PLC0415 - only when used

        engine, settings = self.container.engine, self.container.settings
        if self.model is None:
            return Drafts(engine, settings, self.draft_tokens)

        from cloudsched.drafts.model_reader import ModelReader  # noqa: PLC0415 - imported only with a model

        return Drafts(engine, settings, self.draft_tokens, ModelReader(self.model, engine).read)

    @lazy_property
    def model(self) -> Model | None:
        """The language model that reads drafts, None if there is none."""
        given = self.container.given_model
        if given is not None or self.container.settings.model.name is None:
            return given
        return self.language_models.open_drafter()

    @lazy_property
    def language_models(self) -> LanguageModels:
        """Opens the models of drafts and of the assistant."""
        from cloudsched.drafts.open_models import LanguageModels  # noqa: PLC0415 - imported only with a model

        return LanguageModels(self.container.settings, self.container.given_model, self.container.circuits)

    def read_schedule(
        self,
        fields: dict[str, Any],
        now: datetime,
        **more: Any,
    ) -> tuple[dict[str, Any], str | None]:
        """Return the fields with the schedule that its words mean, and the words if they are a whole schedule.

        `more` are the arguments of `language.task_fields.with_schedule` that depend on the task and its
        owner.
        """
        if not has_schedule_text(fields):
            return fields, None
        from cloudsched.language.task_fields import with_schedule  # noqa: PLC0415 - only text pays for it

        settings = self.container.settings
        return with_schedule(
            fields,
            now=now,
            default_time=settings.default_time,
            default_calendar=settings.default_calendar,
            **more,
        )

    def read_until(
        self, text: str, now: datetime, timezone: str, default_time: time | None = None, field: str = "duration"
    ) -> datetime:
        """Return the instant that a text means: after a length of time, or at a time. Raises InvalidInput."""
        from cloudsched.language.schedule_text import read_until  # noqa: PLC0415 - only text pays for the parsers

        default_time = default_time or self.container.settings.default_time
        return read_until(text, now=now, timezone=timezone, default_time=default_time, field=field)

    def read_new_time(self, text: str, occurrence: datetime, *, now: datetime, timezone: str) -> datetime:
        """Return the instant to which words move an occurrence. Raises InvalidInput."""
        from cloudsched.language.schedule_text import read_new_time  # noqa: PLC0415 - only text pays for the parsers

        return read_new_time(text, occurrence, now=now, timezone=timezone)

    def make_draft(
        self,
        content: dict[str, Any],
        subject: str,
        owner: str,
        authority: Authority,
    ) -> DraftResult:
        """Return the draft of a request as JSON. See `App.draft`."""
        from cloudsched.drafts.draft_tokens import Requester  # noqa: PLC0415 - only drafts need it
        from cloudsched.drafts.request import DraftRequest  # noqa: PLC0415 - only drafts need it

        return self.drafts.make(DraftRequest.from_wire(content), Requester(subject, owner), authority)

    def confirm(
        self, app: App, content: dict[str, Any], subject: str, owner: str, task_id: str | None = None
    ) -> tuple[Task, bool]:
        """Create or change the task of a confirmed draft. See `drafts.confirmation`."""
        from cloudsched.drafts.confirmation import confirm  # noqa: PLC0415 - only drafts need it
        from cloudsched.drafts.draft_tokens import Requester  # noqa: PLC0415 - only drafts need it

        return confirm(app, self.draft_tokens, content, Requester(subject, owner), task_id)


def check_settings(container: Container) -> None:
    """Open the language model that the settings name, if there is one. Raises Misconfigured."""
    _ = DraftsWiring.of(container).model


def find_conditions(container: Container, task: Task, _person: object, _now: object) -> Iterator[Finding]:
    """Yield that the model which a task asks does not answer."""
    if task.handler == ASSISTANT_HANDLER:
        from cloudsched.drafts.assistant.assistant_handler import find_wishes  # noqa: PLC0415 - only with a model
        from cloudsched.drafts.open_models import name_circuit  # noqa: PLC0415 - likewise

        yield from container.circuits.explain(name_circuit(container.settings, find_wishes(task.source).name))


def with_assistant(container: Container, registry: Registry) -> Registry:
    """Return a registry that has the assistant, if it is on. Without a model it is Misconfigured."""
    settings = container.settings.assistant
    if not settings.is_on:
        return registry

    from cloudsched.drafts.assistant import assistant_handler as assistant  # noqa: PLC0415 - only if it is on

    def find_name(owner: str) -> str:
        from cloudsched.domain.documents.person import Person  # noqa: PLC0415 - only when used
        from cloudsched.engine.state.record_changes import find_record  # noqa: PLC0415 - only when used

        person = find_record(container.store.records, Person, owner)
        return person.name if person is not None else ""

    models = DraftsWiring.of(container).language_models
    limits = assistant.AssistantLimits(settings.turns, settings.tokens)
    return assistant.with_assistant(registry, models, find_name, limits)
