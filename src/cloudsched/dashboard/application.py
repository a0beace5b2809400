"""The dashboard as a WSGI application. It checks a request, asks the API for the caller, and renders the view."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Protocol

from werkzeug.exceptions import HTTPException, MethodNotAllowed
from werkzeug.wrappers import Request, Response

from cloudsched.dashboard.api import Api, execution_path
from cloudsched.dashboard.downloads import FILES, send_list
from cloudsched.dashboard.forms.fields import FormProblem, Submitted, describe_problem
from cloudsched.dashboard.guard import LOCAL_HOSTS, find_refusal, finish
from cloudsched.dashboard.offered_verbs import act
from cloudsched.dashboard.rendering import TEMPLATES, find_address, find_entrance, find_root, redirect, send_page
from cloudsched.dashboard.routes import DONE, MAP, TABS, UNDONE_BY, VIEWS
from cloudsched.dashboard.static_files import serve_file
from cloudsched.dashboard.times import find_zone, parse_instant
from cloudsched.dashboard.views.execution import hash_record
from cloudsched.dashboard.visit import UTC_ZONE, Visit, require_known, require_times
from cloudsched.domain.own_logger import own_logger
from cloudsched.errors import CloudschedError, Forbidden, InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from wsgiref.types import StartResponse, WSGIEnvironment
    from zoneinfo import ZoneInfo

    from cloudsched.client.flow import FlowRunner
    from cloudsched.dashboard.api import Json
    from cloudsched.dashboard.view import View


class LocalClock(Protocol):
    """A clock that can be frozen, resumed and moved ahead."""

    @property
    def mode(self) -> str:
        """Return whether the clock runs or is frozen, in a word."""
        ...

    def now(self) -> datetime:
        """Return the present instant, in UTC."""
        ...

    def move(self, command: dict[str, object]) -> dict[str, object]:
        """Carry out a command of ``/dev/clock``. Return the clock's state."""
        ...


_COMMANDS: Final[dict[str, dict[str, object]]] = {
    "freeze": {"freeze": True},
    "resume": {"resume": True},
    "hour": {"advance": "PT1H"},
    "day": {"advance": "P1D"},
    "week": {"advance": "P7D"},
}


def move_clock(clock: LocalClock, form: Mapping[str, str]) -> None:
    """Carry out a form's command on the clock."""
    verb = form.get("verb", "")
    if verb == "to":
        clock.move({"advanceTo": form.get("to", "")})
    elif verb in _COMMANDS:
        clock.move(_COMMANDS[verb])
    else:
        raise InvalidInput("", "A clock cannot do that.", "Choose a button of the page.")


def find_cursor(api: Api, request: Request) -> str:
    """Return a text that changes once the page that asks should be fetched again.

    An open execution is read itself, since its progress does not change the task. The page names its address below the
    root: behind a proxy, only browsers know its whole path.
    """
    path = request.args.get("at", "").removeprefix(request.root_path).lstrip("/")
    try:
        endpoint, arguments = MAP.bind("").match(f"/{path}", method="GET")
    except HTTPException:
        endpoint = ""
    if endpoint != "execution" or not request.args.get("open"):
        return str(api.get("/v1/changes")["cursor"])
    return hash_record(api.get(execution_path(**arguments)))


log: Final = own_logger(__name__)

