"""Messages of google.firestore.v1, the names of documents, preconditions and sizes.

Names, numbers and types are those of google/firestore/v1/*.proto in github.com/googleapis/googleapis. A test
compares them with the installed client's. ``from_`` is ``from`` there, which is a keyword in Python. The
rules for documents' names: firebase.google.com/docs/firestore/quotas. Sizes that Firestore would refuse are
found before sending: its errors name no field.
"""

from __future__ import annotations

import re
import secrets
from typing import TYPE_CHECKING

from cloudsched.adapters.google.protobuf import build_messages
from cloudsched.domain.documents.json_limits import MAX_REQUEST_BYTES, require_document_fits
from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.adapters.google.channel import Message
    from cloudsched.domain.documents.document import Document as StoredDocument
    from cloudsched.domain.transitions.commit import Version

PACKAGE = "google.firestore.v1"
TABLE = r"""
LatLng latitude:double=1 longitude:double=2
Status code:int32=1 message:string=2
Document name:string=1 fields:map(Value)=2 create_time:Timestamp=3 update_time:Timestamp=4
Value null_value:NullValue=11/value_type boolean_value:bool=1/value_type integer_value:int64=2/value_type \
double_value:double=3/value_type timestamp_value:Timestamp=10/value_type string_value:string=17/value_type \
bytes_value:bytes=18/value_type reference_value:string=5/value_type geo_point_value:LatLng=8/value_type \
array_value:ArrayValue=9/value_type map_value:MapValue=6/value_type
ArrayValue values:Value=1*
MapValue fields:map(Value)=1
DocumentMask field_paths:string=1*
Precondition exists:bool=1/condition_type update_time:Timestamp=2/condition_type
DocumentTransform document:string=1 field_transforms:DocumentTransform.FieldTransform=2*
DocumentTransform.FieldTransform field_path:string=1 \
set_to_server_value:DocumentTransform.FieldTransform.ServerValue=2/transform_type
enum DocumentTransform.FieldTransform.ServerValue SERVER_VALUE_UNSPECIFIED REQUEST_TIME
Write update:Document=1/operation delete:string=2/operation update_mask:DocumentMask=3 \
update_transforms:DocumentTransform.FieldTransform=7* current_document:Precondition=4
WriteResult update_time:Timestamp=1 transform_results:Value=2*
CommitRequest database:string=1 writes:Write=2*
CommitResponse write_results:WriteResult=1* commit_time:Timestamp=2
BatchGetDocumentsRequest database:string=1 documents:string=2* transaction:bytes=4/consistency_selector
BatchGetDocumentsResponse found:Document=1/result missing:string=2/result read_time:Timestamp=4
StructuredQuery select:StructuredQuery.Projection=1 from_:StructuredQuery.CollectionSelector=2* \
where:StructuredQuery.Filter=3 order_by:StructuredQuery.Order=4* start_at:Cursor=7 end_at:Cursor=8 offset:int32=6 \
limit:Int32Value=5
StructuredQuery.CollectionSelector collection_id:string=2 all_descendants:bool=3
StructuredQuery.Filter composite_filter:StructuredQuery.CompositeFilter=1/filter_type \
field_filter:StructuredQuery.FieldFilter=2/filter_type
StructuredQuery.CompositeFilter op:StructuredQuery.CompositeFilter.Operator=1 filters:StructuredQuery.Filter=2*
enum StructuredQuery.CompositeFilter.Operator OPERATOR_UNSPECIFIED AND OR
StructuredQuery.FieldFilter field:StructuredQuery.FieldReference=1 op:StructuredQuery.FieldFilter.Operator=2 \
value:Value=3
enum StructuredQuery.FieldFilter.Operator OPERATOR_UNSPECIFIED LESS_THAN LESS_THAN_OR_EQUAL GREATER_THAN \
GREATER_THAN_OR_EQUAL EQUAL NOT_EQUAL ARRAY_CONTAINS IN ARRAY_CONTAINS_ANY NOT_IN
StructuredQuery.Order field:StructuredQuery.FieldReference=1 direction:StructuredQuery.Direction=2
StructuredQuery.FieldReference field_path:string=2
StructuredQuery.Projection fields:StructuredQuery.FieldReference=2*
enum StructuredQuery.Direction DIRECTION_UNSPECIFIED ASCENDING DESCENDING
Cursor values:Value=1* before:bool=2
RunQueryRequest parent:string=1 structured_query:StructuredQuery=2/query_type
RunQueryResponse document:Document=1 read_time:Timestamp=3 skipped_results:int32=4
StructuredAggregationQuery structured_query:StructuredQuery=1/query_type \
aggregations:StructuredAggregationQuery.Aggregation=3*
StructuredAggregationQuery.Aggregation count:StructuredAggregationQuery.Aggregation.Count=1/operator alias:string=7
StructuredAggregationQuery.Aggregation.Count up_to:Int64Value=1
RunAggregationQueryRequest parent:string=1 structured_aggregation_query:StructuredAggregationQuery=2/query_type
AggregationResult aggregate_fields:map(Value)=2
RunAggregationQueryResponse result:AggregationResult=1 read_time:Timestamp=3
ListenRequest database:string=1 add_target:Target=2/target_change remove_target:int32=3/target_change
Target query:Target.QueryTarget=2/target_type resume_token:bytes=4/resume_type read_time:Timestamp=11/resume_type \
target_id:int32=5 once:bool=6
Target.QueryTarget parent:string=1 structured_query:StructuredQuery=2/query_type
ListenResponse target_change:TargetChange=2/response_type document_change:DocumentChange=3/response_type
TargetChange target_change_type:TargetChange.TargetChangeType=1 target_ids:int32=2* cause:Status=3 \
resume_token:bytes=4 read_time:Timestamp=6
enum TargetChange.TargetChangeType NO_CHANGE ADD REMOVE CURRENT RESET
DocumentChange document:Document=1 target_ids:int32=5* removed_target_ids:int32=6*
"""

