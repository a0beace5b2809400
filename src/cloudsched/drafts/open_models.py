"""The language models that the settings name, each opened on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.adapters.safe_http import limit_session
from cloudsched.drafts import language_models
from cloudsched.drafts.language_models import (
    MAX_ANSWER,
    JsonTransport,
    ModelPrices,
    make_session,
    require_safe_url,
)
from cloudsched.engine.concurrency.fork_safety import make_lock
from cloudsched.errors import Misconfigured, ModelUnavailable

if TYPE_CHECKING:
    from datetime import timedelta

    import requests

    from cloudsched.config.settings import Settings
    from cloudsched.engine.ports.model import Model
    from cloudsched.runtime.factories import Circuits


class LanguageModels:
    """The models of drafts and of the assistant, or instead of them all the given one."""

    def __init__(self, settings: Settings, given: Model | None, circuits: Circuits) -> None:
        self._settings = settings
        self._given = given
        self._circuits = circuits
        self._open: dict[str, Model] = {}
        self._lock = make_lock()

    def open_drafter(self) -> Model:
        """Return the model that reads drafts."""
        return self._guard("model", open_model(self._settings))

    def _guard(self, name: str, model: Model) -> Model:
        return self._circuits.guard(name, model, ModelUnavailable, f"The {name}", ("complete",))

    @property
    def names(self) -> tuple[str, ...]:
        """The models that the assistant's tasks may name, the usual one first."""
        if self._settings.model.name is None and self._given is None:
            raise Misconfigured("CLOUDSCHED_ASSISTANT is on, and no language model is set: set CLOUDSCHED_MODEL, too.")
        return tuple(dict.fromkeys(each for each in (self._usual, *self._settings.assistant.models) if each))

    @property
    def _usual(self) -> str:
        return (self._settings.model.name or "").partition(":")[2]

    def find(self, name: str | None) -> Model:
        """Return the assistant's model of that name, or the usual one for None."""
        if self._given is not None:
            return self._given
        chosen = name or self._usual
        with self._lock:
            if chosen not in self._open:
                model = open_model(self._settings, chosen, self._settings.assistant.timeout)
                self._open[chosen] = self._guard(name_circuit(self._settings, name), model)
            return self._open[chosen]


def name_circuit(settings: Settings, name: str | None) -> str:
    """Return what the circuit to the assistant's model of that name is called."""
    usual = (settings.model.name or "").partition(":")[2]
    return "assistant" if name in {None, usual} else f"assistant {name}"


def open_model(settings: Settings, name: str | None = None, timeout: timedelta | None = None) -> Model:
    """Return the model, or another one of the same provider. Raises Misconfigured if something is missing."""
    model = settings.model
    kind, _, usual = (model.name or "").partition(":")
    name = name or usual
    prices = ModelPrices(*map(float, model.prices.split("/"))) if model.prices else ModelPrices()
    is_google = kind == "vertex"
    if not is_google and model.key is None and not model.url:
        raise Misconfigured("Set CLOUDSCHED_MODEL_KEY, or CLOUDSCHED_MODEL_URL to a server that needs no key.")
    url = model.url or language_models.OPENAI_URL
    if is_google and not model.url:
        url = language_models.vertex_url(settings.project, settings.location)
    url = require_safe_url(url, has_key=is_google or model.key is not None)
    seconds = (timeout or model.timeout).total_seconds()
    make = language_models.make_google_session if is_google else make_session

    def make_limited() -> requests.Session:
        return limit_session(make(), max_seconds=seconds, max_bytes=MAX_ANSWER)

    transport = JsonTransport("The model", make_limited, seconds)
    if is_google:
        return language_models.GeminiModel(transport, url, name, prices=prices)
    return language_models.ChatCompletionsModel(transport, url, name, model.key, prices)
