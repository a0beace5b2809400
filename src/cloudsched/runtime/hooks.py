"""What an app registers besides handlers: hooks, and what tests call instead of dependencies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from cloudsched.runtime.parts import ReplaceableParts

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.engine.handlers.handler import OnFailure
    from cloudsched.engine.ports.sender import Template

H = TypeVar("H", bound="OnFailure")


class Hooks(ReplaceableParts):
    """Has hooks, which it keeps whatever its parts are."""

    def on_failure(self, hook: H) -> H:
        """Register a function that is called whenever an occurrence of any handler has failed permanently.

        It gets the task and the execution, like a handler's own `on_failure`, and is called after that, by the process
        that records the failure: at least once, and again if the process dies before the failure is stored. An
        exception that it raises is logged, and changes nothing.
        """
        self.container.registry.registrations.failure_hooks.append(hook)
        return hook

    def mail_template(self, template: Template) -> Template:
        """Register the function that makes the HTML of mails from a message: its `title`, `body`, `data` and so on.

        They may come from users: it has to escape them (`html.escape`). The mail's text stays the message's own. An
        exception that it raises fails the attempt, which is repeated.
        """
        self.container.registry.registrations.mail_template = template
        return template

    @property
    def dependency_overrides(self) -> dict[Callable[..., Any], Callable[..., Any]]:
        """What a test calls instead of a dependency's factory: ``app.dependency_overrides[open_session] = fake``."""
        return self.container.registry.registrations.dependency_overrides
