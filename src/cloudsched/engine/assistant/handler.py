"""The handler `assistant`, as a registry knows it, and the check of the tasks that name it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from cloudsched.domain.documents.assistant import ASSISTANT_HANDLER, AssistantPayload
from cloudsched.domain.documents.authority import Requesters
from cloudsched.engine.assistant.limits import AssistantLimits, estimate_cost
from cloudsched.engine.assistant.run import AssistantRun
from cloudsched.engine.assistant.tools import list_open_tools
from cloudsched.engine.handlers.handler import Handler
from cloudsched.errors import InvalidInput, Misconfigured

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.domain.transitions.drafts import TaskDraft
    from cloudsched.engine.handlers.registry import Registry
    from cloudsched.engine.ports.model import Model

_DOES = "Does what you say, each time anew, with a language model: looks things up, sums them up, writes a text"


@dataclass(frozen=True, slots=True)
class AssistantModels:
    """The models that tasks may ask for.

    Attributes:
        names: Their names.
        find: Returns the model of a name, or the usual one for None.
    """

    names: tuple[str, ...]
    find: Callable[[str | None], Model]


def with_assistant(
    registry: Registry, models: AssistantModels, find_name: Callable[[str], str], limits: AssistantLimits
) -> Registry:
    """Return a registry whose tasks may be done by a language model.

    Args:
        registry: The handlers, among them the tools.
        models: The models that tasks may ask for.
        find_name: Returns the name of an owner, empty if it is not known.
        limits: How much one execution may use.

    Raises:
        Misconfigured: The app has a handler of that name.
    """
    if ASSISTANT_HANDLER in registry:
        raise Misconfigured(
            f"The app has a handler {ASSISTANT_HANDLER!r} of its own: rename it, or set CLOUDSCHED_ASSISTANT=off."
        )
    run = AssistantRun(registry, models.find, find_name, limits)
    handler = Handler(
        name=ASSISTANT_HANDLER,
        function=run.run,
        takes_context=True,
        payload=TypeAdapter(AssistantPayload),
        retry=None,
        retry_on=(Exception,),
        expected_duration=None,
        pull=None,
        on_failure=None,
        is_built_in=True,
        check=partial(_check, registry, models.names),
        access=Requesters.USERS,
        draft=_DOES,
        estimate=partial(estimate_cost, limits=limits),
    )
    return registry.with_builtin(handler)


def _check(registry: Registry, models: tuple[str, ...], draft: TaskDraft, _: Requesters) -> None:
    """Check a task of the assistant: there is something to do, and its tools and its model are open to it.

    Raises:
        InvalidInput: One of these does not hold.
    """
    if draft.pull is not None:
        raise InvalidInput("pull", "is given together with the assistant", "Set it on the tools that workers run.")
    if not draft.purpose.strip() and not draft.description.strip():
        raise InvalidInput("purpose", "is empty", "Say in words what the assistant is to do each time.")
    known = [each.name for each in list_open_tools(registry)]
    for number, name in enumerate(AssistantPayload.model_validate(draft.payload).tools):
        if name not in known:
            hint = f"Open: {', '.join(known)}." if known else "The app opens none; see docs/how-to/assistant.md."
            raise InvalidInput(f"payload.tools.{number}", f"is {name!r}, which is not open to the assistant", hint)
    model = None if draft.source is None or draft.source.model is None else draft.source.model.name
    if model is not None and model not in models:
        hint = f"Leave it out, or choose one of {', '.join(models)}." if models else "Leave it out."
        raise InvalidInput("source.model.name", f"is {model!r}, which is not open to the assistant", hint)
