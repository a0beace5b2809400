"""The tools' table: what each takes and may do, and how its arguments are read.

Each method of `AgentTools` that is marked by `offer` is a tool. Its signature is its schema, and its docstring is what
agents read.
"""

from __future__ import annotations

import inspect
import json
import re
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")


class ToolRefused(Exception):
    """A tool did nothing. The message says why, and what to call instead."""


@dataclass(frozen=True, kw_only=True)
class ToolEffects:
    """What a tool may do, as its annotations tell."""

    reads: bool = False
    """True if it changes nothing."""
    adds: bool = False
    """True if it leaves all that there is as it was."""
    repeats: bool = False
    """True if the same call again changes nothing more."""
    starts: bool = False
    """True if a run may begin because of it, which may reach anybody: by mail, say."""

    def to_annotations(self) -> dict[str, bool]:
        """Return the annotations, by their names in the protocol."""
        return {
            "readOnlyHint": self.reads,
            "destructiveHint": not (self.reads or self.adds),
            "idempotentHint": self.reads or self.repeats,
            "openWorldHint": self.starts,
        }


def offer(**effects: bool) -> Callable[[F], F]:
    """Return a decorator that makes a method a tool with these `ToolEffects`."""

    def mark(method: F) -> F:
        vars(method)["effects"] = ToolEffects(**effects)
        return method

    return mark


@dataclass(frozen=True)
class AgentTool:
    """A tool: a method of `AgentTools`."""

    method: Callable[..., Any]

    @property
    def name(self) -> str:
        """Return the name by which agents call it."""
        return self.method.__name__

    @property
    def effects(self) -> ToolEffects:
        """Return what it may do."""
        effects: ToolEffects = vars(self.method)["effects"]
        return effects

    @property
    def description(self) -> str:
        """Return what agents read of it."""
        return inspect.cleandoc(self.method.__doc__ or "")

    @cached_property
    def arguments(self) -> type[BaseModel]:
        """The model of its arguments, which takes no other."""
        hints = get_type_hints(self.method, include_extras=True)
        fields: dict[str, Any] = {
            name: (hints[name], ... if each.default is each.empty else each.default)
            for name, each in inspect.signature(self.method).parameters.items()
            if name != "self"
        }
        return create_model(self.name, __config__=ConfigDict(extra="forbid"), **fields)

    @property
    def schema(self) -> dict[str, Any]:
        """Return the JSON schema of its arguments."""
        return self.arguments.model_json_schema()

    def read(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of a call. Raises ToolRefused, with all that is wrong with them."""
        for name, value in given.items():
            if _HALF_CHARACTER.search(json.dumps(value, ensure_ascii=False, default=str)):
                raise ToolRefused(f"Nothing was done. '{name}' has half of a character: send all of it, as UTF-8.")
        try:
            read = self.arguments.model_validate(given)
        except ValidationError as error:
            faults = [self._describe(each) for each in error.errors(include_url=False)]
            raise ToolRefused(f"Nothing was done. {' '.join(faults)}") from None
        return {name: getattr(read, name) for name in read.model_fields_set}

    def _describe(self, fault: Any) -> str:  # noqa: ANN401 - pydantic's own details of an error
        name, *inner = map(str, fault["loc"])
        if fault["type"] in {"missing", "string_pattern_mismatch"}:
            about = self.arguments.model_fields[name].description or ""
            return f"{self.name} needs '{name}': {about}"
        if fault["type"] != "extra_forbidden":
            return f"'{'.'.join([name, *inner])}': {fault['msg']}."

        nearest = self._find_nearest(name)
        known = ", ".join(self.arguments.model_fields) or "none"
        return f"{self.name} has no argument '{name}'.{nearest} Its arguments: {known}."

    def _find_nearest(self, name: str) -> str:
        """Return a sentence with the argument that was probably meant, or nothing."""
        known = [*self.arguments.model_fields]
        plain = name.lower().replace("-", "_")
        meant = [each for each in known if plain in _OTHER_NAMES.get(each, "").split()]
        contained = [each for each in known if len(each) > len("id") and (each in plain or plain in each)]
        close = meant or contained or get_close_matches(plain, known, 1, 0.6)
        return f" Did you mean '{close[0]}'?" if close else ""


_HALF_CHARACTER: Final = re.compile("[\ud800-\udfff]")
"""A surrogate that is alone, which no request can hold."""
_OTHER_NAMES: Final = {
    "channels": "delivery notify notify_by email deliver_to",
    "cursor": "page page_token offset next_cursor",
    "duration": "for minutes delay until snooze_for",
    "event": "event_name",
    "handler": "function action job",
    "id": "task task_id taskid",
    "key": "idempotency_key request_id",
    "move_to_zone": "timezone time_zone tz zone",
    "payload": "arguments args data text input message",
    "payload_merge": "payload arguments args data text input message",
    "run": "execution execution_id run_id",
    "status": "state",
    "title": "name label",
    "to": "when schedule time new_time",
    "until": "resume_at end when",
    "when": "schedule at time cron rrule text recurrence",
    "words": "search query q text title filter",
    "zone": "timezone time_zone tz",
}
"""Other names that agents use for an argument."""
