"""Jobs of other schedulers, as they become tasks: crontabs, and what gcloud prints of Cloud Scheduler.

Crontabs are read by crontab(5) of Debian and cronie: environment, zones, the user column, ``%`` in commands. Of Cloud
Scheduler, ``gcloud scheduler jobs list --format=json`` is read.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from cloudsched.domain.documents.policy import RetryPolicy
from cloudsched.domain.recurrence.cron import is_cron
from cloudsched.domain.recurrence.time_zones import load_zone
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.engine.handlers.registry import Declaration, Registry
from cloudsched.errors import InvalidSchedule
from cloudsched.language.schedule_text import read_schedule

if TYPE_CHECKING:
    from cloudsched.app import App


@dataclass(frozen=True, slots=True)
class Job:
    """One job that can become a task."""

    id: str
    """The id of its task: the same whenever the same file is read."""
    name: str
    """The text that ``--map`` is compared with: a job's name, or a command."""
    place: str
    """The place in the file, for people."""
    title: str
    schedule: Schedule | str
    timezone: str | None
    """The zone of a schedule in words."""
    payload: dict[str, Any]
    """The whole job: what a handler for any job takes."""
    body: dict[str, Any] | None
    """The body that a handler of this job alone takes, None if there is nothing that could be a payload."""
    left_out: tuple[str, ...] = ()
    """The parts of a job that a task cannot take over, for people."""
    more: dict[str, Any] = field(default_factory=dict)
    """Other fields of the task, by their Python names."""
    is_paused: bool = False


class Refusal(Exception):
    """A job cannot become a task."""


@dataclass(frozen=True, slots=True)
class ReadFile:
    """The content of a file."""

    jobs: list[Job]
    refusals: list[str]
    """Each job that cannot become a task: where it stands, why, and what to do."""
    notes: list[str]
    """The notes that people should read beforehand."""


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
        timezone: The zone of times that follow no ``CRON_TZ``, UTC if None.
        has_user: True if a column before the command names the user, as in ``/etc/crontab``.
        prefix: The prefix of the tasks' ids.

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
    schedule = _read_cron(timing, reader.zone)
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


def _read_cron(timing: str, zone: str) -> Schedule:
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


_JOB_NAME = re.compile(r"projects/[^/]+/locations/[^/]+/jobs/([A-Za-z0-9_-]{1,500})\Z")
_DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)s\Z")
_SECRET_HEADERS = {"authorization", "proxy-authorization", "cookie", "x-api-key"}
_OWN_HEADERS = {"user-agent"}
"""The headers that Cloud Scheduler itself sets."""
_TARGETS = ("httpTarget", "pubsubTarget", "appEngineHttpTarget")


def read_cloud_scheduler(content: bytes, *, prefix: str) -> ReadFile:
    """Return the jobs of a list.

    Args:
        content: The file.
        prefix: The prefix of the tasks' ids, before the name of the job. It may be empty.

    Raises:
        Refusal: The file is no list of jobs.
    """
    jobs: dict[str, Job] = {}
    refusals: list[str] = []
    for number, each in enumerate(_parse_list(content), 1):
        place = f"job {number}"
        try:
            fields = _as_dict(each, "it")
            name = _JOB_NAME.match(_text(fields, "name"))
            if name is None:
                raise Refusal(f"its name {fields['name'][:80]!r} is not projects/…/locations/…/jobs/NAME")  # noqa: TRY301
            place = f"job {name.group(1)}"
            job = _read_job(fields, name.group(1), place, prefix)
            if job.id in jobs:
                hint = "give the list of each location a --name of its own"
                raise Refusal(f"there are two jobs of this name: {hint}")  # noqa: TRY301
        except Refusal as refusal:
            refusals.append(f"{place}: {refusal}")
        else:
            jobs[job.id] = job
    return ReadFile([*jobs.values()], refusals, [])


