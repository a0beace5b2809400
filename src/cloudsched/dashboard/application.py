"""The dashboard as a WSGI application. It checks a request, asks the API for the caller, and renders the view."""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import mimetypes
import re
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote
from wsgiref.types import StartResponse, WSGIEnvironment

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from jinja2.ext import Extension
from werkzeug.exceptions import HTTPException, MethodNotAllowed
from werkzeug.wrappers import Request, Response

from cloudsched.dashboard import home_view
from cloudsched.dashboard.downloads import FILES, write_file
from cloudsched.dashboard.forms import Done, describe_problem
from cloudsched.dashboard.guard import LOCAL_HOSTS, find_refusal, protect
from cloudsched.dashboard.routes import DONE, MAP, NEW_FORM, TABS, UNDONE_BY, VIEWS, View
from cloudsched.dashboard.times import Moment, find_zone, make_moment, parse_instant, write_duration
from cloudsched.dashboard.visit import UTC_ZONE, Api, Visit, task_path
from cloudsched.domain.transitions.allowed_verbs import Verb
from cloudsched.errors import CloudschedError, Forbidden, InvalidInput, NotFound

if TYPE_CHECKING:
    from cloudsched.client.flow import FlowRunner
    from cloudsched.dashboard.home_view import LocalClock
    from cloudsched.dashboard.task_view import TaskPage


class _Unindent(Extension):
    """Drops the indentation of a template's lines, and the line breaks after ``{% … %}``."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        """Return the template's source without its indentation."""
        del name, filename
        return re.sub(r"\n[ \t]+", "\n", source)


TEMPLATES: Final = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    extensions=[_Unindent],
)
"""Compiled once for all who are signed in. Each has a `Dashboard` of their own."""


_FOLDER: Final = Path(__file__).parent / "static"


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


LOCAL_INTERVAL, CLOUD_INTERVAL = 2, 10
"""The seconds between a page's requests for news."""
MOST_OFF: Final = timedelta(seconds=5)
"""The largest deviation of this machine's clock that is not reported."""


@dataclass(frozen=True, slots=True)
class Place:
    """The place where pages are served."""

    name: str
    """The name of the place in the footer."""
    clock_mode: str | None = None
    """The state of the local stack's clock, in a word. None beside a deployment, where no clock can be moved."""
    has_sign_in: bool = False
    """True if people sign in here, and so can sign out."""
    now: datetime | None = None
    """The time of this machine's clock."""


@dataclass(frozen=True, slots=True)
class Undo:
    """A button that takes back the last action, unless somebody has changed the task since."""

    path: str
    etag: str


@dataclass(frozen=True, slots=True)
class Shell:
    """The view model of the frame around a view."""

    views: list[dict[str, Any]]
    now: Moment
    clock: str
    mode: str
    every: int
    live: str
    zone: str
    place: str
    said: str
    said_tone: str
    skew: str
    """The deviation of this machine's clock, if it is large. Times are those of the API's clock."""
    undo: Undo | None
    signed_in: str
    """The role of the signed-in person, in words. Empty where nobody signs in."""


def make_shell(
    visit: Visit, place: Place, *, tab: str, zone: str, said: str = "", tone: str = "", is_live: bool = True
) -> Shell:
    """Return the frame around a view.

    Args:
        visit: The viewer and the time.
        place: The place.
        tab: The view in the top bar that it belongs to. Empty for none.
        zone: The time zone of the view.
        said: The message about the last action.
        tone: The colour of the message.
        is_live: True if the view changes by itself.
    """
    interval = LOCAL_INTERVAL if visit.is_local else CLOUD_INTERVAL
    every = interval if is_live else 0
    mode = place.clock_mode
    return Shell(
        views=[
            {"name": name, "path": path, "key": key, "is_current": name == tab} for name, (path, key) in TABS.items()
        ],
        now=make_moment(visit.now, visit.now, find_zone(zone) or visit.zone),
        clock="" if mode is None else f"local clock {mode}",
        mode=mode or "",
        every=every,
        live=f"Live, every {every} s",
        zone=zone,
        place=place.name,
        said=said,
        said_tone=tone,
        skew="" if visit.is_local else _write_skew(place.now, visit.now),
        undo=None,
        signed_in=f"Signed in{f' with the role {visit.role}' if visit.role else ''}" if place.has_sign_in else "",
    )


