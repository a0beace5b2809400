"""The pages of the app that runs in this process. They ask its API without a socket.

Nobody reaches more through them than the API would allow. Each request to the API carries the credential of
whoever looks, or it is made for somebody whom the web app has authenticated. Without either, it has the peer,
the name and the forwarding headers of the request for the page. So the API decides: an open one admits its
own machine, and any other refuses.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from cloudsched.client.local_client import LocalApi
from cloudsched.dashboard.api import Api
from cloudsched.dashboard.application import Dashboard
from cloudsched.dashboard.guard import LOCAL_HOSTS
from cloudsched.web.auth.authentication import KEY_PREFIX
from cloudsched.web.auth.roles import Caller, Role
from cloudsched.web.own_api import send

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from wsgiref.types import WSGIEnvironment

    from cloudsched.app import App
    from cloudsched.dashboard.application import LocalClock
    from cloudsched.local.visitor import Visitor

_KEPT_PAGES: Final = 200
_asked_through: ContextVar[WSGIEnvironment] = ContextVar("asked_through")


@dataclass(frozen=True, slots=True)
class PageLocation:
    """Where an app serves its pages."""

    name: str = "inside this process"
    """The place, for people."""
    mount: str = ""
    """The path of the pages below the API's own."""
    hosts: frozenset[str] | None = None
    """The host names that requests may use. None if a proxy checks them."""
    clock: LocalClock | None = None
    """A clock that they show and move."""


class Pages:
    """The pages of one app, one for each caller. Each caches the API's answers about schedules."""

    def __init__(self, app: App, place: PageLocation) -> None:
        self._app = app
        self._place = place
        self._kept: OrderedDict[object, Dashboard] = OrderedDict()
        self._lock = threading.Lock()

    def identify(self, key: str) -> tuple[str, str]:
        """Return the role and the owner that a key or a token identifies. Raises CloudschedError for none."""
        caller = Api(self._open(None, _write_credential(key))).get("/v1/caller")
        return caller["role"], caller.get("owner") or ""

    def get(self, who: Visitor | str | None) -> Dashboard:
        """Return the page for a visitor, for the holder of a key or a token, or for an anonymous caller."""
        with self._lock:
            page = self._kept.pop(who, None) or self._make(who)
            self._kept[who] = page
            if len(self._kept) > _KEPT_PAGES:
                self._kept.popitem(last=False)
            return page

    def _open(self, caller: Caller | None, credential: Mapping[str, str]) -> LocalApi:
        return LocalApi(partial(send, self._app, caller, credential=credential, find_outer=_asked_through.get))

    def _make(self, who: Visitor | str | None) -> Dashboard:
        hosts = self._place.hosts
        credential = dict[str, str]()
        caller = None
        if isinstance(who, str):
            credential = _write_credential(who)
        elif who is not None:
            caller = Caller(f"user:{who.name}", Role(who.role), who.name)
        else:
            hosts = LOCAL_HOSTS
        return Dashboard(
            self._open(caller, credential),
            place=self._place.name,
            clock=self._place.clock,
            hosts=hosts,
            has_sign_in=isinstance(who, str),
        )


@contextmanager
def ask_through(environ: WSGIEnvironment) -> Iterator[None]:
    """Answer a page request within this context. The page's requests to the API have the same origin."""
    token = _asked_through.set(environ)
    try:
        yield
    finally:
        _asked_through.reset(token)


def _write_credential(key: str) -> dict[str, str]:
    return {"HTTP_X_API_KEY": key} if key.startswith(KEY_PREFIX) else {"HTTP_AUTHORIZATION": f"Bearer {key}"}
