"""Behind nginx, Apache and Caddy, which compress answers and remove a prefix: edits apply, and people sign in."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import requests
from tests.doc_blocks import read_blocks
from tests.harness import ROOT, WAIT_SECONDS, free_port, wait_until
from werkzeug.middleware.dispatcher import DispatcherMiddleware
from werkzeug.wrappers import Response

import cloudsched
from cloudsched import App, Settings
from cloudsched.config.access import Access
from cloudsched.local.wsgi_server import WebServer
from cloudsched.web.auth.authentication import create_key
from cloudsched.web.auth.roles import Role

KEY, KEPT = create_key("boss", Role.ADMIN)
(SHOWN,) = (each.text for each in read_blocks(ROOT / "docs/run/serve.md") if each.language == "nginx")
"""The lines that the page shows."""
NGINX = """
daemon off; master_process off; pid {folder}/pid; error_log {folder}/log;
events {{ }}
http {{
    access_log off; client_body_temp_path {folder}; proxy_temp_path {folder};
    fastcgi_temp_path {folder}; uwsgi_temp_path {folder}; scgi_temp_path {folder};
    gzip on; gzip_types application/json; gzip_min_length 1; gzip_proxied any;
    server {{
        listen 127.0.0.1:{port};
        {location}
    }}
}}
"""
APACHE = """
ServerName localhost
Listen 127.0.0.1:{port}
PidFile {folder}/pid
ErrorLog {folder}/log
DefaultRuntimeDir {folder}
User www-data
Group www-data
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule filter_module /usr/lib/apache2/modules/mod_filter.so
LoadModule deflate_module /usr/lib/apache2/modules/mod_deflate.so
LoadModule proxy_module /usr/lib/apache2/modules/mod_proxy.so
LoadModule proxy_http_module /usr/lib/apache2/modules/mod_proxy_http.so
AddOutputFilterByType DEFLATE application/json
ProxyPreserveHost On
ProxyPass /jobs/ http://{address}/scheduler/
"""
CADDY = """
{{
    admin off
    auto_https off
}}
http://127.0.0.1:{port} {{
    encode {{
        gzip
        minimum_length 1
    }}
    handle_path /jobs/* {{
        rewrite * /scheduler{{uri}}
        reverse_proxy {address}
    }}
}}
"""
PROXIES = {
    "nginx": (NGINX, ["nginx", "-p", "{folder}", "-e", "stderr", "-c"]),
    "apache2": (APACHE, ["apache2", "-DFOREGROUND", "-f"]),
    "caddy": (CADDY, ["caddy", "run", "--adapter", "caddyfile", "--config"]),
}


@pytest.fixture(params=PROXIES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An app with its page at ``/scheduler/``, reached through a proxy as ``/jobs/``."""
    text, command = PROXIES[request.param]
    if shutil.which(command[0]) is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"There is no {command[0]}. Install Debian's package.")
    app = App(Settings())

    @app.handler("note", access="users")
    def note() -> None: ...

    settings = Settings(access=Access(api_keys=(str(KEPT),)))
    with ExitStack() as parts:
        embedding = cloudsched.embedded(app, tmp_path / "data", settings=settings, page=True)
        embedding.start()
        parts.callback(embedding.stop)
        server = parts.enter_context(WebServer(DispatcherMiddleware(Response(status=418), {"/scheduler": embedding})))
        server.serve()
        app.create(id="of-ada", owner="ada", title="Note", handler="note", schedule="in 3 days")
        port = free_port()
        location = SHOWN.replace("127.0.0.1:8080/", f"{server.address}/scheduler/")
        names = {"port": port, "address": server.address, "folder": tmp_path, "location": location}
        (file := tmp_path / "conf").write_text(text.format(**names))
        proxy = subprocess.Popen(  # noqa: S603 - one of ours
            [*(each.format(folder=tmp_path) for each in command), str(file)],
            env={**os.environ, "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        parts.callback(proxy.wait, WAIT_SECONDS)
        parts.callback(proxy.terminate)
        found = f"http://127.0.0.1:{port}/jobs/"
        wait_until(lambda: _answers(found), f"{command[0]} answers")
        yield found


def _answers(url: str) -> bool:
    try:
        return requests.get(url, timeout=WAIT_SECONDS).status_code == 401
    except requests.ConnectionError:
        return False


def test_the_tag_of_an_answer_names_its_state(url: str) -> None:
    """Whatever the proxy has made of it: an edit applies once, and what is known is not sent again."""
    with requests.Session() as session:
        session.headers = {"X-Api-Key": KEY, "Accept-Encoding": "gzip"}
        path = f"{url}v1/tasks/of-ada"
        seen = session.get(path, timeout=WAIT_SECONDS)
        assert seen.headers["Content-Encoding"] == "gzip"
        given = {"If-Match": seen.headers["ETag"]}
        assert session.get(path, headers={"If-None-Match": given["If-Match"]}, timeout=WAIT_SECONDS).status_code == 304
        edits = [session.patch(path, json={"title": each}, headers=given, timeout=WAIT_SECONDS) for each in ("1", "2")]
        assert [each.status_code for each in edits] == [200, 412]


def test_a_key_opens_the_page(url: str) -> None:
    """It stays signed in on every page, a form leads back, and the cookie goes nowhere else."""
    origin = {"Origin": url.removesuffix("/jobs/")}
    with requests.Session() as session:
        home = session.post(f"{url}sign-in", {"key": KEY}, headers=origin, timeout=WAIT_SECONDS)
        assert (home.status_code, home.url) == (200, url)
        assert "of-ada" in session.get(f"{url}tasks", timeout=WAIT_SECONDS).text
        paused = session.post(f"{url}tasks/of-ada/verbs/pause", headers=origin, timeout=WAIT_SECONDS)
        assert (paused.status_code, paused.url) == (200, f"{url}tasks/of-ada?done=pause#said")
        assert [each.path for each in session.cookies] == ["/jobs"]
