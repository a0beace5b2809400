"""The dashboard as a WSGI application. It checks a request, asks the API for the caller, and renders the view.

A view may be a download, too: a list as the API's JSON or as CSV (RFC 4180), or the payload and the result of a run.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import mimetypes
import re
import uuid
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote
from wsgiref.types import StartResponse, WSGIEnvironment

from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context
from jinja2.ext import Extension
from pydantic.alias_generators import to_camel
from werkzeug.exceptions import HTTPException, MethodNotAllowed
from werkzeug.wrappers import Request, Response

from cloudsched.dashboard import home_view
from cloudsched.dashboard.execution_view import find_payload
from cloudsched.dashboard.forms import Done, describe_problem, read_json
from cloudsched.dashboard.guard import LOCAL_HOSTS, find_refusal, protect
from cloudsched.dashboard.routes import DONE, MAP, TABS, UNDONE_BY, VIEWS, View
from cloudsched.dashboard.status import Status, show_status
from cloudsched.dashboard.times import Moment, find_zone, parse_instant, write_took
from cloudsched.dashboard.visit import UTC_ZONE, Api, Json, Visit, task_path, write_count
from cloudsched.domain.documents.verbs import Verb
from cloudsched.domain.own_logger import own_logger
from cloudsched.errors import CloudschedError, Forbidden, InvalidInput, NotFound

if TYPE_CHECKING:
    from jinja2.runtime import Context

    from cloudsched.client.flow import FlowRunner
    from cloudsched.dashboard.home_view import LocalClock


_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "tasks": (
        *("id", "title", "owner", "handler", "status", "labels", "nextExecutionTime", "runCount"),
        *("consecutiveFailures", "failingSince", "lastExecutionId"),
    ),
    "executions": (
        *("taskId", "id", "title", "owner", "handler", "status", "scheduledFor", "startedAt", "finishedAt"),
        *("trigger", "message", "covers.until", "covers.count", "error.type", "error.message", "calledBy.taskId"),
    ),
}
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet takes a text that begins like this for a formula (owasp.org/www-community/attacks/CSV_Injection)."""


def write_file(answer: Json, name: str, kind: str) -> Response:
    """Return the tasks or executions of an answer of the API as a file to download."""
    items = "tasks" if "tasks" in answer else "executions"
    if kind == "json":
        text, mimetype = json.dumps({items: answer[items]}, ensure_ascii=False, indent=1), "application/json"
    else:
        text, mimetype = _write_table(answer[items], _COLUMNS[items]), "text/csv"
    headers = {"Content-Disposition": f'attachment; filename="{name}.{kind}"', "Cache-Control": "no-store"}
    return Response(text, mimetype=mimetype, headers=headers)


def _write_table(rows: Iterable[Json], columns: tuple[str, ...]) -> str:
    written = io.StringIO()
    table = csv.writer(written)
    table.writerow(columns)
    table.writerows([_write_cell(row, column) for column in columns] for row in rows)
    return written.getvalue()


def _write_cell(row: Json, column: str) -> str:
    found: object = row
    for name in column.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    text = "" if found is None else " ".join(map(str, found)) if isinstance(found, list) else str(found)
    return f"'{text}" if text.startswith(_FORMULA) else text


def send_result(api: Api, task_id: str, execution_id: str) -> Response:
    """Return the complete result of an execution. Raises NotFound if there is none."""
    record = api.get(f"{task_path(task_id)}/executions/{quote(execution_id, safe='')}")
    return _send(record.get("content"), "result", execution_id)


def send_payload(api: Api, task_id: str, execution_id: str) -> Response:
    """Return the complete payload of an execution. Raises NotFound if it is not known."""
    record = api.get(f"{task_path(task_id)}/executions/{quote(execution_id, safe='')}")
    task, _ = api.task(task_id)
    history = api.find(f"{task_path(task_id)}/history")
    return _send(find_payload(record, task, history)[0], "payload", execution_id)


FILES: Final[dict[str, Callable[..., Response]]] = {"result": send_result, "payload": send_payload}
"""The files by the names of their addresses."""


def _send(content: object, what: str, execution_id: str) -> Response:
    if content is None:
        raise NotFound(what, execution_id)
    name = f"{what}-{''.join(letter if letter.isalnum() else '-' for letter in execution_id)}.json"
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    response = Response(text, content_type="application/json; charset=utf-8")
    response.headers["Cache-Control"] = "no-store"
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


log = own_logger(__name__)

