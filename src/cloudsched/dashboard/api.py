"""The HTTP API as the views ask it: through the client, JSON in and out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from cloudsched.client.flow import ApiRequest, FlowRunner, JsonResponse
from cloudsched.errors import CloudschedError, NotFound

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

Json = dict[str, Any]


class Api:
    """Sends requests to one API."""

    def __init__(self, client: FlowRunner) -> None:
        self._client = client

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
        method: str = "POST",
    ) -> Json:
        """Send a POST or such, with `If-Match` if there is an ETag. Raises CloudschedError if the API refuses."""
        given = dict(headers or {})
        if etag:
            given["If-Match"] = etag
        is_safe = not given.keys().isdisjoint({"If-Match", "Idempotency-Key"})
        request = ApiRequest(method, path, dict(content or {}), dict(query or {}), given, is_idempotent=is_safe)
        return self._send(request).content

    def patch(
        self, path: str, content: Mapping[str, Any], *, etag: str = "", query: Mapping[str, str] | None = None
    ) -> Json:
        """Send a JSON merge patch, with `If-Match` if there is an ETag. Raises CloudschedError if the API refuses."""
        return self.post(path, content, etag=etag, query=query, method="PATCH")

    def put(self, path: str, content: Mapping[str, Any]) -> None:
        """Put something in the place of what is there. Raises CloudschedError if the API refuses."""
        self._send(ApiRequest("PUT", path, dict(content), is_idempotent=True))

    def delete(self, path: str) -> None:
        """Delete something. Raises CloudschedError if the API refuses."""
        self._send(ApiRequest("DELETE", path))

    def find(self, path: str, **query: str | int | None) -> Json | None:
        """Return the result of `get`. None where the API has nothing at this path, or refuses to say."""
        try:
            return self.get(path, **query)
        except CloudschedError:
            return None

    def list_items(self, path: str, name: str, **query: str | int | None) -> list[Json]:
        """Return a list in the result of `find`. Empty where there is none."""
        found = self.find(path, **query) or {}
        return list(found.get(name, ()))

    def task(self, task_id: str) -> tuple[Json, str]:
        """Return a task and its ETag. Raises NotFound if there is none that the caller may see."""
        response = self._send(ApiRequest("GET", task_path(task_id)))
        return response.content, response.etag

    def find_handler(self, name: str) -> Json:
        """Return what the API says of a handler. Empty if it does not know it."""
        handlers: list[Json] = self.get("/v1/handlers")["handlers"]
        return next((each for each in handlers if each["name"] == name), {})

    def _send(self, request: ApiRequest) -> JsonResponse:
        def flow() -> Generator[ApiRequest, JsonResponse, JsonResponse]:
            return (yield request)

        return self._client.run_flow(flow())


def execution_path(task_id: str, execution_id: str) -> str:
    """Return an execution's path in the API. Raises NotFound for a text that cannot be a task's id."""
    return f"{task_path(task_id)}/executions/{quote(execution_id, safe='')}"


def task_path(task_id: str) -> str:
    """Return a task's path in the API. Raises NotFound for a text that cannot be an id."""
    if task_id in {"", ".", ".."}:
        raise NotFound("task", task_id)
    return f"/v1/tasks/{quote(task_id, safe='')}"
