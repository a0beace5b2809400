"""The payload of an event, as a handler receives it."""

from __future__ import annotations

from typing import Any


class EventPayload(dict[str, Any]):
    """An event's payload whose fields can be read as attributes: ``approval.by`` is ``approval["by"]``."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - any JSON
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"The event has no field {name!r}; it has {', '.join(self) or 'none'}.") from None
