"""The page of the local stack's mailbox, below ``/dev/mailbox``, for people and for programs."""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING, Any, Final

from werkzeug.wrappers import Request, Response

from cloudsched.domain.local_requests import find_detour
from cloudsched.errors import CloudschedError, Forbidden, Unauthenticated
from cloudsched.local.stack_guard import require_caller
from cloudsched.web.api.router import require_allowed_origin

if TYPE_CHECKING:
    from email.message import EmailMessage

    from cloudsched.config.settings import Settings
    from cloudsched.local.mailbox import Mailbox, MailboxMessage

PATH: Final = "/dev/mailbox"
_ONLY_ADMINS: Final = "Only an admin may look at what is sent: it is everybody's, with the codes that prove addresses."
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


def is_mailbox_path(path: str) -> bool:
    """Return whether a path belongs to the mailbox."""
    return path in {PATH, f"{PATH}.json"} or path.startswith(f"{PATH}/")


def show_mailbox(request: Request, mailbox: Mailbox, settings: Settings) -> Response:
    """Answer a request for the page, for the same as JSON, or for the frame of a mail."""
    try:
        refused = find_detour(request.headers.keys())
        if refused is not None:
            raise Forbidden(refused)
        require_allowed_origin(request, ())
        password = request.authorization.password if request.authorization is not None else None
        if password is not None:  # a browser asks for it, as the header of a 401 below says
            request.environ["HTTP_X_API_KEY"] = password
        require_caller(request, settings, only_admins=_ONLY_ADMINS)
    except Unauthenticated as error:
        refusal = _text(f"{error}\n", 401)
        refusal.headers["WWW-Authenticate"] = 'Basic realm="cloudsched: an admin\'s key as the password"'
        return refusal
    except CloudschedError as error:
        return _text(f"{error}\n", 403)

    if request.path == PATH:
        return _html(_render(mailbox.messages), _PAGE_POLICY)
    if request.path == f"{PATH}.json":
        content = {"messages": [_to_json(each) for each in mailbox.messages]}
        return Response(json.dumps(content, ensure_ascii=False), mimetype="application/json", headers=_HEADERS)

    mails = {_frame_path(each): each.mail for each in mailbox.messages}
    mail = mails.get(request.path)
    if mail is None:
        return _text("There is no such mail, or not any more.\n", 404)
    return _html(_read_part(mail, "html"), _MAIL_POLICY)


def _frame_path(sent: MailboxMessage) -> str:
    return f"{PATH}/{sent.number}.html"


def _text(text: str, status: int) -> Response:
    return Response(text, status, mimetype="text/plain", headers=_HEADERS)


def _html(page: str, policy: str) -> Response:
    return Response(page, mimetype="text/html", headers={**_HEADERS, "Content-Security-Policy": policy})


def _to_json(sent: MailboxMessage) -> dict[str, Any]:
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
        "source": _read_source(sent.mail),
    }


def _render(messages: list[MailboxMessage]) -> str:
    body = "".join(map(_render_message, messages))
    body = body or "<p>Nothing was sent yet. A task with deliveryChannels sends to its owner.</p>"
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Mailbox</title>'
        f"<style>{_STYLE}</style><h1>Mailbox</h1>{body}</html>"
    )


def _render_message(sent: MailboxMessage) -> str:
    title = "" if sent.mail is None else f": {sent.mail['Subject']}"
    state = "sent" if sent.is_sent else "kept"
    line = f"{sent.channel} to {sent.to}{title} ({state}, {sent.at.isoformat(timespec='seconds')})"
    return f"<details><summary>{escape(line)}</summary>{_render_content(sent)}</details>"


def _render_content(sent: MailboxMessage) -> str:
    if sent.mail is None:
        return f"<pre>{escape(json.dumps(sent.content, ensure_ascii=False, indent=2))}</pre>"
    return (
        f'<iframe sandbox="" loading="lazy" title="The mail" src="{_frame_path(sent)}"></iframe>'
        f"<h2>Text</h2><pre>{escape(_read_part(sent.mail, 'plain'))}</pre>"
        f"<h2>Source</h2><pre>{escape(_read_source(sent.mail))}</pre>"
    )


def _read_part(mail: EmailMessage, kind: str) -> str:
    part = mail.get_body((kind,))
    return "" if part is None else str(part.get_content())


def _read_source(mail: EmailMessage) -> str:
    return mail.as_bytes().decode("utf-8", "replace")
