"""Read the jobs of Cloud Scheduler, as ``gcloud scheduler jobs list --format=json`` prints them."""

from __future__ import annotations

import base64
import binascii
import json
import re
from datetime import timedelta
from typing import Any

from pydantic import ValidationError

from cloudsched.cli.imports.job import Job, ReadFile, Refusal
from cloudsched.domain.documents.policy import RetryPolicy
from cloudsched.domain.recurrence.cron import is_cron
from cloudsched.domain.recurrence.time_zones import load_zone
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.errors import InvalidSchedule

_NAME = re.compile(r"projects/[^/]+/locations/[^/]+/jobs/([A-Za-z0-9_-]{1,500})\Z")
_DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)s\Z")
_SECRET_HEADERS = {"authorization", "proxy-authorization", "cookie", "x-api-key"}
_OWN_HEADERS = {"user-agent"}
"""What Cloud Scheduler itself sets."""
_TARGETS = ("httpTarget", "pubsubTarget", "appEngineHttpTarget")


def read_cloud_scheduler(content: bytes, *, prefix: str) -> ReadFile:
    """Return the jobs of a list.

    Args:
        content: The file.
        prefix: What the tasks' ids begin with, before the name of the job; may be empty.

    Raises:
        Refusal: The file is no list of jobs.
    """
    jobs: dict[str, Job] = {}
    refusals: list[str] = []
    for number, each in enumerate(_parse_list(content), 1):
        place = f"job {number}"
        try:
            fields = _as_dict(each, "it")
            name = _NAME.match(_text(fields, "name"))
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
    """Return cron as a schedule; App Engine's words ("every 12 hours") as they are, to be read as plain words."""
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
    """Return a body as JSON, as text, or, if it is neither, as it is encoded; None if there is none."""
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
    """Return the retry policy of a job that has one; a job without retries leaves it to the handler."""
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
