"""Open the language model that the settings name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.adapters.language_model import chat_completions, gemini
from cloudsched.adapters.language_model.answer import Prices
from cloudsched.adapters.language_model.transport import JsonTransport, make_session, require_safe_url
from cloudsched.errors import Misconfigured

if TYPE_CHECKING:
    from datetime import timedelta

    from cloudsched.config.settings import Settings
    from cloudsched.engine.ports.model import Model


def open_model(settings: Settings, name: str | None = None, timeout: timedelta | None = None) -> Model:
    """Return the model, or another one of the same provider, with its own time limit or another one.

    Raises:
        Misconfigured: Something is missing.
    """
    model = settings.model
    kind, _, usual = (model.name or "").partition(":")
    name = name or usual
    prices = Prices(*map(float, model.prices.split("/"))) if model.prices else Prices()
    is_google = kind == "vertex"
    if kind == "gemini" and model.key is None:
        raise Misconfigured("Set CLOUDSCHED_MODEL_KEY, or use vertex:NAME with this program's Google credentials.")
    default = {"gemini": gemini.API_URL, "vertex": "", "openai": chat_completions.API_URL}[kind]
    url = model.url or default or gemini.vertex_url(settings.project, settings.location)
    url = require_safe_url(url, has_key=is_google or model.key is not None)
    seconds = (timeout or model.timeout).total_seconds()
    transport = JsonTransport("The model", gemini.make_google_session if is_google else make_session, seconds)
    if kind == "openai":
        return chat_completions.ChatCompletionsModel(transport, url, name, model.key, prices)
    return gemini.GeminiModel(transport, url, name, None if is_google else model.key, prices)