LOCAL_INTERVAL: Final = 2
CLOUD_INTERVAL: Final = 10
"""The seconds between a page's requests for news."""
_OWN_ZONE: Final = "cloudsched-zone"
"""The cookie with the zone of the browser, which a script writes."""
_CHOSEN_ZONE: Final = "cloudsched-chosen-zone"
"""The cookie with the zone that somebody has chosen, on any page. It ends with the browser's session."""
_SEVERAL: Final = frozenset({"ids", "pick"})
"""The parameters of an address that may occur several times. Their values are words."""
_LOOK_ONLY: Final = Forbidden("Your key may not change tasks.")
_FINAL: Final = frozenset({400, 403, 404, 409, 412})
"""The statuses after which it would not help to send the same form again."""
_TITLES: Final = {401: "Who are you?", 403: "Not allowed", 404: "Not found", 503: "No answer"}


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
        return finish(request, self.respond(request))(environ, start_response)

    def respond(self, request: Request) -> Response:
        """Return the response to a request."""
        refusal = find_refusal(request, self._hosts, has_sign_in=self._has_sign_in)
        if refusal is not None:
            return Response(refusal, status=HTTPStatus.FORBIDDEN, mimetype="text/plain")
        return find_entrance(request) or self._route(request)

    def _route(self, request: Request) -> Response:
        try:
            endpoint, arguments = MAP.bind_to_environ(request.environ).match()
        except MethodNotAllowed:
            text = "Only forms may be sent here."
            return Response(text, status=HTTPStatus.METHOD_NOT_ALLOWED, mimetype="text/plain")
        except HTTPException:
            missing = FormProblem(HTTPStatus.NOT_FOUND, "There is no such page.", "The address may be mistyped.")
            return self._show_problem(request, missing)

        try:
            return self._answer(request, endpoint, arguments)
        except CloudschedError as error:
            problem = describe_problem(error)
            again = {} if problem.status in _FINAL else _read_texts(request)
            return self._show_problem(request, problem, again=again, endpoint=endpoint)
        except Exception:
            log.exception("a view failed", extra={"action": "view_failed"})
            what = "This view has failed; the others work."
            then = "Reload it. The log has the error."
            failed = FormProblem(HTTPStatus.INTERNAL_SERVER_ERROR, what, then)
            return self._show_problem(request, failed, endpoint=endpoint)

    def _answer(  # noqa: PLR0911 - one answer for each kind
        self, request: Request, endpoint: str, arguments: Mapping[str, Any]
    ) -> Response:
        match endpoint:
            case "static":
                return serve_file(arguments["name"])
            case "changes":
                return self._report_changes(request)
            case "export":
                return self._export(request, **arguments)
            case "verb":
                return self._act(request, **arguments)
            case "clock":
                return self._move_clock(request)
            case "result" | "payload":
                return FILES[endpoint](self._api, **arguments)
        view = VIEWS[endpoint]
        require_known(request.args, view.parameters)
        if request.method == "POST":
            return self._send(request, view, arguments)
        return self._show(request, view, arguments)

    def _report_changes(self, request: Request) -> Response:
        cursor = find_cursor(self._api, request)
        visit = self._look(request)
        now = visit.moment(visit.now)
        news = {"cursor": cursor, "iso": now.iso, "clock": now.text, "mode": self._clock_mode or ""}
        return Response(json.dumps(news), mimetype="application/json", headers={"Cache-Control": "no-store"})

    @property
    def _clock_mode(self) -> str | None:
        if self._clock is None:
            return None
        return self._clock.mode

    def _show(
        self, request: Request, view: View, arguments: Mapping[str, Any], refusal: FormProblem | None = None
    ) -> Response:
        visit = self._look(request)
        if view.is_form and not visit.may_change:
            raise _LOOK_ONLY
        require_times(visit.query)
        cursor = ""
        if view.is_live and not view.is_form:
            cursor = self._api.get("/v1/changes")["cursor"]  # what changes from now on is not on the page
        answer = view.fetch(self._api, visit, **arguments)
        if "goTo" in answer:
            return redirect(request, answer["goTo"])
        return self._show_page(request, visit, view, {"cursor": cursor, **answer}, refusal=refusal)

    def _export(self, request: Request, name: str) -> Response:
        view = VIEWS[name]
        assert view.list_rows is not None  # noqa: S101 - others have no such address
        require_known(request.args, {*view.parameters} - {"page"})  # a file has all pages
        visit = self._look(request)
        require_times(visit.query)
        return send_list(self._api, visit, name, *view.list_rows(visit))

    def _send(self, request: Request, view: View, arguments: Mapping[str, Any]) -> Response:
        """Carry out a view's form, and return a redirect, or the form again."""
        assert view.send is not None  # noqa: S101 - others take no POST
        visit = self._look(request)
        if not visit.may_change:
            raise _LOOK_ONLY
        sent = view.send(self._api, visit, _read_texts(request), **arguments)
        if isinstance(sent, Submitted):
            return redirect(request, sent.address)
        status = sent.status
        if status == HTTPStatus.BAD_REQUEST and request.form.get("verb") == "check":
            status = HTTPStatus.OK  # a check is there to find that
        return self._show_page(request, visit, view, sent.answer, status=status)

    def _show_page(
        self,
        request: Request,
        visit: Visit,
        view: View,
        answer: Json,
        *,
        status: int = HTTPStatus.OK,
        refusal: FormProblem | None = None,
    ) -> Response:
        zones: list[str] = []
        if task := answer.get("task"):  # its own pages begin in its zone
            visit = visit.in_zone_of(task)
            zones.append(task.get("timezone", "UTC"))
        page = view.build(answer if view.is_form else visit.translate(answer), visit)
        shown: dict[str, object] = {
            "page": page,
            "title": page.get("title") or view.tab,
            "tab": view.tab,
            "is_live": view.is_live and not view.is_form,
            "cursor": answer.get("cursor", ""),
            "zones": visit.list_zones(*zones),
        }
        if refusal is not None:
            return self._render(request, visit, view.template, refusal.status, **shown, said=str(refusal), tone="fail")

        done = request.args.get("done", "")
        undo = UNDONE_BY.get(done)
        if view is not VIEWS["task"] or undo not in page["task"].get("allowedVerbs", ()):
            undo = None
        return self._render(request, visit, view.template, status, **shown, said=DONE.get(done, ""), undo=undo)

    def _act(self, request: Request, task_id: str, verb: str) -> Response:
        try:
            done = act(self._api, task_id, verb, request.form)
        except CloudschedError as error:
            return self._show(request, VIEWS["task"], {"task_id": task_id}, describe_problem(error))
        path = "tasks" if verb == "delete" else f"tasks/{task_id}"
        return redirect(request, Submitted(path, done).address)

    def _move_clock(self, request: Request) -> Response:
        if self._clock is None:
            missing = "Only a local stack has a clock that can be moved."
            return self._show_problem(request, FormProblem(HTTPStatus.NOT_FOUND, missing, ""))
        try:
            if not self._look(request).may_move_clock:
                raise Forbidden("Only an admin may move the clock: it is the same for everybody here.")
            move_clock(self._clock, request.form)
        except CloudschedError as error:
            return self._show(request, VIEWS["home"], {}, describe_problem(error))
        return redirect(request, Submitted("", "clock").address)

    def _look(self, request: Request) -> Visit:
        caller = self._api.get("/v1/caller")
        chosen = _find_chosen_zone(request)
        own = find_zone(request.cookies.get(_OWN_ZONE))
        query = {**request.args}
        for name in _SEVERAL & query.keys():
            query[name] = " ".join(request.args.getlist(name))
        return Visit(
            now=parse_instant(caller["now"]),
            zone=chosen or own or UTC_ZONE,
            query=query,
            may_change=caller["mayChange"],
            role=caller["role"],
            owner=caller.get("owner"),
            is_local=self._clock is not None,
            has_chosen_zone=chosen is not None,
            own_zone="" if own is None else own.key,
        )

    def _look_anyway(self, request: Request, *, is_answering: bool) -> Visit:
        """Return the look at the page of a problem: with the API's clock, or this machine's if that does not answer."""
        if is_answering:
            with suppress(CloudschedError):
                return replace(self._look(request), query={})
        zone = _find_chosen_zone(request) or find_zone(request.cookies.get(_OWN_ZONE)) or UTC_ZONE
        now = datetime.now(UTC) if self._clock is None else self._clock.now()
        return Visit(now, zone, {}, may_change=False, role="", owner=None, is_local=self._clock is not None)

    def _show_problem(
        self,
        request: Request,
        problem: FormProblem,
        again: Mapping[str, str] | None = None,
        endpoint: str = "",
    ) -> Response:
        """Return the page of a problem, with the way back to the list that the page belongs to.

        If it may pass, it offers to send the same form again.
        """
        visit = self._look_anyway(request, is_answering=problem.status < HTTPStatus.INTERNAL_SERVER_ERROR)
        back = _find_way_back("home" if problem.status == HTTPStatus.FORBIDDEN else endpoint)
        page = {"what": problem.what, "then": problem.then, "again": again or {}, "back": back}
        title = _TITLES.get(problem.status, "Not possible")
        return self._render(request, visit, "problem.html", problem.status, page=page, title=title)

    def _render(self, request: Request, visit: Visit, template: str, status: int, **shown: object) -> Response:
        frame = {
            "tab": "",
            "is_live": True,
            "cursor": "",
            "said": "",
            "tone": "",
            "undo": None,
            "zones": visit.list_zones(),
        }
        text = TEMPLATES.get_template(template).render(
            {**frame, **shown},
            visit=visit,
            root=find_root(request),
            address=find_address(request),
            tabs=TABS,
            interval=LOCAL_INTERVAL if visit.is_local else CLOUD_INTERVAL,
            mode=self._clock_mode,
            place=self._place,
            has_sign_in=self._has_sign_in,
        )
        response = send_page(text, status)
        _remember_zone(request, response)
        return response