LOCAL_INTERVAL, CLOUD_INTERVAL = 2, 10
"""The seconds between a page's requests for news."""
_ZONE_COOKIE: Final = "cloudsched-zone"
_SEVERAL: Final = frozenset({"ids", "pick"})
"""The parameters of an address that may occur several times. Their values are words."""
_LOOK_ONLY: Final = Forbidden("Your key may not change tasks.")
_FINAL: Final = frozenset({400, 403, 404, 409, 412})
"""The statuses after which it would not help to send the same form again."""
_FOLDER: Final = Path(__file__).parent / "static"


class Dashboard:
    """Serves the pages of one API. Only a local stack has a clock. With no `hosts`, a proxy checks them."""

    def __init__(
        self,
        client: FlowRunner,
        *,
        place: str,
        clock: LocalClock | None = None,
        hosts: frozenset[str] | None = LOCAL_HOSTS,
        has_sign_in: bool = False,
    ) -> None:
        self._api = Api(client)
        self._place = place
        self._clock = clock
        self._hosts = hosts
        self._has_sign_in = has_sign_in

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Serve a request."""
        request = Request(environ)
        return protect(self.respond(request))(environ, start_response)

    def respond(self, request: Request) -> Response:  # noqa: PLR0911 - each refusal is one
        """Return the response to a request."""
        refusal = find_refusal(request, self._hosts, has_sign_in=self._has_sign_in)
        if refusal is not None:
            return Response(refusal, status=403, mimetype="text/plain")
        entrance = find_entrance(request)
        if entrance is not None:
            return entrance
        try:
            endpoint, arguments = MAP.bind_to_environ(request.environ).match()
        except MethodNotAllowed:
            return Response("Only forms may be sent here.", status=405, mimetype="text/plain")
        except HTTPException:
            return self._show_problem(request, 404, "There is no such page.", "The address may be mistyped.")
        try:
            return self._answer(request, endpoint, arguments)
        except CloudschedError as error:
            return self._show_problem(request, *describe_problem(error), again=_read_texts(request))
        except Exception:
            log.exception("a view failed", extra={"action": "view_failed"})
            return self._show_problem(
                request, 500, "This view has failed; the others work.", "Reload it. The log has the error."
            )

    def _answer(  # noqa: PLR0911 - one answer for each kind
        self, request: Request, endpoint: str, arguments: Mapping[str, Any]
    ) -> Response:
        match endpoint:
            case "static":
                return serve_file(arguments["name"], request)
            case "changes":
                return self._report_changes(request)
            case "export":
                return self._export(request, **arguments)
            case "verb":
                return self._act(request, **arguments)
            case "home" if request.method == "POST":
                return self._move_clock(request)
            case _ if endpoint in FILES:
                return FILES[endpoint](self._api, **arguments)
        view = VIEWS[endpoint]
        return (self._send if request.method == "POST" else self._show)(request, view, arguments)

    def _report_changes(self, request: Request) -> Response:
        try:  # the script names the address below the page's root: behind a proxy, only browsers know its whole path
            path = request.args.get("at", "").removeprefix(request.root_path).lstrip("/")
            endpoint, arguments = MAP.bind("").match(f"/{path}", method="GET")
        except HTTPException:
            endpoint, arguments = "", {}
        is_open = endpoint == "execution" and bool(request.args.get("open"))
        cursor = find_cursor(self._api, **arguments) if is_open else find_cursor(self._api)
        visit = self._look(request)
        now = visit.moment(visit.now)
        mode = "" if self._clock is None else self._clock.mode
        news = {"cursor": cursor, "iso": now.iso, "clock": now.text, "mode": mode}
        return Response(json.dumps(news), mimetype="application/json", headers={"Cache-Control": "no-store"})

    def _show(
        self, request: Request, view: View, arguments: Mapping[str, Any], *, status: int = 200, refusal: str = ""
    ) -> Response:
        visit = self._look(request)
        if view.is_form and not visit.may_change:
            raise _LOOK_ONLY
        answer = view.fetch(self._api, visit, **arguments)
        if "goTo" in answer:
            return _redirect(f"{_root(request)}{answer['goTo']}")
        return self._show_page(request, visit, view, answer, status=status, refusal=refusal)

    def _export(self, request: Request, name: str, kind: str) -> Response:
        answer = VIEWS[name].fetch(self._api, self._look(request))
        if "goTo" in answer:
            return _redirect(f"{_root(request)}{answer['goTo']}")
        return write_file(answer, name, kind)

    def _send(self, request: Request, view: View, arguments: Mapping[str, Any]) -> Response:
        """Carry out a view's form, and return a redirect, or the form again."""
        assert view.send is not None  # noqa: S101 - others take no POST
        visit = self._look(request)
        if not visit.may_change:
            raise _LOOK_ONLY
        sent = view.send(self._api, visit, _read_texts(request), **arguments)
        if isinstance(sent, Done):
            path, _, query = sent.path.partition("?")
            return _redirect(f"{_root(request)}{path}?{query}{'&' if query else ''}done={sent.said}")
        is_found = sent.status == 400 and request.form.get("verb") == "check"  # noqa: PLR2004 - what a check is for
        return self._show_page(request, visit, view, sent.answer, status=200 if is_found else sent.status)

    def _show_page(
        self, request: Request, visit: Visit, view: View, answer: Json, *, status: int, refusal: str = ""
    ) -> Response:
        zones: list[str] = []
        if task := answer.get("task"):  # its own pages begin in its zone
            visit, zones = visit.in_zone_of(task), [task.get("timezone", "UTC")]
        page = view.build(answer, visit)
        done = "" if refusal else request.args.get("done", "")
        verb = UNDONE_BY.get(done)
        undo = verb if view is VIEWS["task"] and verb and verb in page["task"].get("allowedVerbs", ()) else None
        return self._render(
            request,
            visit,
            view.template,
            status,
            page=page,
            title=page.get("title") or view.tab,
            tab=view.tab,
            is_live=view.is_live and not view.is_form,
            said=refusal or DONE.get(done, ""),
            tone="fail" if refusal else "",
            undo=undo,
            zones=visit.list_zones(*zones),
        )

    def _act(self, request: Request, task_id: str, verb: str) -> Response:
        try:
            act(self._api, task_id, verb, request.form)
        except CloudschedError as error:
            status, what, then = describe_problem(error)
            return self._show(
                request, VIEWS["task"], {"task_id": task_id}, status=status, refusal=f"{what} {then}".strip()
            )
        if verb == "delete":
            return _redirect(f"{_root(request)}tasks?done=delete")
        return _redirect(f"{_root(request)}tasks/{task_id}?done={verb}")

    def _move_clock(self, request: Request) -> Response:
        if self._clock is None:
            return self._show_problem(request, 404, "Only a local stack has a clock that can be moved.")
        try:
            if not self._look(request).may_move_clock:
                raise Forbidden("Only an admin may move the clock: it is the same for everybody here.")
            home_view.move_clock(self._clock, request.form)
        except CloudschedError as error:
            status, what, then = describe_problem(error)
            return self._show(request, VIEWS["home"], {}, status=status, refusal=f"{what} {then}".strip())
        return _redirect(f"{_root(request)}?done=clock")

    def _look(self, request: Request) -> Visit:
        caller = self._api.get("/v1/caller")
        chosen = find_zone(request.args.get("tz"))
        own = find_zone(request.cookies.get(_ZONE_COOKIE))
        return Visit(
            now=parse_instant(caller["now"]),
            zone=chosen or own or UTC_ZONE,
            query={
                name: " ".join(request.args.getlist(name)) if name in _SEVERAL else text
                for name, text in request.args.items()
            },
            may_change=caller["mayChange"],
            role=caller["role"],
            owner=caller.get("owner"),
            is_local=self._clock is not None,
            has_chosen_zone=chosen is not None,
            own_zone="" if own is None else own.key,
        )

    def _show_problem(
        self, request: Request, status: int, what: str, then: str = "", again: Mapping[str, str] | None = None
    ) -> Response:
        zone = find_zone(request.args.get("tz")) or find_zone(request.cookies.get(_ZONE_COOKIE)) or UTC_ZONE
        now = datetime.now(UTC) if self._clock is None else self._clock.now()
        visit = Visit(now, zone, {}, may_change=False, role="", owner=None, is_local=self._clock is not None)
        page = {"what": what, "then": then, "again": {} if status in _FINAL else again or {}}
        titles = {401: "Who are you?", 403: "Not allowed", 404: "Not found", 503: "No answer"}
        title = titles.get(status, "Not possible")
        return self._render(request, visit, "problem.html", status, page=page, title=title)

    def _render(self, request: Request, visit: Visit, template: str, status: int, **shown: object) -> Response:
        frame = {"tab": "", "is_live": True, "said": "", "tone": "", "undo": None, "zones": visit.list_zones()}
        text = TEMPLATES.get_template(template).render(
            {**frame, **shown},
            visit=visit,
            root=_root(request),
            address=_address(request),
            tabs=TABS,
            interval=LOCAL_INTERVAL if visit.is_local else CLOUD_INTERVAL,
            mode=None if self._clock is None else self._clock.mode,
            place=self._place,
            has_sign_in=self._has_sign_in,
        )
        return Response(text, status=status, mimetype="text/html", headers={"Cache-Control": "no-store"})


