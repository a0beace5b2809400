"""The tables of docs/guides/plain-language.md and the code of docs/guides/schedules.md match what `read` returns."""

from __future__ import annotations

import re
from pathlib import Path

from tests.cases import try_each
from tests.doc_blocks import read_section
from tests.docs.handlers import app
from tests.language.walk import NOW, ZONE

from cloudsched.domain.recurrence.time_zones import load_tzinfo
from cloudsched.language import read
from cloudsched.testing import Simulation

DOCS = Path(__file__).parents[2] / "docs"
DOC = DOCS / "guides" / "plain-language.md"
GUIDE = (DOCS / "guides" / "schedules.md").read_text(encoding="utf-8")
NOW_AWARE = NOW.replace(tzinfo=load_tzinfo(ZONE))


def read_table(heading: str) -> list[tuple[str, ...]]:
    """Return the rows of the first table under a heading."""
    rows = [
        tuple(cell.strip() for cell in line.strip("| ").split(" | "))
        for line in read_section(DOC, heading).splitlines()
        if line[:1] == "|"
    ]
    return rows[2:]


@try_each("phrase, description", read_table("What can be said"))
def test_what_can_be_said(phrase: str, description: str) -> None:
    reading = read(phrase, now=NOW_AWARE, timezone=ZONE)
    assert reading.schedule is not None, reading
    assert reading.schedule.describe() == description


@try_each("phrase, code, answers", read_table("What is asked back"))
def test_what_is_asked_back(phrase: str, code: str, answers: str) -> None:
    """Every answer of the table is in one of the readings, in the same order."""
    reading = read(phrase, now=NOW_AWARE, timezone=ZONE)
    assert reading.kind == "question", reading
    assert reading.problems[0].code == code
    for answer, one in zip(answers.split("; "), reading.readings, strict=False):
        assert answer in one.description


@try_each("phrase, code", read_table("What is refused"))
def test_what_is_refused(phrase: str, code: str) -> None:
    reading = read(phrase, now=NOW_AWARE, timezone=ZONE)
    assert reading.kind == "refusal", reading
    assert reading.problems[0].code == code


@try_each("current, phrase, description", read_table("Changing a schedule"))
def test_changes(current: str, phrase: str, description: str) -> None:
    before = read(current, now=NOW_AWARE, timezone=ZONE).schedule
    reading = read(phrase, now=NOW_AWARE, timezone=ZONE, current=before)
    assert reading.schedule is not None, reading
    assert reading.schedule.describe() == description


@try_each("facet, english, german, dutch", read_table("Languages"))
def test_languages(facet: str, english: str, german: str, dutch: str) -> None:
    """Each row means the same in every language, whether the language is said or found out."""
    said = {"en": english, "de": german, "nl": dutch}
    meant = read(english, now=NOW_AWARE, timezone=ZONE).schedule
    assert meant is not None, facet
    for locale, phrase in said.items():
        for known in (locale, None):
            reading = read(phrase, now=NOW_AWARE, timezone=ZONE, locale=known)
            assert reading.schedule is not None, (phrase, known, reading)
            assert reading.schedule.upcoming(NOW_AWARE, 20) == meant.upcoming(NOW_AWARE, 20), (phrase, known)


def test_the_code_runs() -> None:
    """The Python examples run, and their assertions hold."""
    with Simulation(app):
        for block in re.findall(r"```python\n(.*?)```", GUIDE, flags=re.DOTALL):
            exec(compile(block, "docs/guides/schedules.md", "exec"), {"app": app})  # noqa: S102 -- our own page
