"""The pages of the outbox, below ``/dev/outbox`` of the local stack.

Mails are written by people who are not trusted, and their links and codes are nobody else's. So a mail is shown in a
sandboxed frame that loads nothing and runs nothing, and only a page of this machine reads these pages: a name that
leads here (DNS rebinding), pages of other origins and what a proxy forwards are refused.
"""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING, Any, Final

from werkzeug.wrappers import Request, Response

from cloudsched.domain.local_requests import find_detour, find_foreign_name
from cloudsched.errors import CloudschedError, Forbidden, Unauthenticated
from cloudsched.web.api.cors import require_allowed_origin
from cloudsched.web.auth.authentication import authenticator_for
from cloudsched.web.auth.roles import Role

if TYPE_CHECKING:
    from email.message import EmailMessage

    from cloudsched.config.settings import Settings
    from cloudsched.local.outbox import Outbox, SentMessage

PATH: Final = "/dev/outbox"
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_PAGE_POLICY: Final = "default-src 'none'; frame-src 'self'; style-src 'unsafe-inline'; frame-ancestors 'none'"
_MAIL_POLICY: Final = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'"
_STYLE: Final = (
    "body{font:16px system-ui;margin:2rem auto;max-width:60rem;padding:0 1rem}iframe{width:100%;height:20rem;"
    "border:1px solid #999;background:#fff}pre{overflow:auto;border:1px solid #999;padding:.5rem;max-height:30rem}"
)


def is_outbox_path(path: str) -> bool:
    """Return whether a path belongs to these pages."""
    return path in {PATH, f"{PATH}.json"} or path.startswith(f"{PATH}/")


def respond_outbox(request: Request, outbox: Outbox, settings: Settings) -> Response:
    """Answer a request for one of the pages."""
    try:
        _require_own_machine(request)
        require_allowed_origin(request, ())
        _require_admin(request, settings)
    except Unauthenticated as error:
        refusal = _text(f"{error}\n", 401)
        refusal.headers["WWW-Authenticate"] = 'Basic realm="cloudsched: an admin\'s key as the password"'
        return refusal
    except CloudschedError as error:
        return _text(f"{error}\n", 403)
    if request.method not in {"GET", "HEAD"}:
        return _text("Only GET is answered here.\n", 405)
    if request.path == PATH:
        return _html(_render_list(outbox.messages), _PAGE_POLICY)
    if request.path == f"{PATH}.json":
        content = {"messages": [_to_json(each) for each in outbox.messages]}
        return Response(json.dumps(content, ensure_ascii=False), mimetype="application/json", headers=_HEADERS)
    name, _, form = request.path.removeprefix(f"{PATH}/").partition(".")
    is_number = name.isascii() and name.isdigit() and len(name) < 10  # noqa: PLR2004 - more than there can be
    found = outbox.find(int(name)) if is_number else None
    return _text("There is no such message, or not any more.\n", 404) if found is None else _respond_with(found, form)


def _respond_with(found: SentMessage, form: str) -> Response:
    if not form:
        return _html(_render_message(found), _PAGE_POLICY)
    if form == "html" and found.mail is not None:
        return _html(_read_part(found.mail, "html"), _MAIL_POLICY)
    if form == "eml" and found.mail is not None:
        headers = {**_HEADERS, "Content-Disposition": f'attachment; filename="{found.number}.eml"'}
        return Response(found.mail.as_bytes(), mimetype="message/rfc822", headers=headers)
    return _text("Only a mail has .html and .eml, and nothing else.\n", 404)


def _require_own_machine(request: Request) -> None:
    refusal = find_foreign_name(request.host) or find_detour(request.headers.keys())
    if refusal is not None:
        raise Forbidden(refusal)


def _require_admin(request: Request, settings: Settings) -> None:
    """Check that an admin asks, if there are keys. Raises Unauthenticated or Forbidden."""
    if not settings.access.is_configured:
        return
    given = request.authorization
    if given is not None and given.type == "basic":
        request.environ["HTTP_X_API_KEY"] = given.password or ""
    if authenticator_for(settings).authenticate(request).role is not Role.ADMIN:
        raise Forbidden(
            "Only an admin may look at what is sent: it is everybody's, with the codes that prove addresses."
        )


def _text(text: str, status: int) -> Response:
    return Response(text, status, mimetype="text/plain", headers=_HEADERS)


def _html(page: str, policy: str) -> Response:
    return Response(page, mimetype="text/html", headers={**_HEADERS, "Content-Security-Policy": policy})


def _to_json(sent: SentMessage) -> dict[str, Any]:
    content: dict[str, Any] = {
        "id": sent.number,
        "channel": sent.channel,
        "to": sent.to,
        "at": sent.at.isoformat().replace("+00:00", "Z"),
        "messageId": sent.message_id,
        "isSent": sent.is_sent,
    }
    if sent.mail is None:
        return {**content, "content": sent.content}
    return {
        **content,
        "subject": str(sent.mail["Subject"]),
        "text": _read_part(sent.mail, "plain"),
        "html": _read_part(sent.mail, "html"),
        "source": sent.mail.as_bytes().decode("utf-8", "replace"),
    }


def _read_part(mail: EmailMessage, kind: str) -> str:
    part = mail.get_body((kind,))
    return "" if part is None else str(part.get_content())


def _wrap(title: str, body: str) -> str:
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style><h1>{escape(title)}</h1>{body}</html>"
    )


def _render_list(messages: list[SentMessage]) -> str:
    if not messages:
        return _wrap("Outbox", "<p>Nothing was sent yet. A task with deliveryChannels sends to its owner.</p>")
    rows = "".join(f'<li><a href="{PATH}/{each.number}">{escape(_describe(each))}</a></li>' for each in messages)
    return _wrap("Outbox", f"<ol reversed>{rows}</ol>")


def _describe(sent: SentMessage) -> str:
    title = sent.mail["Subject"] if sent.mail is not None else _find_title(sent.content or {})
    state = "sent" if sent.is_sent else "kept"
    return f"{sent.channel} to {sent.to}: {title} ({state}, {sent.at.isoformat(timespec='seconds')})"


def _find_title(content: dict[str, Any]) -> str:
    parts = (content, content.get("data"), content.get("message", {}).get("notification"))
    return next((str(each["title"]) for each in parts if isinstance(each, dict) and "title" in each), "")


def _render_message(sent: SentMessage) -> str:
    back = f'<p><a href="{PATH}">Outbox</a></p>'
    if sent.mail is None:
        shown = json.dumps(sent.content, ensure_ascii=False, indent=2)
        return _wrap(_describe(sent), f"{back}<pre>{escape(shown)}</pre>")
    source = sent.mail.as_bytes().decode("utf-8", "replace")
    body = (
        f'<iframe sandbox="" title="The mail" src="{PATH}/{sent.number}.html"></iframe>'
        f"<h2>Text</h2><pre>{escape(_read_part(sent.mail, 'plain'))}</pre>"
        f'<h2>Source (<a href="{PATH}/{sent.number}.eml">.eml</a>)</h2><pre>{escape(source)}</pre>'
    )
    return _wrap(_describe(sent), back + body)
