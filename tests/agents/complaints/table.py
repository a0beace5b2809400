"""All complaints, in the order of the page."""

from __future__ import annotations

from typing import Final

from tests.agents.complaints import changes, clocks, processes, times, told, twice
from tests.agents.complaints.world import COMPLAINTS, Complaint

CHAPTERS: Final = {
    "It does not run, or too late": (times, processes),
    "It runs twice, or too early": (twice,),
    "Zones and clocks": (clocks,),
    "What people are told": (told,),
    "Changes, limits and approvals": (changes,),
}


def list_chapters() -> dict[str, list[Complaint]]:
    """Return the complaints by what they are about."""
    return {
        title: [each for module in modules for each in COMPLAINTS if each.play.__module__ == module.__name__]
        for title, modules in CHAPTERS.items()
    }