class _Unindent(Extension):
    """Drops the indentation of a template's lines, and the line breaks after ``{% … %}``."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        del name, filename
        return re.sub(r"\n[ \t]+", "\n", source)


@pass_context
def _show_moment(context: Context, at: Moment | str | datetime) -> Moment:
    visit: Visit = context["visit"]
    return at if isinstance(at, Moment) else visit.moment(at)


TEMPLATES: Final = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    extensions=[_Unindent],
)
"""Compiled once for all who are signed in. Each has a `Dashboard` of their own."""
TEMPLATES.filters |= {
    "moment": _show_moment,
    "look": lambda status: status if isinstance(status, Status) else show_status(status),
    "count": write_count,
    "n": "{:,}".format,
    "took": write_took,
}


def serve_file(name: str, request: Request) -> Response:
    """Return a file, or 304 if the browser has it already. 404 for a path that is not directly in the folder."""
    file = _FOLDER / name
    if "/" in name or file.parent != _FOLDER or not file.is_file():
        return Response("There is no such file.", status=404, mimetype="text/plain")
    response = Response(file.read_bytes(), mimetype=mimetypes.guess_type(name)[0] or "application/octet-stream")
    response.headers["Cache-Control"] = "no-cache"
    response.add_etag()
    return response.make_conditional(request)


def find_entrance(request: Request) -> Response | None:
    """Return a redirect from the mount's path to its root, ``/ops`` to ``/ops/``, to which addresses are relative."""
    if request.path.strip("/") or request.environ.get("PATH_INFO"):
        return None
    return Response(status=308, headers={"Location": f"{request.root_path.rpartition('/')[2]}/"})