def _parse_list(content: bytes) -> list[Any]:
    expected = "expected is what `gcloud scheduler jobs list --format=json` prints"
    try:
        data = json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise Refusal(f"it is no JSON ({error}); {expected}") from None
    if isinstance(data, dict):
        data = data.get("jobs", [data])
    if not isinstance(data, list):
        raise Refusal(f"it is no list of jobs; {expected}")
    return data


def _read_job(fields: dict[str, Any], name: str, place: str, prefix: str) -> Job:
    schedule, zone = _text(fields, "schedule"), _text(fields, "timeZone", "Etc/UTC") or "Etc/UTC"
    targets = [each for each in _TARGETS if fields.get(each) is not None]
    if len(targets) != 1:
        raise Refusal(f"it has {len(targets)} targets; one of {', '.join(_TARGETS)} is expected")
    target = _as_dict(fields[targets[0]], targets[0])
    content = _decode(_text(target, "data" if targets[0] == "pubsubTarget" else "body", ""))
    whole, left_out = _describe_target(targets[0], target, content)
    task_id = f"{prefix}{name}"
    if len(task_id) > 128:  # noqa: PLR2004 - the longest id of a task
        raise Refusal("its name is too long for a task's id, which has at most 128 characters")
    return Job(
        id=task_id,
        name=name,
        place=place,
        title=(_text(fields, "description", "").strip() or name)[:500],
        schedule=_read_schedule(schedule, zone),
        timezone=None if is_cron(schedule) else zone,
        payload=whole,
        body=content if isinstance(content, dict) else {} if content is None else None,
        left_out=left_out,
        more=_read_retry(_as_dict(fields.get("retryConfig") or {}, "retryConfig")),
        is_paused=_text(fields, "state", "ENABLED") in {"PAUSED", "DISABLED"},
    )


def _read_schedule(text: str, zone: str) -> Schedule | str:
    """Return cron as a schedule, and App Engine's words ("every 12 hours") as they are, to be read as plain words."""
    try:
        load_zone(zone)
        return Schedule.parse(text, timezone=zone) if is_cron(text) else text
    except InvalidSchedule as error:
        raise Refusal(str(error)) from None


def _describe_target(kind: str, target: dict[str, Any], content: Any) -> tuple[dict[str, Any], tuple[str, ...]]:  # noqa: ANN401 - any JSON
    """Return the target as JSON, without what holds secrets, and what is left out."""
    body = {} if content is None else {"body": content}
    if kind == "pubsubTarget":
        attributes = _as_dict(target.get("attributes") or {}, "attributes")
        described = {"topic": _text(target, "topicName"), **body}
        return described | ({"attributes": attributes} if attributes else {}), ()
    headers = _as_dict(target.get("headers") or {}, "headers")
    left_out = tuple(f"the header {name}" for name in headers if name.lower() in _SECRET_HEADERS)
    kept = {name: value for name, value in headers.items() if name.lower() not in _SECRET_HEADERS | _OWN_HEADERS}
    method = _text(target, "httpMethod", "POST")
    if kind == "httpTarget":
        described = {"url": _text(target, "uri"), "method": method}
    else:
        routing = _as_dict(target.get("appEngineRouting") or {}, "appEngineRouting")
        described = {"path": _text(target, "relativeUri", "/"), "method": method}
        described |= {"service": _text(routing, "service")} if routing.get("service") else {}
    return {**described, **({"headers": kept} if kept else {}), **body}, left_out


def _decode(encoded: str) -> Any:  # noqa: ANN401 - any JSON
    """Return a body as JSON, as text, or, if it is neither, as it is encoded. None if there is none."""
    if not encoded:
        return None
    try:
        content = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise Refusal("its body is not base64, as gcloud writes it") from None
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return {"base64": encoded}
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _read_retry(config: dict[str, Any]) -> dict[str, Any]:
    """Return the retry policy of a job that has one. A job without retries leaves it to the handler."""
    count = config.get("retryCount", 0)
    if not count:
        return {}
    shortest = _seconds(config, "minBackoffDuration", 5)
    try:
        policy = RetryPolicy(
            max_retries=count,
            first_delay=shortest,
            base=shortest * 2,
            factor=2.0,
            cap=_seconds(config, "maxBackoffDuration", 3600),
        )
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise Refusal(f"its retryConfig is not valid: {first['loc'][0]}: {first['msg']}") from None
    return {"retry": policy}


