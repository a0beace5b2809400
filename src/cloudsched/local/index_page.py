"""The page at ``/`` of the local stack: where everything is."""

from __future__ import annotations

from html import escape

from werkzeug.wrappers import Request, Response

_LINKS = (
    ("/ui/", "the dashboard: what is, what was and what will be"),
    ("/docs", "the API, to read"),
    ("/openapi.json", "the API, for programs"),
    ("/v1/tasks", "the tasks"),
    ("/dev/outbox", "what deliveries send, or would send"),
    ("/dev/clock", "the clock; POST moves it"),
)


def render_index(request: Request) -> Response:
    """Return the links, as HTML for browsers and as text for everything else."""
    root = request.root_url.rstrip("/")
    links = [(root + path, about) for path, about in _LINKS]
    headers = {"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'", "Cache-Control": "no-store"}
    if request.accept_mimetypes.best_match(["text/plain", "text/html"]) != "text/html":
        width = max(len(url) for url, _ in links)
        text = "".join(f"{url:<{width}}  {about}\n" for url, about in links)
        return Response(f"cloudsched dev\n\n{text}", mimetype="text/plain", headers=headers)
    rows = "".join(f'<li><a href="{escape(url)}">{escape(url)}</a>: {escape(about)}</li>' for url, about in links)
    page = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>cloudsched dev</title>'
        f"<h1>cloudsched dev</h1><ul>{rows}</ul><p>The terminal shows what runs.</p></html>"
    )
    return Response(page, mimetype="text/html", headers=headers)
