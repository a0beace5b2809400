"""The parts of the built-in handler `assistant`, where the settings turn it on; see ``docs/how-to/assistant.md``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.errors import Misconfigured
from cloudsched.runtime.draft_parts import DraftParts

if TYPE_CHECKING:
    import threading

    from cloudsched.engine.handlers.registry import Registry
    from cloudsched.engine.ports.model import Model
    from cloudsched.engine.ports.store import Store


class AssistantParts(DraftParts):
    """Has the assistant, and the models that its tasks ask for, each opened on first use."""

    if TYPE_CHECKING:
        build_lock: threading.RLock

        @property
        def store(self) -> Store: ...  # noqa: D102

    def __init__(self) -> None:
        super().__init__()
        self._assistant_models: dict[str, Model] = {}

    def with_assistant(self, registry: Registry) -> Registry:
        """Return a registry that has the assistant, if it is on.

        Raises:
            Misconfigured: It is on, and there is no model, or the app has a handler of that name.
        """
        settings = self.settings.assistant
        if not settings.is_on:
            return registry
        if self.settings.model.name is None and self.given_model is None:
            raise Misconfigured("CLOUDSCHED_ASSISTANT is on, and no language model is set: set CLOUDSCHED_MODEL, too.")
        from cloudsched.engine.assistant.handler import AssistantModels, with_assistant  # noqa: PLC0415 - only if it is on
        from cloudsched.engine.assistant.limits import AssistantLimits  # noqa: PLC0415 - the same

        names = tuple(dict.fromkeys(each for each in (self._usual_model, *settings.models) if each))
        limits = AssistantLimits(settings.turns, settings.tokens)
        return with_assistant(registry, AssistantModels(names, self.find_assistant_model), self._find_name, limits)

    @property
    def _usual_model(self) -> str:
        return (self.settings.model.name or "").partition(":")[2]

    def find_assistant_model(self, name: str | None) -> Model:
        """Return the model of that name, or the usual one for None."""
        if self.given_model is not None:
            return self.given_model
        from cloudsched.errors import ModelUnavailable  # noqa: PLC0415 - imported only with a model
        from cloudsched.runtime.language_models import open_model  # noqa: PLC0415 - the same

        chosen = name or self._usual_model
        with self.build_lock:
            if chosen not in self._assistant_models:
                model = open_model(self.settings, chosen, self.settings.assistant.timeout)
                circuit = "assistant" if chosen == self._usual_model else f"assistant {chosen}"
                self._assistant_models[chosen] = self.with_circuit_breaker(circuit, model, ModelUnavailable)
            return self._assistant_models[chosen]

    def _find_name(self, owner: str) -> str:
        from cloudsched.domain.documents.person import Person  # noqa: PLC0415 - imported only when used

        stored = self.store.records.load(Person, owner)
        return "" if stored is None else stored.record.name
