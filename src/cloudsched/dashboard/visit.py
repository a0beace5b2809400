"""The basis of every view: the viewer, the time and the zone, and the HTTP API through the client, JSON in and out."""

from __future__ import annotations

import json
import zoneinfo
from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any
from urllib.parse import quote, urlencode

from cloudsched.client.flow import ApiRequest, ApiResponse, FlowRunner
from cloudsched.dashboard.times import Moment, find_zone, make_moment, parse_instant
from cloudsched.errors import CloudschedError, NotFound

UTC_ZONE = zoneinfo.ZoneInfo("UTC")


@dataclass(frozen=True, slots=True)
class Visit:
    """One look at one page."""

    now: datetime
    """The time of the API's clock."""
    zone: zoneinfo.ZoneInfo
    query: Mapping[str, str]
    may_change: bool
    role: str
    owner: str | None
    """The caller as an owner of tasks. None for a server."""
    is_local: bool
    """True if this is the local stack, whose clock can be moved."""
    has_chosen_zone: bool = False
    """True if the address names the zone."""
    own_zone: str = ""
    """The zone of the viewer's browser. Empty if it is not known."""

    @property
    def may_move_clock(self) -> bool:
        """Return whether the caller may move the local stack's clock, which is the same for everybody."""
        return self.is_local and self.may_change and self.role == "admin"

    @property
    def soonest(self) -> str:
        """Return the first future instant. An earlier occurrence that has not started is overdue, and not due next."""
        return (self.now + timedelta(microseconds=1)).isoformat()

    def moment(self, at: str | datetime) -> Moment:
        """Return an instant as it is shown."""
        return make_moment(parse_instant(at) if isinstance(at, str) else at, self.now, self.zone)

    def in_zone_of(self, task: Json) -> Visit:
        """Return the same look in a task's own zone, if the address names none."""
        zone = find_zone(task.get("timezone"))
        return self if zone is None or self.has_chosen_zone else replace(self, zone=zone)

    def list_zones(self, *more: str) -> list[str]:
        """Return the zones to choose from: the present one, others that matter here, the viewer's own, and UTC."""
        return list(dict.fromkeys(filter(None, [self.zone.key, *more, self.own_zone, "UTC"])))

    def with_query(self, **changes: str | None) -> str:
        """Return this address's query with some parameters changed, or removed by None."""
        kept = {name: value for name, value in self.query.items() if name not in {"done", *changes}}
        text = urlencode({**kept, **{name: value for name, value in changes.items() if value}})
        return f"?{text}" if text else "?"


Json = dict[str, Any]


class Api:
    """Sends requests to one API."""

    def __init__(self, client: FlowRunner) -> None:
        self._client = client
        self._describe = lru_cache(maxsize=2000)(self._ask_for_words)

    def get(self, path: str, **query: str | int | None) -> Json:
        """Return the API's answer to a GET. Raises CloudschedError if it refuses."""
        given = {name: value for name, value in query.items() if value not in {None, ""}}
        return self._send(ApiRequest("GET", path, query=given)).content

    def post(
        self,
        path: str,
        content: Mapping[str, Any] | None = None,
        *,
        etag: str = "",
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Json:
        """Send a POST, with `If-Match` if there is an ETag. Raises CloudschedError if the API refuses."""
        given = {**(headers or {}), **({"If-Match": etag} if etag else {})}
        is_safe = bool(etag) or "Idempotency-Key" in given
        request = ApiRequest("POST", path, dict(content or {}), dict(query or {}), given, is_idempotent=is_safe)
        return self._send(request).content

    def patch(
        self, path: str, content: Mapping[str, Any], *, etag: str = "", query: Mapping[str, str] | None = None
    ) -> Json:
        """Send a JSON merge patch, with `If-Match` if there is an ETag. Raises CloudschedError if the API refuses."""
        headers = {"If-Match": etag} if etag else {}
        request = ApiRequest("PATCH", path, dict(content), dict(query or {}), headers, is_idempotent=bool(etag))
        return self._send(request).content

    def delete(self, path: str) -> None:
        """Delete something. Raises CloudschedError if the API refuses."""
        self._send(ApiRequest("DELETE", path))

    def find(self, path: str, **query: str | int | None) -> Json | None:
        """Return the result of `get`. None where the API has nothing at this path, or refuses to say."""
        try:
            return self.get(path, **query)
        except CloudschedError:
            return None

    def task(self, task_id: str) -> tuple[Json, str]:
        """Return a task and its ETag. Raises NotFound if there is none that the caller may see."""
        response = self._send(ApiRequest("GET", task_path(task_id)))
        return response.content, response.etag

    def describe(self, schedule: Mapping[str, Any]) -> str:
        """Return a schedule in the API's words. The answer is cached, because it depends on nothing else."""
        return self._describe(json.dumps(schedule, sort_keys=True))

    def _ask_for_words(self, schedule: str) -> str:
        body = {"schedule": json.loads(schedule), "count": 1}
        answer = self._send(ApiRequest("POST", "/v1/schedules/preview", body, is_idempotent=True)).content
        return str(answer.get("description", ""))

    def _send(self, request: ApiRequest) -> ApiResponse:
        def flow() -> Generator[ApiRequest, ApiResponse, ApiResponse]:
            return (yield request)

        return self._client.run_flow(flow())


def write_count(count: int, one: str, many: str, *, is_at_least: bool = False) -> str:
    """Return a number of items, such as ``at least 10,000 tasks``."""
    return f"{'at least ' if is_at_least else ''}{count:,} {one if count == 1 else many}"


def task_path(task_id: str) -> str:
    """Return a task's path in the API. Raises NotFound for a text that cannot be an id."""
    if task_id in {"", ".", ".."}:
        raise NotFound("task", task_id)
    return f"/v1/tasks/{quote(task_id, safe='')}"
