"""The built-in handler of deliveries; `handler` is what it does, imported when the first one runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cloudsched.domain.documents.delivery import DELIVERY_HANDLER
from cloudsched.engine.handlers.handler import builtin_handler
from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from cloudsched.domain.documents.authority import Authority
    from cloudsched.domain.transitions.drafts import TaskDraft
    from cloudsched.domain.transitions.outcome import Outcome
    from cloudsched.engine.delivery.handler import DeliveryHandler
    from cloudsched.engine.handlers.context import Context
    from cloudsched.engine.handlers.registry import Registry


def with_deliveries(registry: Registry, handler: Callable[[], DeliveryHandler]) -> Registry:
    """Return a registry whose tasks may be deliveries."""

    def deliver(ctx: Context, payload: dict[str, Any]) -> Outcome:
        return handler().run(ctx, payload)

    return registry.with_builtin(builtin_handler(DELIVERY_HANDLER, deliver, check=_refuse_draft))


def _refuse_draft(draft: TaskDraft, authority: Authority) -> NoReturn:  # noqa: ARG001 - nobody may
    hint = "Name the channels in a task's deliveryChannels; a success then creates its deliveries."
    raise InvalidInput("handler", f"is {DELIVERY_HANDLER!r}, whose tasks only the system makes", hint)
