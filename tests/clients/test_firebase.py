"""A page with Firebase's SDK, in a real browser, sees a task and its result live, if it is its owner's."""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import requests
from google.cloud import firestore
from tests.browsers import find_chromium, make_browser_environment
from tests.harness import ROOT, new_project
from tests.web.api.node_tools import install_node_tools
from werkzeug.exceptions import NotFound
from werkzeug.middleware.shared_data import SharedDataMiddleware

from cloudsched import App, Schedule
from cloudsched.adapters.firestore.store import FirestoreStore
from cloudsched.domain.documents.task import Task
from cloudsched.local.wsgi_server import WebServer
from cloudsched.testing import Simulation

PAGE = Path(__file__).with_name("firebase")


@pytest.mark.timeout(600)
def test_a_page_sees_a_task_and_its_result_live(
    package: Path, firestore_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner's does, under the shipped rules. Another user's is refused both."""
    chromium, modules, project, app = find_chromium(), install_node_tools(PAGE) / "node_modules", new_project(), App()
    from playwright.sync_api import expect, sync_playwright  # noqa: PLC0415 - only where there is a browser

    @app.handler("ship")
    def ship(payload: dict[str, Any]) -> str:
        return f"parcel of {payload['order']}"

    rules = {"name": "firestore.rules", "content": (ROOT / "infra/firestore.rules").read_text("utf-8")}
    load = f"http://{firestore_address}/emulator/v1/projects/{project}:securityRules"
    requests.put(load, json={"rules": {"files": [rules]}}, timeout=60).raise_for_status()
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", firestore_address)
    client = firestore.Client(project=project)
    site = SharedDataMiddleware(
        NotFound(), {"/node_modules": str(modules), "/cloudsched": str(package / "dist/esm"), "/": str(PAGE)}
    )
    with (
        closing(FirestoreStore(project=project, emulator=firestore_address, deadline=timedelta(minutes=1))) as store,
        Simulation(app, store=store) as simulation,
        WebServer(site) as server,
        make_browser_environment() as environment,
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"], env={**environment}) as browser,
    ):

        @firestore.transactional
        def place(transaction: firestore.Transaction) -> Task:
            transaction.create(client.document("orders/42"), {"by": "ada"})
            due = Schedule.once(simulation.now + timedelta(days=1))
            return app.create(
                owner="ada", handler="ship", payload={"order": "42"}, schedule=due, transaction=transaction
            )

        task = place(client.transaction())
        server.serve()
        where = f"http://{server.address}/page.html?project={project}&port={firestore_address.rpartition(':')[2]}"
        expect.set_options(timeout=30_000)
        ada, bob = browser.new_page(), browser.new_page()
        ada.goto(f"{where}&task={task.id}&uid=ada")
        bob.goto(f"{where}&task={task.id}&uid=bob")
        expect(ada.locator("#task")).to_have_text("ACTIVE, next run: 2027-01-02T00:00:00.000Z")
        expect(ada.locator("#runs")).to_have_text("")
        simulation.advance(timedelta(days=2))
        expect(ada.locator("#task")).to_have_text("COMPLETED, next run: none")
        expect(ada.locator("#runs")).to_have_text("SUCCEEDED: parcel of 42")
        expect(bob.get_by_role("alert")).to_have_text("permission-denied permission-denied")
        assert [bob.locator(each).text_content() for each in ("#order", "#task", "#runs")] == ["", "", ""]
        app.delete(task.id)
        expect(ada.get_by_role("alert")).to_contain_text("permission-denied")
