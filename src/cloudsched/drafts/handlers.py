"""Which of the handlers that are open for drafts a text means."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cloudsched.domain.documents.assistant import ASSISTANT_HANDLER
from cloudsched.domain.documents.authority import Requesters
from cloudsched.domain.documents.category import Category
from cloudsched.domain.documents.draft_responses import DraftAnswer, DraftQuestion, MissingField
from cloudsched.drafts.phrases import content_words, count_shared, find_category

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.engine.handlers.handler import Handler
    from cloudsched.engine.handlers.registry import Registry


class Choice(NamedTuple):
    """The handler that is meant, or why none was chosen."""

    handler: Handler | None = None
    question: DraftQuestion | None = None
    missing: MissingField | None = None


def open_handlers(registry: Registry, requesters: Requesters) -> list[Handler]:
    """Return the handlers that the app opens for drafts and the caller may name, by their names.

    The built-in assistant is among them where it is on.
    """
    visible = registry.for_users() if requesters is Requesters.USERS else registry
    found = {each.name: each for each in visible if each.draft is not None}
    if ASSISTANT_HANDLER in registry:
        assistant = registry.get(ASSISTANT_HANDLER)
        found |= {assistant.name: assistant} if assistant.is_built_in else {}
    return [found[name] for name in sorted(found)]


def choose_handler(handlers: Sequence[Handler], text: str, named: object = None) -> Choice:
    """Return the handler that a text means: the named one, the only one, or the one whose words fit best."""
    if not handlers:
        hint = 'The app opens one by @app.handler("remind", access="users", draft="Sends a reminder").'
        missing = MissingField(field="handler", code="none-open", reason=f"No handler is open for drafts. {hint}")
        return Choice(missing=missing)
    if named is not None:
        chosen = next((each for each in handlers if each.name == named), None)
        known = ", ".join(each.name for each in handlers)
        missing = MissingField(field="handler", code="unknown", reason=f"There is no such handler here, but {known}.")
        return Choice(chosen, missing=None if chosen else missing)
    if len(handlers) == 1:
        return Choice(handlers[0])
    scores = {each.name: _score(each, text) for each in handlers}
    best = max(scores.values())
    fitting = [each for each in handlers if scores[each.name] == best]
    if len(fitting) == 1:
        return Choice(fitting[0])
    answers = tuple(
        DraftAnswer(label=each.name, description=each.draft or "", context={"handler": each.name}) for each in fitting
    )
    return Choice(question=DraftQuestion(field="handler", question="What should it do?", answers=answers))


def _score(handler: Handler, text: str) -> int:
    about = f"{handler.draft} {handler.name.replace('_', ' ').replace('-', ' ')}"
    category = find_category(text)
    is_kind = category is not Category.OTHERS and category is find_category(about)
    return 2 * is_kind + count_shared(content_words(about), content_words(text))
