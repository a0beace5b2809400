"""The pages that people open by a link: small, without scripts or other files, in light and in dark."""

from __future__ import annotations

from html import escape
from typing import Final

from werkzeug.wrappers import Response

_STYLE: Final = (
    ":root { color-scheme: light dark }"
    "body { font: 16px/1.5 system-ui, sans-serif; max-width: 32rem; margin: 4rem auto; padding: 0 1rem }"
    "h1, p { overflow-wrap: anywhere; white-space: pre-wrap }"
    "button, textarea { font: inherit }"
    "textarea { box-sizing: border-box; display: block; width: 100%; margin-block: 0.25rem 1rem }"
    "button { padding: 0.5rem 1.25rem; margin-inline-end: 0.75rem }"
)


def render_page(title: str, *paragraphs: str, form: str = "", status: int = 200) -> Response:
    """Return a page with a heading and paragraphs, which it escapes, and a form, whose content is HTML."""
    text = "".join(f'<p dir="auto">{escape(each)}</p>' for each in paragraphs if each)
    shown = f'<form method="post">{form}</form>' if form else ""
    html = (
        '<!doctype html><html lang="en">'
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style>"
        f'<main><h1 dir="auto">{escape(title)}</h1>{text}{shown}</main></html>'
    )

    headers = {
        "Content-Type": "text/html; charset=utf-8",
        "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'",
        "Cache-Control": "no-store",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "X-Robots-Tag": "noindex",
    }
    return Response(html, status, headers)