_messages = build_messages(PACKAGE, TABLE)
BatchGetDocumentsRequest: Message = _messages["BatchGetDocumentsRequest"]
BatchGetDocumentsResponse: Message = _messages["BatchGetDocumentsResponse"]
CommitRequest: Message = _messages["CommitRequest"]
CommitResponse: Message = _messages["CommitResponse"]
Document: Message = _messages["Document"]
DocumentTransform: Message = _messages["DocumentTransform"]
ListenRequest: Message = _messages["ListenRequest"]
ListenResponse: Message = _messages["ListenResponse"]
RunAggregationQueryRequest: Message = _messages["RunAggregationQueryRequest"]
RunAggregationQueryResponse: Message = _messages["RunAggregationQueryResponse"]
RunQueryRequest: Message = _messages["RunQueryRequest"]
RunQueryResponse: Message = _messages["RunQueryResponse"]
StructuredQuery: Message = _messages["StructuredQuery"]
TargetChange: Message = _messages["TargetChange"]
Value: Message = _messages["Value"]
Write: Message = _messages["Write"]

PRIVATE = "private"
"""The map of what a document says to the store alone: names and forms in it change without notice."""
COMMIT_ID = f"{PRIVATE}.commitId"
"""The field that a write changes in any case."""


def get_private(fields: Message) -> Message:
    """Return the fields of a document's private map."""
    return fields[PRIVATE].map_value.fields


def with_precondition(write: Message, version: Version | None) -> Message:
    """Return the write with its precondition, and with a fresh commit id so that it changes the document."""
    if write.HasField("update"):
        get_private(write.update.fields)["commitId"].string_value = secrets.token_hex(8)
    if version is None:
        write.current_document.exists = False
    else:
        write.current_document.update_time.FromNanoseconds(version.value)
    return write


def get_commit_id(document: Message) -> str:
    """Return the id of a document's last write, different even after a restore, "" if it has none."""
    if PRIVATE not in document.fields:
        return ""
    return str(get_private(document.fields)["commitId"].string_value)


def build_precondition_write(name: str, version: Version | None) -> Message:
    """Return a write that changes nothing, but fails its commit if the document's version has changed.

    An empty mask writes no field and leaves the ``update_time`` as it is.
    """
    if version is None:
        write = Write(delete=name)
        write.current_document.exists = False
        return write
    write = Write()
    write.update.name = name
    write.update_mask.SetInParent()
    write.current_document.update_time.FromNanoseconds(version.value)
    return write


MAX_ID_BYTES = 1500
"""The most bytes of an id, or of a value in a query's filter."""
_SEGMENT = re.compile(r"(?!\.{1,2}$)(?!__.*__$)[^/]+", re.DOTALL)


def document_name(documents: str, *path: str) -> str | None:
    """Return a document's full name below the name of a database's documents, or None if it is none."""
    if not all(_SEGMENT.fullmatch(segment) and len(segment.encode()) <= MAX_ID_BYTES for segment in path):
        return None
    return "/".join((documents, *path))


_MAX_EXPANSION = 2
"""The factor by which a document, as Firestore counts it, can be larger than its message: a small number
takes 4 bytes there, and counts as 8."""
_WRITE_OVERHEAD_BYTES = 200
"""More than a request needs besides its writes, for each of them."""


def require_write_fits(
    path: Sequence[str],
    write: Message,
    document: StoredDocument,
    stored: int = 0,
) -> None:
    """Check the write of a document.

    `stored` is the most bytes that it has, if the write changes only a part of it.
    """
    require_document_fits(path, _MAX_EXPANSION * (stored + write.ByteSize()), document.to_stored)


def require_request_fits(writes: Sequence[Message]) -> None:
    """Check the size of a commit. Each part of one is limited, so that it is not too large."""
    sizes = [write.ByteSize() for write in writes]
    if sum(sizes) + len(sizes) * _WRITE_OVERHEAD_BYTES <= MAX_REQUEST_BYTES:
        return
    name = writes[sizes.index(max(sizes))].update.name.partition("/documents/")[2]
    problem = f"is {max(sizes)} of a commit's {sum(sizes)} bytes"
    raise InvalidInput(name, problem, f"At most {MAX_REQUEST_BYTES} are allowed; store large data elsewhere.")
