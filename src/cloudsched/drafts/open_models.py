"""The language models that the settings name, each opened on first use."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from cloudsched.drafts.language_models import (
    CHAT,
    GEMINI,
    OPENAI_URL,
    HttpModel,
    ModelPrices,
    make_google_session,
    make_session,
    require_safe_url,
    vertex_url,
)
from cloudsched.errors import Misconfigured, ModelUnavailable

if TYPE_CHECKING:
    from datetime import timedelta

    from cloudsched.config.settings import Settings
    from cloudsched.engine.ports.model import Model
    from cloudsched.runtime.factories import Circuits


class LanguageModels:
    """The models of drafts and of the assistant, or instead of them all the given one."""

    def __init__(self, settings: Settings, given: Model | None, circuits: Circuits) -> None:
        self._settings = settings
        self._given = given
        self._circuits = circuits
        self._open_once = cache(self._open)

    @property
    def names(self) -> tuple[str, ...]:
        """The models that the assistant's tasks may name, the usual one first."""
        if self._settings.model.name is None and self._given is None:
            raise Misconfigured("CLOUDSCHED_ASSISTANT is on, and no language model is set: set CLOUDSCHED_MODEL, too.")
        every = (find_usual(self._settings), *self._settings.assistant.models)
        return tuple(dict.fromkeys(each for each in every if each))

    def open_drafter(self) -> Model:
        """Return the model that reads drafts."""
        return self._guard("model", open_model(self._settings))

    def find(self, name: str | None) -> Model:
        """Return the assistant's model of that name, or the usual one for None."""
        return self._given if self._given is not None else self._open_once(name or find_usual(self._settings))

    def _open(self, name: str) -> Model:
        model = open_model(self._settings, name, self._settings.assistant.timeout)
        return self._guard(name_circuit(self._settings, name), model)

    def _guard(self, name: str, model: Model) -> Model:
        return self._circuits.guard(name, model, ModelUnavailable, f"The {name}", ("complete",))


def find_usual(settings: Settings) -> str:
    """Return the name of the usual model. It is empty if the settings name none."""
    return (settings.model.name or "").partition(":")[2]


def name_circuit(settings: Settings, name: str | None) -> str:
    """Return what the circuit to the assistant's model of that name is called."""
    return "assistant" if name in {None, find_usual(settings)} else f"assistant {name}"


def open_model(settings: Settings, name: str | None = None, timeout: timedelta | None = None) -> Model:
    """Return the model, or another one of the same provider. Raises Misconfigured if something is missing."""
    model = settings.model
    is_google = (model.name or "").startswith("vertex:")
    has_key = is_google or model.key is not None
    if not has_key and not model.url:
        raise Misconfigured("Set CLOUDSCHED_MODEL_KEY, or CLOUDSCHED_MODEL_URL to a server that needs no key.")
    usual_url = vertex_url(settings.project, settings.location) if is_google else OPENAI_URL
    return HttpModel(
        GEMINI if is_google else CHAT,
        require_safe_url(model.url or usual_url, has_key=has_key),
        name or find_usual(settings),
        make_google_session if is_google else make_session,
        (timeout or model.timeout).total_seconds(),
        key=None if is_google else model.key,
        prices=ModelPrices(*map(float, model.prices.split("/"))) if model.prices else ModelPrices(),
    )