def _write_skew(here: datetime | None, there: datetime) -> str:
    """Return the deviation of this machine's clock from that of a deployment. Empty if it is small."""
    if here is None or abs(here - there) <= MOST_OFF:
        return ""
    return f"This machine's clock is {write_duration(abs(here - there))} {'ahead' if here > there else 'behind'}"


def offer_undo(shell: Shell, page: TaskPage, done: str) -> Shell:
    """Return the frame with a button that takes back the last action on the task, if the caller may."""
    verb = UNDONE_BY.get(done)
    if verb is None or verb not in page.verbs:
        return shell
    return replace(shell, undo=Undo(f"tasks/{page.id}/verbs/{verb}", page.etag))


def find_cursor(api: Api, task_id: str | None = None, execution_id: str | None = None) -> str:
    """Return a text that changes once the page should be fetched again.

    Args:
        api: The API.
        task_id: The task whose open execution the page shows. None for all other pages.
        execution_id: The execution. Its progress does not change the task, so it is read itself while it is open.
    """
    if task_id is None or execution_id is None:
        return str(api.get("/v1/changes")["cursor"])
    record = api.get(f"{task_path(task_id)}/executions/{quote(execution_id, safe='')}")
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()[:16]


log = logging.getLogger(__name__)

_ZONE_COOKIE: Final = "cloudsched-zone"
_ASSUMED_COOKIE: Final = "cloudsched-assumed"
_SEVERAL: Final = frozenset({"ids", "pick", "columns"})
"""The parameters of an address that may occur several times. Their values are words."""
_MOST_ASSUMED, _LONGEST_ASSUMED = 5, 300
"""The limits of a cookie for the assumptions about a schedule: sentences, and characters of each."""
_LOOK_ONLY: Final = Forbidden("Your key may not change tasks.")
_FINAL: Final = frozenset({400, 403, 404, 409, 412})
"""The statuses after which it would not help to send the same form again."""


