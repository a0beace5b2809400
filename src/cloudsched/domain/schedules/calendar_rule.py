"""A schedule's rule for one calendar."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    StringConstraints,
    ValidationInfo,
    model_serializer,
    model_validator,
)
from pydantic.json_schema import SkipJsonSchema

from cloudsched.domain.any_case import AnyCase
from cloudsched.domain.schedules.calendar_days import WEEKENDS, WEEKENDS_CONTENT

On = Literal["SKIP", "BEFORE", "AFTER"]
CALENDAR_ID: Final = r"^[A-Za-z0-9_-]{1,100}$"
CalendarId = Annotated[str, StringConstraints(pattern=CALENDAR_ID)]
"""Letters, digits, hyphens and underscores."""
MAX_CALENDARS: Final = 5
"""The most calendars that a schedule may name."""


class CalendarRule(BaseModel):
    """One calendar that a schedule respects."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    id: CalendarId
    """The calendar's id. ``weekends`` is always there."""
    on: Annotated[On, AnyCase] = "SKIP"
    """The policy for an occurrence on one of its days. It is left out, or moved to the last free day before
    or to the next free day after. A free day is on none of the schedule's calendars."""
    content: SkipJsonSchema[str | None] = None
    """The calendar's days, as they were when the task was planned: None if they are not known yet. Stored with it, and
    not shown to callers. Those of ``weekends`` are always known."""

    @model_validator(mode="before")
    @classmethod
    def _read_days(cls, data: Any, info: ValidationInfo) -> Any:  # noqa: ANN401 - anything
        is_stored = info.context and info.context.get("stored")
        if isinstance(data, dict) and "content" in data and not is_stored:
            raise ValueError("content is no field that can be set")
        given = {"id": data} if isinstance(data, str) else data
        if isinstance(given, dict) and given.get("id") == WEEKENDS:
            return {**given, "content": WEEKENDS_CONTENT}
        return given

    @model_serializer(mode="wrap")
    def _hide_content(
        self,
        handler: SerializerFunctionWrapHandler,
        info: SerializationInfo,
    ) -> dict[str, Any]:
        fields: dict[str, Any] = handler(self)
        if not (info.context and info.context.get("stored")):
            fields.pop("content", None)
        return fields

    def with_content(self, content: str | None, calendar_id: str | None = None) -> CalendarRule:
        """Return the rule with the calendar's days, and its full id."""
        return self.model_copy(update={"content": content, "id": calendar_id or self.id})
