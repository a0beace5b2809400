"""No secret is anywhere but where it belongs: every place is read after a full run."""

from __future__ import annotations

import base64
import io
import json
import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.greeting_app import app as greeting_app
from tests.web.auth.token_issuer import AUDIENCE, PROJECT, Issuer, publish_keys
from tests.web.callers import HOUR, clear_authenticators, open_api

from cloudsched import App, Settings
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.config.access import Access
from cloudsched.engine.signed_dispatches import SigningKeys
from cloudsched.errors import CloudschedError
from cloudsched.runtime.telemetry import CloudFormatter
from cloudsched.testing import Simulation
from cloudsched.web.auth.authentication import create_key
from cloudsched.web.auth.roles import Role
from cloudsched.web.functions import serve_execute, serve_sweep

SECRET = "the-present-secret-of-the-tests"  # noqa: S105 - it is looked for everywhere
PREVIOUS = "the-former-secret-of-the-tests"
PAYLOAD = "payload-that-only-the-owner-reads"
ROBOT = "robot@demo.iam.gserviceaccount.com"
TOKEN = "X-Cloudsched-Token"  # noqa: S105 - a header's name


def spellings(secret: str) -> list[bytes]:
    """Return how a secret might be written down."""
    raw = secret.encode()
    return [raw, base64.b64encode(raw)[:-4], base64.urlsafe_b64encode(raw)[:-4], raw.hex().encode(), repr(raw).encode()]


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """All log lines of every logger, at the finest level, as Cloud Logging receives them."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(CloudFormatter("demo"))
    root = logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield stream
    root.removeHandler(handler)
    root.setLevel(before)


def test_no_secret_is_in_a_document_a_queue_a_log_or_a_response(tmp_path: Path, log: io.StringIO) -> None:
    """After tasks, failures and refusals, the log has no secret, no key, no token and no payload."""
    clear_authenticators()
    issuer = Issuer()
    key, kept = create_key("server", Role.ADMIN)
    user, account = issuer.make_user_token("ada"), issuer.make_account_token(ROBOT)
    access = Access(
        firebase_project=PROJECT,
        audiences=(AUDIENCE,),
        service_accounts=(f"{ROBOT}=admin",),
        sweeper=ROBOT,
        api_keys=(str(kept),),
    )
    app = App(Settings())
    app.container.registry = greeting_app.container.registry
    store = SqliteStore(tmp_path / "tasks.db")
    said: list[str] = []
    settings = Settings(secret=SECRET, previous_secret=PREVIOUS, access=access)
    proofs = {"key": key, "user": user, "account": account}
    with (
        publish_keys(issuer),
        Simulation(app, store=store) as sim,
        app.override(settings, store=store, dispatcher=sim.queue, clock=sim.clock),
    ):
        _use_everything(sim, said, proofs)
    store.close()
    with closing(sqlite3.connect(tmp_path / "tasks.db")) as database:
        documents = "\n".join(database.iterdump())
    queue = b"\n".join(delivery.body for delivery in sim.queue.deliveries)
    places = {
        "documents": documents.encode(),
        "queue": queue,
        "log": log.getvalue().encode(),
        "answers": "\n".join(said).encode(),
        "settings": repr(settings).encode() + str(settings).encode(),
    }
    assert all(len(content) > 200 for content in places.values()), "there is something to read everywhere"
    assert PAYLOAD in documents
    for where, content in places.items():
        for secret in (SECRET, PREVIOUS, key, key[-43:], user, account, user.rpartition(".")[2]):
            assert not [each for each in spellings(secret) if each in content], f"a secret is in the {where}"
    for delivery_token in {SigningKeys(SECRET).sign(delivery.body) for delivery in sim.queue.deliveries}:
        assert all(delivery_token.encode() not in content for content in places.values())
    assert PAYLOAD.encode() not in places["log"] + places["queue"]
    assert kept.digest.encode() not in places["log"] + places["answers"] + places["settings"]


def _use_everything(sim: Simulation, said: list[str], proofs: dict[str, str]) -> None:
    """Do all that can be done, and all that can go wrong."""
    api = open_api(sim.app)
    execute = open_api(sim.app, serve_execute)
    sweep = open_api(sim.app, serve_sweep)
    as_user = {"Authorization": f"Bearer {proofs['user']}"}
    for proof in (as_user, {"Authorization": f"Bearer {proofs['account']}"}, {"X-Api-Key": proofs["key"]}):
        body: dict[str, Any] = {"owner": "ada", "title": "T", "handler": "greet", "payload": {"name": PAYLOAD}}
        made = api.post("/v1/tasks", json=body, headers=proof)
        said += [made.get_data(as_text=True), str(made.headers)]
        assert made.status_code == 201
        place = made.headers["Location"]
        for method, path, content in (
            ("GET", place, None),
            ("POST", f"{place}/trigger", None),
            ("PATCH", place, {"title": 5}),
            ("GET", "/v1/tasks", None),
            ("GET", "/v1/tasks?pageToken=x", None),
            ("POST", "/v1/tasks", {"owner": "ada", "payload": SECRET[:3]}),
        ):
            answer = (
                api.open(path, method=method, json=content, headers=proof)
                if content
                else api.open(path, method=method, headers=proof)
            )
            said += [answer.get_data(as_text=True), str(answer.headers)]
    for broken in (proofs["user"][:-3] + "abc", proofs["key"] + "x", proofs["account"][1:]):
        for header in ("Authorization", "X-Api-Key"):
            value = f"Bearer {broken}" if header == "Authorization" else broken
            said.append(api.get("/v1/tasks", headers={header: value}).get_data(as_text=True))
    sim.advance(HOUR)
    delivered = sim.queue.deliveries[0]
    for token in (
        "",
        "v1=" + "0" * 64,
        SigningKeys(SECRET).sign(delivered.body),
        SigningKeys(PREVIOUS).sign(delivered.body),
    ):
        executed = execute.post("/", data=delivered.body, headers={TOKEN: token})
        said += [executed.get_data(as_text=True), str(executed.headers)]
    said.append(sweep.post("/", headers={"Authorization": f"Bearer {proofs['account']}"}).get_data(as_text=True))
    said.append(sweep.post("/", headers=as_user).get_data(as_text=True))
    logging.getLogger("tests").error("settings are %s", sim.app.container.settings)
    try:
        sim.app.deliver(delivered.body, "wrong")
    except CloudschedError as error:
        said.append(repr(error) + str(error.__dict__))
    said.append(json.dumps(sim.app.container.circuits.states))
