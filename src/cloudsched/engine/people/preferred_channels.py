"""Give a new task the delivery channels that its owner prefers for its category, if its caller names none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.domain.documents.subjects import SYSTEM_OWNER

if TYPE_CHECKING:
    from cloudsched.domain.transitions.drafts import TaskDraft
    from cloudsched.engine.engine_context import EngineContext


def with_preferred_channels(draft: TaskDraft, engine: EngineContext) -> TaskDraft:
    """Return a draft with its owner's channels.

    One document is read, or none:

    * A draft that names channels, even an empty list, keeps them.
    * The system has no preferences.
    * Where neither mail nor pushes are set up, nothing is read, unless the settings ask for it.

    OPERATOR is left out: a person's preferences must not send to the operator's own channels.
    """
    is_asked = "delivery_channels" not in draft.model_fields_set and draft.owner != SYSTEM_OWNER
    if not is_asked or not engine.settings.reads_preferences:
        return draft
    from cloudsched.domain.documents.person import Person  # noqa: PLC0415 - imported only where people are used
    from cloudsched.domain.people.send_decision import default_channels  # noqa: PLC0415 - the same

    stored = engine.store.records.load(Person, draft.owner)
    chosen = default_channels(None if stored is None else stored.record, draft.category)
    channels = tuple(each for each in chosen if each.traits.may_users_name)
    return draft.model_copy(update={"delivery_channels": channels}) if channels else draft