def _find_way_back(endpoint: str) -> tuple[str, str]:
    """Return the path of the list that a page belongs to, and the words of the link to it."""
    tab = VIEWS[endpoint].tab if endpoint in VIEWS else ""
    tab = tab if tab in TABS else "Tasks"
    return TABS[tab][0], f"See {tab}"


def _find_chosen_zone(request: Request) -> ZoneInfo | None:
    """Return the zone that the address names, or else the one chosen earlier in this visit."""
    return find_zone(request.args.get("tz")) or find_zone(request.cookies.get(_CHOSEN_ZONE))


def _remember_zone(request: Request, response: Response) -> None:
    """Remember the zone that the address names for the pages that follow.

    A page that only asks for its own news does not choose: another tab may have chosen since. The cookie is for all
    paths, because a proxy may have removed a part of this one.
    """
    zone = find_zone(request.args.get("tz"))
    if zone is None or request.headers.get("Sec-Fetch-Mode", "navigate") != "navigate":
        return
    response.set_cookie(_CHOSEN_ZONE, zone.key, httponly=True, samesite="Strict", secure=request.is_secure)


def _read_texts(request: Request) -> dict[str, str]:
    """Return the values of a form by field. Several values of one field become lines."""
    return {name: "\n".join(request.form.getlist(name)).replace("\r\n", "\n") for name in request.form}