class Dashboard:
    """Serves the pages of one API.

    Args:
        client: The API's client, or another sender of requests, with the viewer's credentials.
        place: The name of this place in the footer.
        clock: The local stack's clock. None beside a deployment.
        hosts: The names by which this server may be called. None for any, behind a proxy that checks them.
        has_sign_in: True if people have signed in here, and so can sign out.
    """

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

    def respond(self, request: Request) -> Response:  # noqa: C901, PLR0911, PLR0912 - one answer for each kind
        """Return the response to a request."""
        refusal = find_refusal(request, self._hosts, has_sign_in=self._has_sign_in)
        if refusal is not None:
            return Response(refusal, status=403, mimetype="text/plain")
        entrance = find_entrance(request)
        if entrance is not None:
            return entrance
        try:
            endpoint, arguments = MAP.bind_to_environ(request.environ).match()
        except HTTPException as error:
            if isinstance(error, MethodNotAllowed):
                return Response("Only forms may be sent here.", status=405, mimetype="text/plain")
            return self._show_problem(request, 404, "There is no such page.", "The address may be mistyped.")
        if endpoint == "static":
            return serve_file(arguments["name"], request)
        try:
            if endpoint == "home" and request.method == "POST":
                return self._move_clock(request)
            if request.method == "POST" and endpoint in VIEWS and VIEWS[endpoint].send is not None:
                return self._send(request, VIEWS[endpoint], arguments)
            if request.method == "POST" and endpoint != "verb":
                return Response("Only forms may be sent here.", status=405, mimetype="text/plain")
            if endpoint == "changes":
                return self._tell_changes(request)
            if endpoint == "export":
                return self._export(request, **arguments)
            if endpoint == "verb":
                return self._act(request, **arguments)
            if endpoint in FILES:
                return FILES[endpoint](self._api, **arguments)
            return self._show(request, VIEWS[endpoint], arguments)
        except CloudschedError as error:
            if isinstance(error, NotFound) and endpoint == "task" and arguments == NEW_FORM:
                return _redirect(f"{_root(request)}new?{request.query_string.decode('latin-1')}".removesuffix("?"))
            return self._show_problem(request, *describe_problem(error), again=_read_texts(request))
        except Exception:
            log.exception("a view failed", extra={"action": "view_failed"})
            return self._show_problem(
                request, 500, "This view has failed; the others work.", "Reload it. The log has the error."
            )

    def _tell_changes(self, request: Request) -> Response:
        shown = MAP.bind("", script_name=request.root_path or "/")
        try:
            path = request.args.get("at", "")
            endpoint, arguments = shown.match(path.removeprefix(request.root_path), method="GET")
        except HTTPException:
            endpoint, arguments = "", {}
        is_open = endpoint == "execution" and bool(request.args.get("open"))
        cursor = find_cursor(self._api, **arguments) if is_open else find_cursor(self._api)
        visit = self._look(request)
        now = visit.sure(visit.now)
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
        page = view.build(answer, visit)
        return self._show_page(request, visit, view, page, status=status, refusal=refusal)

    def _export(self, request: Request, name: str, kind: str) -> Response:
        answer = VIEWS[name].fetch(self._api, self._look(request))
        if "goTo" in answer:
            return _redirect(f"{_root(request)}{answer['goTo']}")
        return write_file(answer, name, kind)

    def _send(self, request: Request, view: View, arguments: Mapping[str, Any]) -> Response:
        """Carry out a view's form, and return a redirect, or the form again."""
        assert view.send is not None  # noqa: S101 - the caller has looked
        visit = self._look(request)
        if not visit.may_change:
            raise _LOOK_ONLY
        sent = view.send(self._api, visit, _read_texts(request), **arguments)
        if isinstance(sent, Done):
            path, _, query = sent.path.partition("?")
            response = _redirect(f"{_root(request)}{path}?{query}{'&' if query else ''}done={sent.said}")
            _keep_assumed(request, response, path, sent.assumed)
            return response
        is_found = sent.status == 400 and request.form.get("verb") == "check"  # noqa: PLR2004 - what a check is for
        return self._show_page(
            request, visit, view, view.build(sent.answer, visit), status=200 if is_found else sent.status
        )

    def _show_page(
        self,
        request: Request,
        visit: Visit,
        view: View,
        page: Any,  # noqa: ANN401 - any view model
        *,
        status: int,
        refusal: str = "",
    ) -> Response:
        said = refusal or " ".join([DONE.get(request.args.get("done", ""), ""), *_read_assumed(request)]).strip()
        chosen = next(zone.name for zone in page.zones if zone.is_chosen)
        tone = "fail" if refusal else ""
        place = self._find_place()
        shell = make_shell(
            visit, place, tab=view.tab, zone=chosen, said=said, tone=tone, is_live=view.is_live and not view.is_form
        )
        if view is VIEWS["task"] and not refusal:
            shell = offer_undo(shell, page, request.args.get("done", ""))
        return self._render(request, view.template, shell, view.title(page), page, status)

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
        zone = chosen or own or UTC_ZONE
        return Visit(
            now=parse_instant(caller["now"]),
            zone=zone,
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

    def _find_place(self) -> Place:
        return Place(
            self._place, None if self._clock is None else self._clock.mode, self._has_sign_in, datetime.now(UTC)
        )

    def _show_problem(
        self, request: Request, status: int, what: str, then: str = "", again: Mapping[str, str] | None = None
    ) -> Response:
        zone = find_zone(request.args.get("tz")) or find_zone(request.cookies.get(_ZONE_COOKIE)) or UTC_ZONE
        now = datetime.now(UTC) if self._clock is None else self._clock.now()
        visit = Visit(now, zone, {}, may_change=False, role="", owner=None, is_local=self._clock is not None)
        shell = make_shell(visit, self._find_place(), tab="", zone=zone.key)
        page = {"what": what, "then": then, "tone": "fail", "again": {} if status in _FINAL else again or {}}
        titles = {401: "Who are you?", 403: "Not allowed", 404: "Not found", 503: "No answer"}
        return self._render(request, "problem.html", shell, titles.get(status, "Not possible"), page, status)

    def _render(self, request: Request, template: str, shell: Shell, title: str, page: object, status: int) -> Response:
        text = TEMPLATES.get_template(template).render(
            page=page,
            shell=shell,
            title=title,
            root=_root(request),
            address=_address(request),
        )
        return Response(text, status=status, mimetype="text/html", headers={"Cache-Control": "no-store"})


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


def _keep_assumed(request: Request, response: Response, path: str, assumed: tuple[str, ...]) -> None:
    """Let the next page show the assumptions about a schedule, for a minute.

    A cookie has them, since anybody can make a link.
    """
    kept = [path, *(each[:_LONGEST_ASSUMED] for each in assumed[:_MOST_ASSUMED])]
    text = base64.urlsafe_b64encode(json.dumps(kept, ensure_ascii=False).encode()).decode()
    response.set_cookie(
        _ASSUMED_COOKIE,
        text if assumed else "",
        max_age=60 if assumed else 0,
        path=f"{request.root_path}/",
        secure=request.is_secure,
        httponly=True,
        samesite="Strict",
    )


def _read_assumed(request: Request) -> list[str]:
    """Return the assumptions about the schedule that was just saved, if this is the page of its task."""
    if request.args.get("done") not in {"create", "edit"}:
        return []
    try:
        path, *assumed = json.loads(base64.urlsafe_b64decode(request.cookies.get(_ASSUMED_COOKIE, "")))
    except (ValueError, TypeError):
        return []
    return [str(each) for each in assumed] if path == request.path.strip("/") else []


_PLAIN: Final = frozenset({Verb.PAUSE, Verb.RESUME, Verb.CANCEL, Verb.TRIGGER, Verb.SNOOZE})


def act(api: Api, task_id: str, verb: str, form: Mapping[str, str]) -> None:
    """Do one thing with one task.

    Raises:
        NotFound: There is no such verb or task.
        InvalidInput: The form's values do not suit the verb.
        CloudschedError: The API refuses.
    """
    path, etag = task_path(task_id), form.get("etag", "")
    key = (
        {} if etag else {"Idempotency-Key": str(uuid.uuid4())}
    )  # the state names it, so that a second click is the same
    execution = form.get("executionId")
    if verb in _PLAIN:
        api.post(f"{path}/{verb}", etag=etag, headers=key)
    elif verb == "retry":
        step = _read_step(form.get("fromStep", ""))
        api.post(f"{path}/retry", {**({"executionId": execution} if execution else {}), **step}, headers=key)
    elif verb == "send":
        only = {"executionId": execution} if execution else {}
        event = quote(form.get("event", ""), safe="")
        api.post(f"{path}/events/{event}", {"payload": _read_json(form.get("payload", "null")), **only}, headers=key)
    elif verb == "delete":
        api.delete(path)
    else:
        raise NotFound("verb", verb)


def _read_step(text: str) -> dict[str, int]:
    if not text:
        return {}
    if not (text.isascii() and text.isdigit() and len(text) <= 6):  # noqa: PLR2004 - no number of a step is longer
        raise InvalidInput("fromStep", "is not the number of a step", "Choose a step of the execution.")
    return {"fromStep": int(text)}


def _read_json(text: str) -> object:
    try:
        return json.loads(text or "null")
    except ValueError as error:
        raise InvalidInput("payload", f"is not JSON: {error}", 'Write JSON, such as {"by": "grace"}.') from error
