"""The names of the handlers that delete and export all that is stored of a person. See `person_job` for their state."""

from __future__ import annotations

from typing import Final

ERASE_HANDLER: Final = "cloudsched.erase-person"
EXPORT_HANDLER: Final = "cloudsched.export-person"
FOLLOW_HANDLER: Final = "cloudsched.follow-person"
"""The name of the handler of the tasks that plan again what follows a person to another time zone."""
