"""What the Firestore listener does when Firestore refuses, forgets or falls silent."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import grpc  # type: ignore[import-untyped]  # grpcio ships no types
import pytest
from google.cloud.firestore_v1.types import firestore as messages
from tests.contract.listener_harness import LATE, NotificationCounter, open_listener
from tests.harness import wait_until

from cloudsched.adapters.firestore import listener as firestore_listener
from cloudsched.adapters.firestore.listener import DEADLINE, FirestoreListener

C = grpc.StatusCode
_Kind = messages.TargetChange.TargetChangeType


class Fake(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpcio ships no types
    """A fake Firestore: plays one script per stream, and keeps the last stream open."""

    def __init__(self, *scripts: list[Any]) -> None:
        self.scripts = list(scripts)
        self.requests: list[Any] = []
        self.metadata: dict[str, str] = {}

    def service(self, details: Any) -> Any:  # noqa: ANN401 - gRPC's own
        assert details.method == "/google.firestore.v1.Firestore/Listen"

        def answer(requests: Any, context: Any) -> Iterator[bytes]:  # noqa: ANN401 - gRPC's own
            self.metadata = dict(context.invocation_metadata())
            self.requests.append(messages.ListenRequest.deserialize(next(requests)))
            for each in self.scripts.pop(0) if self.scripts else [_CURRENT]:
                if isinstance(each, grpc.StatusCode):
                    context.abort(each, "for a test")
                yield messages.ListenResponse.serialize({"target_change": each})
            if not self.scripts:
                for _ in requests:
                    pass

        return grpc.stream_stream_rpc_method_handler(answer)


_CURRENT = {"target_change_type": _Kind.CURRENT, "target_ids": [1], "resume_token": b"here"}


def _refused(code: grpc.StatusCode) -> dict[str, Any]:
    return {"target_change_type": _Kind.REMOVE, "target_ids": [1], "cause": {"code": code.value[0], "message": "why"}}


@pytest.fixture(autouse=True)
def _short_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(firestore_listener, "INITIAL_BACKOFF", timedelta(milliseconds=1))


@contextmanager
def _served(fake: Fake, deadline: timedelta = DEADLINE) -> Iterator[FirestoreListener]:
    server = grpc.server(ThreadPoolExecutor(4), handlers=(fake,))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield FirestoreListener(project="demo", emulator=f"127.0.0.1:{port}", deadline=deadline)
    server.stop(None).wait()


def _threads() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == "cloudsched-listener"]


@pytest.mark.parametrize("script", [[C.UNAVAILABLE], [C.INTERNAL], [C.UNAUTHENTICATED], [_refused(C.ABORTED)], []])
def test_transient_errors_are_retried(script: list[Any], caplog: pytest.LogCaptureFixture) -> None:
    """So is a stream that ends without an error; a long outage logs one line, its end another."""
    caplog.set_level(logging.INFO)
    fake = Fake(script, script, script, [_CURRENT])
    with _served(fake) as listener, open_listener(listener, ["gpu"]):
        assert len(fake.requests) == 4
    levels = [each.levelname for each in caplog.records if each.name == firestore_listener.__name__]
    assert levels == ["WARNING", "INFO"]


@pytest.mark.parametrize("script", [[C.PERMISSION_DENIED], [_refused(C.PERMISSION_DENIED)], [C.NOT_FOUND]])
def test_a_permanent_error_is_logged_once(
    script: list[Any], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From then on it notifies every few seconds, so that the worker polls; leaving is still quick."""
    monkeypatch.setattr(firestore_listener, "FALLBACK_POLL", timedelta(milliseconds=5))
    bell, fake = NotificationCounter(), Fake(script)
    with _served(fake) as listener, listener.listen(["gpu"], None, bell.notify):
        wait_until(lambda: bell.notifications > 3, "it goes on")
    assert not _threads()
    assert len(fake.requests) == 1
    (record,) = [each for each in caplog.records if each.name == firestore_listener.__name__]
    assert record.levelname == "ERROR"
    assert "polling every few seconds" in record.getMessage()


def test_a_missing_index_says_what_to_deploy(caplog: pytest.LogCaptureFixture) -> None:
    """Firestore reports it for the target, not for the call."""
    fake = Fake([_refused(C.FAILED_PRECONDITION)])
    with _served(fake) as listener, listener.listen(["gpu"], None, NotificationCounter().notify):
        wait_until(lambda: "FAILED_PRECONDITION" in caplog.text, "it says so")
    assert "FAILED_PRECONDITION: why Deploy infra/firestore.indexes.json." in caplog.text


def test_it_resumes_from_its_token_and_starts_anew_if_that_has_expired() -> None:
    """A resumed stream is billed for changed documents only; Firestore keeps tokens for a limited time."""
    fake = Fake([_CURRENT, C.UNAVAILABLE], [C.INVALID_ARGUMENT], [_CURRENT])
    with _served(fake) as listener, open_listener(listener, ["gpu", "gpu/cuda"], "ada") as bell:
        bell.wait()
        tokens = [each.add_target.resume_token for each in fake.requests]
    assert tokens == [b"", b"here", b""]
    assert fake.metadata["google-cloud-resource-prefix"] == "projects/demo/databases/(default)"
    assert fake.requests[0].database == "projects/demo/databases/(default)"


def test_failures_count_until_a_stream_has_lasted_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream that ends right after it opens is no success: each one costs a call and makes the worker poll."""
    delays_after: list[int] = []

    def noted(failures: int) -> timedelta:
        delays_after.append(failures)
        return timedelta()

    monkeypatch.setattr(firestore_listener, "reconnect_delay", noted)
    fake = Fake([_CURRENT, C.UNAVAILABLE], [_CURRENT, C.UNAVAILABLE], [_CURRENT, C.UNAVAILABLE], [_CURRENT])
    with _served(fake) as listener, open_listener(listener, ["gpu"]):
        wait_until(lambda: len(fake.requests) == 4, "it gave up")
    assert delays_after == [1, 2, 3]
    delays_after.clear()
    monkeypatch.setattr(firestore_listener, "MAX_BACKOFF", timedelta())
    fake = Fake([_CURRENT, C.UNAVAILABLE], [_CURRENT, C.UNAVAILABLE], [_CURRENT])
    with _served(fake) as listener, open_listener(listener, ["gpu"]):
        wait_until(lambda: len(fake.requests) == 3, "it gave up")
    assert delays_after == [1, 1]


def test_leaving_is_quick_during_a_backoff_and_without_responses(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker can stop at once while Firestore is down."""
    for wait in ("INITIAL_BACKOFF", "MAX_BACKOFF"):
        monkeypatch.setattr(firestore_listener, wait, 2 * LATE)  # at least half of it is waited
    with socket.create_server(("127.0.0.1", 0)) as silent, socket.create_server(("127.0.0.1", 0)) as gone:
        addresses = [f"127.0.0.1:{each.getsockname()[1]}" for each in (silent, gone)]
        gone.close()
        for address in addresses:
            with FirestoreListener(project="demo", emulator=address, deadline=LATE).listen(
                ["gpu"], None, NotificationCounter().notify
            ):
                assert _threads()
            assert not _threads()
    fake = Fake([C.UNAVAILABLE])
    with _served(fake, LATE) as listener, listener.listen(["gpu"], None, NotificationCounter().notify):
        wait_until(lambda: fake.requests, "it did not try")
    assert not _threads()
