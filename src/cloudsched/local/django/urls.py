"""The API and the page of a Django project: ``include("cloudsched.local.django.urls")``.

Neither is below the project's own checks of forms and logins: callers of the API have credentials of their
own, and the page takes forms only from itself, and asks who looks.
"""

from __future__ import annotations

import io
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from django.contrib.auth.decorators import login_not_required
from django.http import HttpResponse, StreamingHttpResponse
from django.urls import re_path
from django.views.decorators.csrf import csrf_exempt
from werkzeug.test import run_wsgi_app

from cloudsched.local.django.apps import find_embedding
from cloudsched.local.embedded_page import EmbeddedPage
from cloudsched.local.visitor import FRAMEWORK_REQUEST

if TYPE_CHECKING:
    from wsgiref.types import WSGIEnvironment

    from django.http.response import HttpResponseBase


@csrf_exempt  # type: ignore[untyped-decorator]  # Django has no types
@login_not_required  # type: ignore[untyped-decorator]
def serve(request: Any, path: str) -> HttpResponseBase:  # noqa: ANN401 - Django's
    """Serve a request to the API, or for the page. Redirect anonymous users to the project's login.

    A download has no length, and is sent part by part. Django's ASGI servers would wait for all of it in any case.
    """
    is_asynchronous = hasattr(request, "scope")
    chunks, status, headers = run_wsgi_app(find_embedding(), _write_environ(request, path), buffered=is_asynchronous)
    user = getattr(request, "user", None)
    is_stranger = EmbeddedPage.is_for(f"/{path}") and user is not None and not user.is_authenticated
    if is_stranger and request.method == "GET" and status.startswith(str(HTTPStatus.FORBIDDEN.value)):
        from django.contrib.auth.views import redirect_to_login  # noqa: PLC0415 - only where its models are installed

        b"".join(chunks)  # takes it to its end
        return redirect_to_login(request.get_full_path())
    code, _, reason = status.partition(" ")
    if is_asynchronous or headers.get("Content-Length") is not None:
        response: HttpResponseBase = HttpResponse(b"".join(chunks), status=int(code), reason=reason)
    else:
        response = StreamingHttpResponse(chunks, status=int(code), reason=reason)
    for name, value in headers:
        if name.lower() == "set-cookie":
            response.cookies.load(value)
        else:
            response.headers[name] = value
    return response


def _write_environ(request: Any, path: str) -> WSGIEnvironment:  # noqa: ANN401 - Django's
    """Return a request to the mount. Django's own servers have one already, its ASGI servers have none."""
    body = request.body
    mount = request.path.removesuffix(path).rstrip("/")
    given = {name: value for name, value in request.META.items() if isinstance(value, str)}
    return {
        **given,
        "SCRIPT_NAME": mount.encode().decode("latin-1"),
        "PATH_INFO": f"/{path}".encode().decode("latin-1"),
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": request.scheme,
        "wsgi.input": io.BytesIO(body),
        "wsgi.errors": request.META.get("wsgi.errors") or io.StringIO(),
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
        FRAMEWORK_REQUEST: request,
    }


urlpatterns = [re_path(r"^(?P<path>.*)$", serve)]