def _seconds(config: dict[str, Any], field: str, default: int) -> timedelta:
    text = _text(config, field, f"{default}s")
    found = _DURATION.match(text)
    if found is None:
        raise Refusal(f"its {field} is {text[:40]!r}, not a number of seconds such as 5s")
    return timedelta(seconds=float(found.group(1)))


def _text(fields: dict[str, Any], name: str, default: str | None = None) -> str:
    value = fields.get(name, default)
    if value is None and default is None:
        raise Refusal(f"it has no {name}")
    if not isinstance(value, str):
        raise Refusal(f"its {name} is no text")
    return value


def _as_dict(value: object, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Refusal(f"{what} is no object")
    return value


@dataclass(frozen=True, slots=True)
class HandlerChoice:
    """The handlers that the options name, beside the app's handlers.

    The first rule that fits decides: a pattern of ``--map``, a handler with the job's own name, or ``--handler``. One
    of the first two is for this job, and gets its body. The last is for any job, and gets all of it.
    """

    registry: Registry
    patterns: Sequence[tuple[str, str]]
    default: str | None
    owner: str

    def declare(self, job: Job) -> tuple[Declaration, list[str]]:
        """Return the task that a job becomes, and what of the job it does not have.

        Raises:
            Refusal: No handler is named for it, or its body is no payload.
        """
        own = next((name for pattern, name in self.patterns if fnmatchcase(job.name, pattern)), None)
        own = own or (job.name if job.name in self.registry else None)
        handler = own or self.default
        if handler is None:
            known = ", ".join(sorted(each.name for each in self.registry)) or "none"
            target = next((f" ({job.payload[key]})" for key in ("url", "topic", "path") if key in job.payload), "")
            raise Refusal(
                f"no handler is named for {job.name[:60]!r}{target}: give --map 'PATTERN=HANDLER' "
                f"or --handler HANDLER. There are: {known}"
            )
        payload, left_out = self._payload_for(job, handler, is_own=own is not None)
        declaration = Declaration(
            id=job.id,
            handler=handler,
            schedule=job.schedule,
            timezone=job.timezone,
            owner=self.owner,
            payload=payload,
            more={"title": job.title, **job.more},
            is_paused=job.is_paused,
        )
        return declaration, left_out

    def _payload_for(self, job: Job, name: str, *, is_own: bool) -> tuple[dict[str, Any], list[str]]:
        payload = job.body if is_own else job.payload
        handler = self.registry.find(name)
        left_out = [*job.left_out]
        if handler is not None and handler.payload is None:
            return {}, left_out if not payload else [*left_out, f"its payload, as {name} takes none"]
        if payload is None:
            raise Refusal(
                f"its body is no JSON object, so it cannot be the payload of {name!r}; --handler gets it as text"
            )
        if is_own and "attributes" in job.payload and "topic" in job.payload:
            left_out.append("its attributes")
        if handler is not None and "environment" in payload and not handler.accepts_field("environment"):
            left_out.append(f"its environment, as the payload of {name} has no such field")
            payload = {key: value for key, value in payload.items() if key != "environment"}
        return payload, left_out


def require_only_time(app: App, job: Job) -> None:
    """Check that words say a time and nothing else: plain words may name a task, too, which here is a misreading."""
    if isinstance(job.schedule, str):
        now, zone = app.container.clock.now(), job.timezone or "UTC"
        at, calendar = app.container.settings.default_time, app.container.settings.default_calendar
        read = read_schedule(job.schedule, now=now, timezone=zone, default_time=at, default_calendar=calendar)
        if read.title:
            raise Refusal(f"its schedule {job.schedule[:60]!r} has words that are no time: {read.title[:60]!r}")
