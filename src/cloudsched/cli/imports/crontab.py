"""Read a crontab, by crontab(5) of Debian and cronie: environment, zones, the user column, ``%`` in commands."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cloudsched.cli.imports.job import Job, ReadFile, Refusal
from cloudsched.domain.recurrence.cron import is_cron
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.errors import InvalidSchedule

if TYPE_CHECKING:
    from collections.abc import Iterator

_VARIABLE = re.compile(r"""(?:"([^"]*)"|'([^']*)'|([A-Za-z_][A-Za-z0-9_]*))\s*=\s*(.*)\Z""", re.DOTALL)
_PERCENT = re.compile(r"(\\?)%")
_MAIL = {"MAILTO", "MAILFROM"}
_TITLE_LENGTH = 200


@dataclass(slots=True)
class _Reader:
    """The state from line to line."""

    zone: str
    has_user: bool
    prefix: str
    environment: dict[str, str] = field(default_factory=dict)
    seen: Counter[str] = field(default_factory=Counter)
    notes: dict[str, None] = field(default_factory=dict)
    default_zone: str = "UTC"


def read_crontab(content: bytes, *, timezone: str | None, has_user: bool, prefix: str) -> ReadFile:
    """Return the jobs of a crontab.

    Args:
        content: The file.
        timezone: The zone of times that follow no ``CRON_TZ``; UTC if None.
        has_user: Whether a column before the command names the user, as in ``/etc/crontab``.
        prefix: What the tasks' ids begin with.

    Raises:
        Refusal: The file is no text.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Refusal(f"it is not UTF-8: {error.reason} at byte {error.start}") from None
    reader = _Reader(timezone or "UTC", has_user, prefix, default_zone=timezone or "UTC")
    jobs, refusals = list[Job](), list[str]()
    for number, line in _lines(text):
        try:
            job = _read_line(reader, line, f"line {number}")
        except Refusal as refusal:
            refusals.append(f"line {number}: {refusal}")
        else:
            jobs += [] if job is None else [job]
    if timezone is None and "CRON_TZ" not in text and jobs:
        reader.notes["The file names no zone, so its times are UTC; --timezone names another one."] = None
    return ReadFile(jobs, refusals, list(reader.notes))


def _lines(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip(" \t\r")
        if stripped and not stripped.startswith("#"):
            yield number, stripped


def _read_line(reader: _Reader, line: str, place: str) -> Job | None:
    if "\0" in line:
        raise Refusal("it has a NUL character: this is no crontab")
    if variable := _VARIABLE.match(line):
        double, single, plain, value = variable.groups()
        _set_variable(reader, double or single or plain or "", _unquote(value))
        return None
    timing, rest = _split_timing(line.removeprefix("-").lstrip())
    user = None
    if reader.has_user:
        user, rest = [*re.split(r"[ \t]+", rest, maxsplit=1), ""][:2]
    if not rest:
        missing = "a user and a command" if reader.has_user else "a command"
        raise Refusal(f"{line[:60]!r} is no job: it needs five fields or an @name, and {missing}")
    schedule = _read_schedule(timing, reader.zone)
    command, stdin = _split_input(rest)
    payload = {"command": command}
    payload |= {"stdin": stdin} if stdin is not None else {}
    payload |= {"user": user} if user else {}
    whole = {**payload, **({"environment": dict(reader.environment)} if reader.environment else {})}
    title = command[:_TITLE_LENGTH] or "?"
    task_id = _make_id(reader, user, rest)
    return Job(task_id, command, place, title, schedule, None, whole, whole)


def _set_variable(reader: _Reader, name: str, value: str) -> None:
    if name == "CRON_TZ":
        reader.zone = value.lstrip(":") or reader.default_zone
    elif name in _MAIL:
        reader.notes[f"{name} is left out: a handler sends its own mail, and on_failure tells you of failures."] = None
    elif name == "RANDOM_DELAY":
        reader.notes["RANDOM_DELAY is left out: give the tasks a jitter instead."] = None
    else:
        reader.environment[name] = value


def _unquote(value: str) -> str:
    value = value.strip()
    is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
    return value[1:-1] if is_quoted else value


def _split_timing(line: str) -> tuple[str, str]:
    """Return the part that says when, and the rest of the line as it stands."""
    count = 1 if line.startswith("@") else 5
    fields = re.match(rf"(?:[^ \t]+[ \t]+){{{count - 1}}}[^ \t]+", line)
    if fields is None:
        return line, ""
    return " ".join(fields.group().split()), line[fields.end() :].lstrip(" \t")


def _read_schedule(timing: str, zone: str) -> Schedule:
    if timing.lower() == "@reboot":
        raise Refusal("@reboot is no time: call the function where your service starts")
    if "~" in timing:
        raise Refusal(f"{timing!r} has a random time (~): write a time, and give the task a jitter")
    if not is_cron(timing):
        raise Refusal(f"{timing[:60]!r} is no time that cron knows")
    try:
        return Schedule.parse(timing, timezone=zone)
    except InvalidSchedule as error:
        raise Refusal(str(error)) from None


def _split_input(text: str) -> tuple[str, str | None]:
    r"""Return the command and its standard input, which begins at the first ``%`` that is not written ``\%``."""
    parts, last = [""], 0
    for found in _PERCENT.finditer(text):
        parts[-1] += text[last : found.start()]
        last = found.end()
        if found.group(1):
            parts[-1] += "%"
        else:
            parts.append("")
    parts[-1] += text[last:]
    command, *lines = parts
    return command.strip(), "\n".join([*lines, ""]) if lines else None


def _make_id(reader: _Reader, user: str | None, command: str) -> str:
    """Return an id that stays when the time of a job, or another line, changes."""
    digest = hashlib.sha256(json.dumps([user, command]).encode()).hexdigest()[:10]
    program = re.sub(r"[^A-Za-z0-9]+", "-", command.split(maxsplit=1)[0].rpartition("/")[2])[:40].strip("-")
    name = "-".join(part for part in (reader.prefix, program, digest) if part)
    reader.seen[name] += 1
    return name if reader.seen[name] == 1 else f"{name}-{reader.seen[name]}"
