"""Firestore's calls on one channel, each with a deadline, and retried after contention and overload.

A failed precondition (the document has changed) is different from a commit that Firestore cannot carry out at
present. ABORTED is the latter: Firestore returns it for contention, and also for hot spots and for traffic
that grows too fast (cloud.google.com/firestore/docs/understand-error-codes). Trying again at once would add
to the load that causes it, so it is retried with growing random pauses. After the deadline,
`StoreUnavailable` lets the queue redeliver.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from urllib.parse import quote

import grpc  # type: ignore[import-untyped]  # grpcio ships no types

from cloudsched.adapters.firestore import protos as messages
from cloudsched.adapters.firestore.collection_prefix import CollectionPrefix
from cloudsched.adapters.google.backoff import Backoff
from cloudsched.adapters.google.channel import OVERLOAD_CODES, GoogleService, Message, open_channel, retry
from cloudsched.errors import CloudschedError, InvalidInput, Misconfigured, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

_SERVICE = GoogleService(
    "firestore.googleapis.com",
    ("https://www.googleapis.com/auth/cloud-platform", "https://www.googleapis.com/auth/datastore"),
)
_Query: Message = messages.StructuredQuery

_RETRYABLE_COMMIT_CODES = OVERLOAD_CODES
"""Every commit has a precondition, so making one again is safe: if it had taken effect, the precondition
fails, and the caller reads its own write."""
_RETRYABLE_READ_CODES = OVERLOAD_CODES | {grpc.StatusCode.INTERNAL}
"""Google's clients retry reads after INTERNAL as well (firestore_grpc_service_config.json in
github.com/googleapis/googleapis)."""

_PRECONDITION_FAILED = {
    grpc.StatusCode.FAILED_PRECONDITION,  # another update_time
    grpc.StatusCode.ALREADY_EXISTS,
    grpc.StatusCode.NOT_FOUND,
}


class FirestoreRpc:
    """Get, commit and query, for one database.

    Each call raises StoreUnavailable if Firestore does not answer before the deadline, retries included, or
    refuses.
    """

    def __init__(self, database: str, emulator: str | None, deadline: timedelta, prefix: str = "") -> None:
        """Open a channel. Nothing is sent before the first call. Names have no prefix here."""
        self.database = database
        self.prefix: CollectionPrefix = CollectionPrefix(database, prefix)
        self._deadline = deadline.total_seconds()
        resource = ("google-cloud-resource-prefix", database)
        self._metadata = [resource, ("x-goog-request-params", f"database={quote(database, safe='')}")]
        self._channel = open_channel(_SERVICE, emulator)
        if emulator is not None:
            # Bypasses the security rules, as a server does.
            self._metadata.append(("authorization", "Bearer owner"))
        self._get = self._bind_method(
            "BatchGetDocuments",
            messages.BatchGetDocumentsRequest,
            messages.BatchGetDocumentsResponse,
            is_stream=True,
        )
        self._commit = self._bind_method("Commit", messages.CommitRequest, messages.CommitResponse)
        self._query = self._bind_method(
            "RunQuery",
            messages.RunQueryRequest,
            messages.RunQueryResponse,
            is_stream=True,
        )

    def get(self, name: str) -> tuple[Message | None, datetime]:
        """Return a document, or None if there is none, and when it was read, by Firestore's clock.

        A batch of one: GetDocument costs the same, but does not tell the time.
        """
        (answer,) = self._batch_get([name])
        read_at: datetime = answer.read_time.ToDatetime(UTC)
        return (self.prefix.remove_from(answer.found) if answer.HasField("found") else None), read_at

    def get_many(self, names: Sequence[str]) -> list[Message]:
        """Return those of some documents that exist."""
        return [self.prefix.remove_from(each.found) for each in self._batch_get(names) if each.HasField("found")]

    def _batch_get(self, names: Sequence[str]) -> list[Message]:
        documents = map(self.prefix.add, names) if self.prefix.text else names
        request = messages.BatchGetDocumentsRequest(database=self.database, documents=documents)
        return self._read_stream(self._get, request, "name")

    def commit(self, writes: Sequence[Message]) -> Message:
        """Write all or nothing.

        Return the response, with a result for each write, or None if a precondition failed.

        A retried commit whose first try took effect fails its own precondition. After StoreUnavailable, the
        commit may have taken effect or not.
        """
        request = messages.CommitRequest(database=self.database, writes=writes)
        for write in request.writes if self.prefix.text else ():
            self.prefix.add_to_write(write)
        try:
            return self._call(_RETRYABLE_COMMIT_CODES, lambda timeout: self._commit(request, timeout))
        except grpc.RpcError as error:
            if error.code() in _PRECONDITION_FAILED and not _lacks_database(error):
                return None
            raise _translate_error(error, "task") from error

    def query(self, parent: str, query: Message) -> list[Message]:
        """Return the documents that match a query."""
        answers = self._run_query(parent, query)
        return [self.prefix.remove_from(each.document) for each in answers if each.HasField("document")]

    def count(self, parent: str, query: Message) -> int:
        """Return how many documents match a query, at most the query's limit."""
        method = self._bind_method(
            "RunAggregationQuery",
            messages.RunAggregationQueryRequest,
            messages.RunAggregationQueryResponse,
            is_stream=True,
        )
        aggregation = {"structured_query": query, "aggregations": [{"alias": "n", "count": {}}]}
        request = messages.RunAggregationQueryRequest(
            parent=self.prefix.add(parent), structured_aggregation_query=aggregation
        )
        self.prefix.add_to_query(request.structured_aggregation_query.structured_query)
        responses = self._read_stream(method, request, "owner")
        return sum(response.result.aggregate_fields["n"].integer_value for response in responses)

    def fetch_time(self, parent: str) -> datetime:
        """Return Firestore's current time, from a query without results."""
        *_, last = self._run_query(parent, _Query(from_=[{"collection_id": "-"}], limit={"value": 1}))
        read_at: datetime = last.read_time.ToDatetime(UTC)
        return read_at

    def _run_query(self, parent: str, query: Message) -> list[Message]:
        request = messages.RunQueryRequest(parent=self.prefix.add(parent), structured_query=query)
        self.prefix.add_to_query(request.structured_query)
        return self._read_stream(self._query, request, "pageToken")

    def _read_stream(
        self,
        method: Callable[[Message, float], Message],
        request: Message,
        field: str,
    ) -> list[Message]:
        """Return all responses to a read. `field` is what the caller may have given wrongly."""
        try:
            responses: list[Message] = self._call(
                _RETRYABLE_READ_CODES,
                lambda timeout: list(method(request, timeout)),
            )
        except grpc.RpcError as error:
            raise _translate_error(error, field) from error
        return responses

    def close(self) -> None:
        """Close the channel."""
        self._channel.close()

    def _bind_method(
        self,
        name: str,
        request: Message,
        response: Message,
        *,
        is_stream: bool = False,
    ) -> Callable[[Message, float], Message]:
        if is_stream:
            kind = self._channel.unary_stream
        else:
            kind = self._channel.unary_unary
        method = kind(
            f"/google.firestore.v1.Firestore/{name}",
            request_serializer=request.SerializeToString,
            response_deserializer=response.FromString,
        )
        return lambda message, timeout: method(message, timeout=timeout, metadata=self._metadata)

    def _call(self, retryable: Collection[grpc.StatusCode], call: Callable[[float], Message]) -> Message:
        try:
            return retry(call, retryable, Backoff(self._deadline))
        except ValueError as error:  # gRPC raises it for a closed channel
            raise StoreUnavailable("Firestore", str(error)) from error


def _lacks_database(error: grpc.RpcError) -> bool:
    details = error.details() or ""
    return "database" in details and "does not exist" in details


def _translate_error(error: grpc.RpcError, field: str) -> CloudschedError:
    code = error.code()
    details = error.details() or ""
    if _lacks_database(error):
        return Misconfigured(f"{details} Create it with `gcloud firestore databases create`.")
    if code is grpc.StatusCode.FAILED_PRECONDITION and "index" in details:
        return Misconfigured(f"{details} Deploy infra/firestore.indexes.json.")
    if code is grpc.StatusCode.INVALID_ARGUMENT:
        return InvalidInput(field, "is not accepted by Firestore", details)
    return StoreUnavailable("Firestore", f"{code.name}: {details}")
