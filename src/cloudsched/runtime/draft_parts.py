"""The parts that make drafts of tasks from what people say; see ``docs/how-to/drafts.md``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.runtime.circuits import Circuits
from cloudsched.runtime.factories import lazy_property

if TYPE_CHECKING:
    from cloudsched.config.settings import Settings
    from cloudsched.drafts.service import Drafts
    from cloudsched.drafts.tokens import DraftTokens
    from cloudsched.engine.engine_context import EngineContext
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.model import Model


class DraftParts(Circuits):
    """Has the parts of drafts, each made on first use; the container has what they are made of."""

    given_model: Model | None = None
    """The language model that the app was given in place of the one that the settings name."""

    if TYPE_CHECKING:

        @property
        def settings(self) -> Settings: ...  # noqa: D102
        @property
        def clock(self) -> Clock: ...  # noqa: D102
        @property
        def engine(self) -> EngineContext: ...  # noqa: D102

    @lazy_property
    def draft_tokens(self) -> DraftTokens:
        """Signs and checks what was shown."""
        from cloudsched.drafts.tokens import DraftTokens  # noqa: PLC0415 - imported only when used
        from cloudsched.engine.dispatch.signing_keys import SigningKeys  # noqa: PLC0415 - the same

        keys = SigningKeys(self.settings.secret, self.settings.previous_secret, purpose="draft")
        return DraftTokens(keys, self.clock)

    @lazy_property
    def drafts(self) -> Drafts:
        """Makes drafts."""
        from cloudsched.drafts.limits import DraftLimits  # noqa: PLC0415 - imported only when used
        from cloudsched.drafts.service import Drafts, ReadOptions  # noqa: PLC0415 - the same

        settings = self.settings
        limits = DraftLimits(max(settings.minimum_lead, settings.drafts.least_lead), settings.drafts.least_interval)
        options = ReadOptions(settings.default_time, settings.default_calendar, limits)
        if self.model is None:
            return Drafts(self.engine, options, self.draft_tokens)
        from cloudsched.drafts.model_reader import ModelReader  # noqa: PLC0415 - imported only with a model

        return Drafts(self.engine, options, self.draft_tokens, ModelReader(self.model).read)

    @lazy_property
    def model(self) -> Model | None:
        """The language model; None if there is none."""
        if self.given_model is not None or self.settings.model.name is None:
            return self.given_model
        from cloudsched.errors import ModelUnavailable  # noqa: PLC0415 - imported only with a model
        from cloudsched.runtime.language_models import open_model  # noqa: PLC0415 - the same

        return self.with_circuit_breaker("model", open_model(self.settings), ModelUnavailable)
