"""The schemas of responses that no model has: pages, claims, previews, problems."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


REFERENCE_TEMPLATE = "#/components/schemas/{model}"


def ref(name: str) -> Json:
    """Return a reference to a schema of the document."""
    return {"$ref": REFERENCE_TEMPLATE.format(model=name)}


def build_response_schemas() -> Json:
    """Return the schemas that have no model."""
    text, token = {"type": "string"}, {"nextPageToken": {"type": "string", "description": "Fetches the next page."}}
    occurrence = object_schema({"utc": instant_schema(), "local": instant_schema()}, "utc", "local")
    feed = {
        "id": text,
        "owner": text,
        "categories": array_schema(text),
        "labels": array_schema(text),
        "createdAt": instant_schema(),
    }
    return {
        "TaskPage": object_schema({"tasks": array_schema(ref("Task")), **token}, "tasks"),
        "ExecutionPage": object_schema({"executions": array_schema(ref("Execution")), **token}, "executions"),
        "Tree": _tree_schema(),
        "Claims": object_schema({"claims": array_schema(ref("Claim"))}, "claims"),
        "Claim": _claim_schema(),
        "HeartbeatResult": _heartbeat_schema(),
        "MessagePage": object_schema({"messages": array_schema(ref("Message")), **token}, "messages"),
        "UnreadCount": object_schema({"unread": {"type": "integer", "minimum": 0, "maximum": 1000}}, "unread"),
        "Feed": object_schema(feed, *feed),
        "Feeds": object_schema({"feeds": array_schema(ref("Feed"))}, "feeds"),
        "NewFeedAddress": object_schema({**feed, "url": {"type": "string", "format": "uri"}}, *feed, "url"),
        "ExportPage": object_schema({"text": {"type": "string", "description": "Lines of JSON."}, **token}, "text"),
        "VerificationStatus": object_schema(
            {"address": text, "verified": {"type": "boolean", "description": "Whether it already was."}},
            "address",
            "verified",
        ),
        "WebhookSecret": object_schema({"webhookSecret": text}, "webhookSecret"),
        "Occurrence": occurrence,
        "Occurrences": object_schema({"occurrences": array_schema(ref("Occurrence"))}, "occurrences"),
        "SchedulePreview": object_schema(
            {
                "description": text,
                "schedule": ref("Schedule"),
                "occurrences": array_schema(ref("Occurrence")),
                "assumptions": {**array_schema(text), "description": "What words left open, and how it was taken."},
                "title": {"type": "string", "description": "What the words say that the schedule is for."},
            },
            "description",
            "schedule",
            "occurrences",
        ),
        "BatchResults": object_schema({"results": array_schema(ref("BatchResult"))}, "results"),
        "BatchResult": object_schema(
            {"status": {"type": "integer"}, "task": ref("Task"), "problem": ref("Problem")}, "status"
        ),
        "Health": object_schema(
            {"status": text, "circuits": {"type": "object", "additionalProperties": text}}, "status", "circuits"
        ),
        "Problem": object_schema(
            {
                "type": {"type": "string", "format": "uri"},
                "title": text,
                "status": {"type": "integer"},
                "detail": text,
                "field": {"type": "string", "description": "The path of the invalid field."},
                "hint": {"type": "string", "description": "What to do about it."},
                "readings": {
                    **array_schema({"type": "object"}),
                    "description": "The meanings of a schedule in words, to choose from: schedule, description, label.",
                },
            },
            "type",
            "title",
            "status",
            "detail",
        ),
    }


def _claim_schema() -> Json:
    properties = {
        "task": ref("Task"),
        "executionId": {"type": "string"},
        "scheduledFor": instant_schema(),
        "attempt": {"type": "integer", "description": "Counted from 1."},
        "startedAt": {**instant_schema(), "description": "When this attempt started."},
        "progress": {**array_schema(ref("ProgressNote")), "description": "The progress notes of earlier attempts."},
        "leaseToken": {"type": "string", "description": "Proves that the run is yours. It is returned only here."},
        "leaseUntil": {
            **instant_schema(),
            "description": "Send a heartbeat before this instant, or the claim may end.",
        },
    }
    return object_schema(properties, *properties)


def _heartbeat_schema() -> Json:
    """Return the schema of the response to a heartbeat."""
    properties = {
        "leaseUntil": {**instant_schema(), "description": "When the renewed lease ends."},
        "renewedAt": {**instant_schema(), "description": "When it was renewed: now, by the API's clock."},
        "isCancelled": {"type": "boolean", "description": "Whether the task was cancelled: stop."},
    }
    return object_schema(properties, *properties)


def _tree_schema() -> Json:
    about = "How many calls of this task were left out. Newer calls, and those nearer to the root, are shown first."
    left_out = {"type": "integer", "minimum": 0, "description": about}
    properties = {"task": ref("Task"), "children": array_schema(ref("Tree")), "omittedChildren": left_out}
    return object_schema(properties, *properties)


def object_schema(properties: Json, *required: str) -> Json:
    """Return the schema of an object with these properties, some of them required."""
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def array_schema(items: Json) -> Json:
    """Return the schema of an array."""
    return {"type": "array", "items": items}


def instant_schema() -> Json:
    """Return the schema of an instant in RFC 3339."""
    return {"type": "string", "format": "date-time"}
