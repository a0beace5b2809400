"""The HTTP API as the views ask it: JSON in, JSON out, through the client."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from cloudsched.client.flow import ApiRequest
from cloudsched.errors import CloudschedError, NotFound

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from cloudsched.client.flow import FlowRunner
    from cloudsched.client.responses import ApiResponse

Json = dict[str, Any]


class Api:
    """Asks one API.

    Args:
        client: Its client, or what else sends requests to it, with the credentials of whoever looks.
    """

    def __init__(self, client: FlowRunner) -> None:
        self._client = client
        self._describe = lru_cache(maxsize=2000)(self._ask_for_words)

    def get(self, path: str, **query: str | int | None) -> Json:
        """Return what the API answers to a GET. Raises CloudschedError if it refuses."""
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
        """Return what `get` returns; None where the API has nothing at this path, or refuses to say."""
        try:
            return self.get(path, **query)
        except CloudschedError:
            return None

    def task(self, task_id: str) -> tuple[Json, str]:
        """Return a task and its ETag. Raises NotFound if there is none that the caller may see."""
        response = self._send(ApiRequest("GET", task_path(task_id)))
        return response.content, response.etag

    def describe(self, schedule: Mapping[str, Any]) -> str:
        """Return a schedule in words, as the API words it. The answer is remembered: it depends on nothing else."""
        return self._describe(json.dumps(schedule, sort_keys=True))

    def _ask_for_words(self, schedule: str) -> str:
        body = {"schedule": json.loads(schedule), "count": 1}
        answer = self._send(ApiRequest("POST", "/v1/schedules/preview", body, is_idempotent=True)).content
        return str(answer.get("description", ""))

    def _send(self, request: ApiRequest) -> ApiResponse:
        def flow() -> Generator[ApiRequest, ApiResponse, ApiResponse]:
            return (yield request)

        return self._client.run_flow(flow())


def task_path(task_id: str) -> str:
    """Return a task's path in the API. Raises NotFound for what no id can be."""
    if task_id in {"", ".", ".."}:
        raise NotFound("task", task_id)
    return f"/v1/tasks/{quote(task_id, safe='')}"