def find_cursor(api: Api, task_id: str | None = None, execution_id: str | None = None) -> str:
    """Return a text that changes once the page should be fetched again.

    An open execution is read itself, since its progress does not change the task.
    """
    if task_id is None or execution_id is None:
        return str(api.get("/v1/changes")["cursor"])
    record = api.get(f"{task_path(task_id)}/executions/{quote(execution_id, safe='')}")
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()[:16]


def _root(request: Request) -> str:
    """Return the relative path from this address to the mount, so that the dashboard can be mounted anywhere."""
    depth = request.path.strip("/").count("/")
    return "../" * depth or "./"


def _read_texts(request: Request) -> dict[str, str]:
    """Return the values of a form by field. Several values of one field become lines."""
    return {name: "\n".join(request.form.getlist(name)).replace("\r\n", "\n") for name in request.form}


def _address(request: Request) -> str:
    """Return the address of the page that is shown, not the one to which a refused form was sent."""
    path = request.path.strip("/").partition("/verbs/")[0]
    return "" if request.method == "GET" else f"{_root(request)}{path}"


def _redirect(location: str) -> Response:
    return Response(status=303, headers={"Location": location})


def act(api: Api, task_id: str, word: str, form: Mapping[str, str]) -> None:
    """Do a verb with one task. Raises NotFound if pages have no such verb."""
    known = {each.word: each for each in Verb if each.traits.done and each is not Verb.EDIT}
    if (verb := known.get(word)) is None:
        raise NotFound("verb", word)
    path, etag, traits = task_path(task_id), form.get("etag", ""), verb.traits
    if verb is Verb.DELETE:
        api.delete(path)
        return
    event = quote(form.get("event", ""), safe="")
    body = {} if traits.button is None else traits.button.body
    fields = {} if traits.body is None else traits.body.model_fields
    typed = {name: _READERS.get(name, str)(form[name]) for name in map(to_camel, fields) if form.get(name)}
    headers = {} if etag else {"Idempotency-Key": str(uuid.uuid4())}  # a state names the request, too
    api.post(path + verb.path.format(event=event), body | typed if fields else None, etag=etag, headers=headers)


def _read_step(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 6):  # noqa: PLR2004 - no number of a step is longer
        raise InvalidInput("fromStep", "is not the number of a step", "Choose a step of the execution.")
    return int(text)


_READERS: Final[Mapping[str, Callable[[str], object]]] = {"fromStep": _read_step, "payload": read_json}
"""How the fields of forms are read that are not texts."""
