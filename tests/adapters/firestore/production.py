"""Firestore as production is, where the emulator is more lenient: a channel that refuses what production refuses."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-untyped]  # grpcio ships no types
from google.cloud.firestore_v1.types import firestore
from tests.adapters.firestore.index_rules import Indexes
from tests.adapters.firestore.write_rules import why_commit_refused

from cloudsched.adapters.firestore.queries import build_query
from cloudsched.adapters.firestore.rpc import FirestoreRpc

INDEX_FILE = Path(__file__).parents[3] / "infra" / "firestore.indexes.json"
PREFIX = "cs_"
"""That of the collections of a deployment in an app's database, as tests have them."""
NOW = datetime(2027, 1, 1, 9, tzinfo=UTC)


@dataclass
class ProductionRules:
    """Refuses requests as production would, and keeps what it has seen."""

    indexes: Indexes = field(
        default_factory=lambda: Indexes.from_file(INDEX_FILE) | Indexes.from_file(INDEX_FILE, prefix=PREFIX)
    )
    queries: list[Any] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)

    def check(self, request: Any) -> None:  # noqa: ANN401 - a protobuf message
        """Check a request before it is sent.

        Raises:
            Refusal: Production would refuse it.
        """
        if request.DESCRIPTOR.name == "CommitRequest":
            self._refuse(grpc.StatusCode.INVALID_ARGUMENT, why_commit_refused(request, self.indexes))
        query = find_query(request)
        if query is not None:
            self.queries.append(query)
            self._refuse(grpc.StatusCode.FAILED_PRECONDITION, self.indexes.why_refused(query))

    def _refuse(self, code: grpc.StatusCode, reason: str | None) -> None:
        if reason is not None:
            self.refusals.append(reason)
            raise Refusal(code, reason)


def list_names(address: str, project: str) -> list[str]:
    """Return the names of all documents in a database of the emulator, without the database's."""
    database = f"projects/{project}/databases/(default)"
    rpc = FirestoreRpc(database, address, timedelta(minutes=1))
    query = build_query("", 10_000, order=())
    query.from_[0].all_descendants = True
    names = [each.name.removeprefix(f"{database}/documents/") for each in rpc.query(f"{database}/documents", query)]
    rpc.close()
    return names


def find_query(request: Any) -> Any:  # noqa: ANN401 - a protobuf message
    match request.DESCRIPTOR.name:
        case "RunQueryRequest":
            return request.structured_query
        case "RunAggregationQueryRequest":
            return request.structured_aggregation_query.structured_query
        case "ListenRequest" if request.HasField("add_target"):
            return request.add_target.query.structured_query
        case _:
            return None


class Refusal(grpc.RpcError):  # type: ignore[misc]  # grpcio ships no types
    """How a call fails."""

    def __init__(self, code: grpc.StatusCode, details: str) -> None:
        super().__init__(f"{code.name}: {details}")
        self._code, self._details = code, details

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return self._details


class ProductionChannel:
    """A channel to an emulator that refuses what production would refuse."""

    def __init__(self, channel: Any, rules: ProductionRules) -> None:  # noqa: ANN401 - grpcio ships no types
        self._channel = channel
        self._rules = rules

    def unary_unary(self, method: str, **codec: Any) -> Callable[..., Any]:
        return self._checked(self._channel.unary_unary(method, **codec))

    def unary_stream(self, method: str, **codec: Any) -> Callable[..., Any]:
        return self._checked(self._channel.unary_stream(method, **codec))

    def stream_stream(self, method: str, **codec: Any) -> Callable[..., Any]:
        """Return a method of a stream of requests, of which the first is checked, and a stream of responses."""
        call = self._channel.stream_stream(method, **codec)

        def checked(requests: Iterator[Any], **options: Any) -> Any:  # noqa: ANN401 - gRPC's own
            first = next(requests)
            self._rules.check(first)
            return call(itertools.chain([first], requests), **options)

        return checked

    def close(self) -> None:
        self._channel.close()

    def _checked(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def checked(request: Any, **options: Any) -> Any:  # noqa: ANN401 - a protobuf message
            self._rules.check(request)
            return call(request, **options)

        return checked


class ContendedChannel:
    """A channel on which each request fails once, and is answered when it is made again.

    A commit is ABORTED for contention before it takes effect; a stream of responses breaks off behind the first one.
    """

    def __init__(self, channel: Any) -> None:  # noqa: ANN401 - grpcio ships no types
        self._channel = channel
        self._failed: set[bytes] = set()
        self.failures: list[str] = []
        """The methods whose calls have failed, each time."""

    def unary_unary(self, method: str, **codec: Any) -> Callable[..., Any]:
        call = self._channel.unary_unary(method, **codec)

        def contended(request: Any, **options: Any) -> Any:  # noqa: ANN401 - protobuf messages
            if self._is_first(method, request):
                reason = "Too much contention on these documents. Please try again."
                raise Refusal(grpc.StatusCode.ABORTED, reason)
            return call(request, **options)

        return contended

    def unary_stream(self, method: str, **codec: Any) -> Callable[..., Any]:
        call = self._channel.unary_stream(method, **codec)

        def contended(request: Any, **options: Any) -> Iterator[Any]:  # noqa: ANN401 - a protobuf message
            responses = call(request, **options)
            if self._is_first(method, request):
                yield next(responses)
                raise Refusal(grpc.StatusCode.UNAVAILABLE, "The connection broke off.")
            yield from responses

        return contended

    def stream_stream(self, method: str, **codec: Any) -> Callable[..., Any]:
        call: Callable[..., Any] = self._channel.stream_stream(method, **codec)
        return call

    def close(self) -> None:
        self._channel.close()

    def _is_first(self, method: str, request: Any) -> bool:  # noqa: ANN401 - a protobuf message
        asked = method.encode() + request.SerializeToString()
        if asked in self._failed:
            return False
        self._failed.add(asked)
        self.failures.append(method.rpartition("/")[2])
        return True


class EmptyDatabase:
    """A channel to a Firestore without documents, which accepts every commit and forgets it."""

    def unary_unary(self, method: str, **codec: Any) -> Callable[..., Any]:  # noqa: ARG002 - gRPC's own
        return self._get if method.endswith("/GetDocument") else self._commit

    def unary_stream(self, method: str, **codec: Any) -> Callable[..., Any]:  # noqa: ARG002 - gRPC's own
        """Return RunQuery, RunAggregationQuery or BatchGetDocuments."""
        response = getattr(firestore, f"{method.rpartition('/')[2]}Response")
        return lambda _request, **_options: iter([response.pb(response(read_time=NOW))])

    def stream_stream(self, method: str, **codec: Any) -> Callable[..., Any]:  # noqa: ARG002 - gRPC's own
        """Return a Listen that ends at once, and whose target does not exist."""

        def listen(_requests: Iterator[Any], **_options: Any) -> Any:  # noqa: ANN401 - gRPC's own
            raise Refusal(grpc.StatusCode.UNIMPLEMENTED, "for a test")

        return listen

    def close(self) -> None:
        """Do nothing."""

    @staticmethod
    def _get(_request: Any, **_options: Any) -> Any:  # noqa: ANN401 - protobuf messages
        raise Refusal(grpc.StatusCode.NOT_FOUND, "no such document")

    @staticmethod
    def _commit(request: Any, **_options: Any) -> Any:  # noqa: ANN401 - protobuf messages
        results = [{"update_time": NOW} for _ in request.writes]
        return firestore.CommitResponse.pb(firestore.CommitResponse(write_results=results))
