"""A person gets a mail from a running service, opens its link in a browser, and approves."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal, get_args

import pytest
from tests.browsers import find_chromium, make_browser_environment
from tests.harness import request, wait_until
from tests.people.senders.mail_server import serve_mail
from tests.stories.test_serve import serve

Scheme = Literal["light", "dark"]
PUBLIC = "https://clinic.example"
HANDLERS = """
from datetime import timedelta
from cloudsched import App, Context
from pydantic import BaseModel

app = App()

class Decision(BaseModel):
    approved: bool
    note: str = ""

@app.handler("renew", access="users", events={"decision": Decision})
def renew(ctx: Context) -> list[object]:
    question = "Renew the prescription of Mr. Brown?"
    decision, sender = ctx.wait_for(
        "decision", Decision, timedelta(days=1), by=["user:dr-grey"], question=question, channels=["EMAIL"],
        with_sender=True,
    )
    return [decision.approved, decision.note, sender.person, sender.via]
"""


@pytest.mark.parametrize("script", [True, False], ids=["scripts", "no scripts"])
def test_a_mail_leads_to_a_page_that_approves(tmp_path: Path, *, script: bool) -> None:
    """By the keyboard alone, with and without scripts; nothing else is loaded; the run gets what was written."""
    chromium = find_chromium()
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - only where there is a browser

    (tmp_path / "handlers.py").write_text(HANDLERS)
    with serve_mail() as mails:
        settings = {
            "CLOUDSCHED_SMTP_URL": f"smtp://127.0.0.1:{mails.port}",
            "CLOUDSCHED_MAIL_FROM": "clinic@example.com",
            "CLOUDSCHED_PUBLIC_URL": PUBLIC,
        }
        with serve(tmp_path, **settings) as (_, url):
            person = {"name": "Dr. Grey", "email": {"address": "grey@example.com", "verified": True}}
            assert request(url, "PUT", "/v1/people/dr-grey", person).status == 201
            task = {"id": "renewal", "owner": "ada", "handler": "renew", "title": "Mr. Brown's pills"}
            assert request(url, "POST", "/v1/tasks", task).status == 201
            wait_until(lambda: mails.mails, "the question is mailed")
            plain = mails.mails[0].get_body(("plain",))
            assert plain is not None
            (path,) = re.findall(rf"{PUBLIC}(/v1/links/answer/\S+)", plain.get_content())
            link = url + path

            with make_browser_environment() as environment, sync_playwright() as playwright:
                browser = playwright.chromium.launch(
                    executable_path=chromium,
                    args=["--no-sandbox", "--disable-dev-shm-usage"],
                    env=dict(environment),
                )
                page = browser.new_page(java_script_enabled=script, viewport={"width": 400, "height": 640})
                asked, complaints = list[str](), list[str]()
                page.on("request", lambda each: asked.append(each.url))
                page.on("console", lambda each: complaints.append(each.text))
                page.goto(link)
                assert page.get_by_role("heading", level=1).all_inner_texts() == [
                    "Renew the prescription of Mr. Brown?"
                ]
                for scheme in get_args(Scheme):
                    page.emulate_media(color_scheme=scheme)
                page.get_by_label("A note").focus()
                page.keyboard.type("Fewer pills")
                page.keyboard.press("Tab")
                page.keyboard.press("Enter")
                page.get_by_text("Approved by Dr. Grey").wait_for()
                assert not page.get_by_role("button").count()
                assert {each for each in asked if not each.endswith("/favicon.ico")} == {link}
                assert not [each for each in complaints if "favicon" not in each]
                browser.close()

            def find_result() -> object:
                (run,) = request(url, "GET", "/v1/tasks/renewal/executions").body["executions"]
                return run.get("content")

            wait_until(find_result, "the run has gone on")
            assert find_result() == [True, "Fewer pills", "user:dr-grey", "link"]
