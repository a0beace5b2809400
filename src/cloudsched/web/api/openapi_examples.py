"""The examples in ``/openapi.json``: one request for each body, and one response for each schema.

Tests validate each against its schema, and each request against the model that parses it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cloudsched.web.api.openapi_overview_examples import OCCURRENCE, OVERVIEW_RESPONSES
from cloudsched.web.api.openapi_record_examples import RECORD_RESPONSES

if TYPE_CHECKING:
    from collections.abc import Sequence

Json = dict[str, Any]

_LEASE: Final = "n1VbWxEXAMPLEq0y2Zr8cQ"
_WEEKDAYS: Final = "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=9"
_REPORT: Final[Json] = {
    "title": "Weekday report",
    "handler": "report",
    "payload": {"about": "sales"},
    "schedule": {"rrule": _WEEKDAYS, "timezone": "Europe/Paris"},
}
_RENDER: Final[Json] = {
    "title": "Render a film",
    "handler": "render",
    "payload": {"frames": 240},
    "pull": {"queue": "gpu", "skill": "cuda"},
}
_MAIL_EVENT: Final[Json] = {"type": "BOUNCED", "messageId": "<EXAMPLE@example.com>", "address": "ada@example.com"}
_PREFERENCES: Final[Json] = {
    "name": "Ada",
    "email": {"address": "ada@example.com"},
    "webhook": {"url": "https://example.com/hook"},
    "timezone": "Europe/Paris",
    "locale": "fr",
    "channels": {"REMINDER": ["EMAIL", "WEB"]},
    "quietHours": {"from": "22:00", "until": "07:00"},
    "digest": "every day at 8:00",
}
_NOTHING_OPEN: Final[Json] = {"assumptions": [], "questions": [], "missing": [], "steps": []}
_REQUESTS: Final[dict[str, dict[str, Json]]] = {
    "update_task": {
        "reschedule": {
            "summary": "Move a task to Mondays",
            "value": {"schedule": {"rrule": "FREQ=WEEKLY;BYDAY=MO;BYHOUR=9"}},
        }
    },
    "trigger": {"payload": {"summary": "Once, about something else", "value": {"payload": {"about": "returns"}}}},
    "retry": {"execution": {"summary": "Retry one execution", "value": {"executionId": "20270104T080000Z"}}},
    "backfill": {
        "range": {
            "summary": "Run January again",
            "value": {"start": "2027-01-01T00:00:00Z", "end": "2027-01-31T23:59:59Z"},
        }
    },
    "batch_change_tasks": {
        "count": {
            "summary": "Count the failed tasks of a team",
            "value": {"action": "retryFailed", "filter": {"label": "team=payments"}, "dryRun": True},
        },
        "pause": {
            "summary": "Pause all tasks of a handler",
            "value": {"action": "pause", "filter": {"handler": "report"}},
        },
    },
    "put_budget": {"month": {"summary": "A thousand queries a month", "value": {"maxQueriesPerMonth": 1000}}},
    "put_person": {"ada": {"summary": "Mail about reminders, and quiet nights", "value": _PREFERENCES}},
    "confirm_email": {"code": {"summary": "The code from the mail", "value": {"code": "01234567"}}},
    "record_mail_events": {"bounce": {"summary": "A mail has bounced", "value": {"events": [_MAIL_EVENT]}}},
    "put_calendar": {
        "days": {"summary": "By hand", "value": {"days": [{"date": "2027-07-14", "name": "Bastille Day"}]}},
        "holidays": {"summary": "A country's", "value": {"holidays": {"country": "FR"}}},
    },
    "put_script": {"count": {"summary": "Counts", "value": {"source": "return payload.prices.length"}}},
    "draft_task": {"words": {"summary": "Words", "value": {"text": "Call Ada tomorrow at 9:00", "timezone": "UTC"}}},
    "create_feed": {"reports": {"summary": "Only reports", "value": {"categories": ["REPORT"]}}},
    "send_event": {"approval": {"summary": "Approve", "value": {"payload": {"by": "grace"}}}},
    "claim": {
        "worker": {
            "summary": "Claim one run",
            "value": {"worker": "box-1", "skills": ["cuda"], "handlers": ["render"], "limit": 1},
        }
    },
    "heartbeat": {
        "progress": {
            "summary": "Renew the lease and report progress",
            "value": {"leaseToken": _LEASE, "progress": [{"text": "half", "at": "2027-01-04T08:01:00Z"}]},
        },
        "logs": {
            "summary": "Renew the lease and report what was logged",
            "value": {"leaseToken": _LEASE, "logs": {"lines": [{"text": "120 frames", "level": "INFO"}]}},
        },
    },
    "complete": {
        "success": {"summary": "The work is done", "value": {"leaseToken": _LEASE, "content": {"frames": 240}}},
        "cancelled": {
            "summary": "There was nothing to do",
            "value": {"leaseToken": _LEASE, "status": "CANCELLED", "message": "The film was deleted."},
        },
    },
    "fail": {
        "retry": {
            "summary": "The attempt failed; try again in a minute",
            "value": {
                "leaseToken": _LEASE,
                "error": {"type": "OutOfMemory", "message": "The GPU is out of memory."},
                "retryAfter": 60,
            },
        }
    },
    "release": {
        "shutdown": {"summary": "The worker shuts down", "value": {"leaseToken": _LEASE, "reason": "Shutting down."}}
    },
    "preview_schedule": {
        "weekdays": {
            "summary": "The next three weekdays at nine",
            "value": {"schedule": _REPORT["schedule"], "count": 3, "from": "2027-01-01T00:00:00Z"},
        }
    },
}


def build_request_examples(handlers: Sequence[str] | None) -> dict[str, dict[str, Json]]:
    """Return the examples of each operation with a body, by their names.

    Args:
        handlers: The names of the app's handlers where the API is open: then a new task names its owner, and one of
            these. None where callers must authenticate.
    """
    owner = {} if handlers is None else {"owner": "ada"}
    render = {"summary": "Work for a pool of workers", "value": {**_RENDER, **owner}}
    tasks = {"work": render}
    if handlers is None or handlers:
        handler = {} if handlers is None or "report" in handlers else {"handler": handlers[0]}
        report = {"summary": "A report every weekday at nine", "value": {**_REPORT, **handler, **owner}}
        tasks = {"report": report, "work": render}
    batch = {"summary": "Several tasks", "value": {"tasks": [each["value"] for each in tasks.values()]}}
    return {"create_task": tasks, "batch_create_tasks": {"batch": batch}, **_REQUESTS}


_TASK: Final[Json] = {
    **_REPORT,
    "schemaVersion": 2,
    "id": "weekday-report",
    "owner": "ada",
    "schedule": {
        "rrule": _WEEKDAYS,
        "dtstart": "2027-01-01T09:00:00",
        "timezone": "Europe/Paris",
        "rdates": [],
        "exdates": [],
        "gap": "shift",
        "fold": "first",
        "subDaily": "elapsed",
        "calendars": [],
    },
    "description": "",
    "purpose": "",
    "category": "REPORT",
    "children": [],
    "parallel": False,
    "onChildFailure": "fail",
    "deliveryChannels": ["WEB"],
    "labels": [],
    "queryPerExecution": 0,
    "tokensPerExecution": 0,
    "priority": "NORMAL",
    "lockLimit": 1,
    "retry": {"maxRetries": 3, "firstDelay": 0, "base": 5, "factor": 5.0, "cap": 3600, "jitter": 0.1},
    "expectedDuration": 300,
    "jitter": 0,
    "overlap": "skip",
    "catchUp": {"mode": "latest"},
    "isOneTime": False,
    "timezone": "Europe/Paris",
    "status": "ACTIVE",
    "revision": 1,
    "message": "",
    "nextExecutionTime": "2027-01-04T08:00:00Z",
    "createdAt": "2027-01-01T12:00:00Z",
    "updatedAt": "2027-01-01T12:00:00Z",
    "statusChangedAt": "2027-01-01T12:00:00Z",
    "runCount": 0,
    "consecutiveFailures": 0,
    "isRunning": False,
    "recentStatuses": [],
}
_WORK: Final[Json] = {**_TASK, **_RENDER, "id": "render-film", "isRunning": True}
_EXECUTION: Final[Json] = {
    "schemaVersion": 2,
    "id": "20270104T080000Z",
    "taskId": "weekday-report",
    "owner": "ada",
    "title": "Weekday report",
    "handler": "report",
    "category": "REPORT",
    "labels": [],
    "scheduledFor": "2027-01-04T08:00:00Z",
    "startedAt": "2027-01-04T08:00:00.120Z",
    "finishedAt": "2027-01-04T08:00:02.480Z",
    "attempts": [],
    "attemptsLeftOut": 0,
    "status": "SUCCEEDED",
    "content": {"pages": 3},
    "progress": [],
    "queries": 0,
    "tokens": 0,
    "isDelivered": True,
    "trigger": "SCHEDULE",
    "steps": [],
    "callsMade": 0,
}
_MESSAGE: Final[Json] = {
    "schemaVersion": 2,
    "id": "weekday-report.20270104T080000Z",
    "owner": "ada",
    "taskId": "weekday-report",
    "executionId": "20270104T080000Z",
    "title": "Weekday report",
    "body": "Sales are up by 3 %.",
    "isRead": False,
    "createdAt": "2027-01-04T08:00:02.480Z",
}
_FEED: Final[Json] = {
    "id": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "owner": "ada",
    "categories": ["REPORT"],
    "labels": [],
    "createdAt": "2027-01-04T08:00:00Z",
}
_PERSON: Final[Json] = {
    **_PREFERENCES,
    "owner": "ada",
    "email": {"address": "ada@example.com", "verified": False},
    "devices": [],
    "createdAt": "2027-01-04T08:00:00Z",
    "updatedAt": "2027-01-04T08:00:00Z",
}
_WEBHOOK_SECRET: Final = "whsec_EXAMPLEsecretOfAWebhook000000000000000000000="  # noqa: S105 - an example
_WHY = "It waits for a worker on the queue 'gpu', since 2027-01-04 at 09:00:00 (Europe/Paris); none has claimed it."
_RESPONSES: Final[dict[str, Json]] = {
    "Task": _TASK,
    "ReportedTask": _TASK,
    "FailedTask": _TASK,
    "TaskPage": {"tasks": [_TASK], "nextPageToken": "eyJhIjoxfQ"},
    "BatchResults": {"results": [{"status": 201, "task": _TASK}]},
    "Execution": _EXECUTION,
    **OVERVIEW_RESPONSES,
    "ExecutionPage": {"executions": [_EXECUTION]},
    "Tree": {"task": _TASK, "children": [], "omittedChildren": 0},
    "Claims": {
        "claims": [
            {
                "task": _WORK,
                "executionId": "20270104T080000Z",
                "scheduledFor": "2027-01-04T08:00:00Z",
                "attempt": 1,
                "startedAt": "2027-01-04T08:00:01Z",
                "progress": [],
                "leaseToken": _LEASE,
                "leaseUntil": "2027-01-04T08:05:01Z",
                "logs": {"level": "INFO", "maxLines": 200, "maxBytes": 16384, "bytesLeft": 16384},
            }
        ]
    },
    "HeartbeatResult": {
        "leaseUntil": "2027-01-04T08:06:00Z",
        "renewedAt": "2027-01-04T08:01:00Z",
        "isCancelled": False,
    },
    "Deliveries": {
        "deliveries": [
            {
                "channel": "EMAIL",
                "status": "SENT",
                "attempts": 1,
                "sentAt": "2027-01-04T08:00:03Z",
                "messageId": "<q0xRk3-EXAMPLE@example.com>",
            }
        ]
    },
    "MessagePage": {"messages": [_MESSAGE]},
    "Message": {**_MESSAGE, "isRead": True, "readAt": "2027-01-04T08:05:00Z"},
    "UnreadCount": {"unread": 3},
    "Person": _PERSON,
    "SavedPerson": {**_PERSON, "webhookSecret": _WEBHOOK_SECRET},
    "ExportPage": {"text": '{"kind":"usage","data":{"tasks":1,"executions":0,"messages":0,"queries":0,"tokens":0}}\n'},
    "VerificationStatus": {"address": "ada@example.com", "verified": False},
    "MailEventCount": {"recorded": 1},
    "WebhookSecret": {"webhookSecret": _WEBHOOK_SECRET},
    **RECORD_RESPONSES,
    "Feeds": {"feeds": [_FEED]},
    "NewFeedAddress": {**_FEED, "url": "https://api.example/v1/feeds/EXAMPLEsecret_of_a_feed-43-letters-and-digi.ics"},
    "Occurrences": {"occurrences": [OCCURRENCE]},
    "Explanation": {
        "taskId": "standup",
        "status": "ACTIVE",
        "summary": _WHY,
        "findings": [{"reason": "WAITING_FOR_WORKER", "sentence": _WHY, "at": "2027-01-04T08:00:00Z"}],
    },
    "SchedulePreview": {
        "description": "Every weekday at 09:00 (Europe/Paris)",
        "schedule": _TASK["schedule"],
        "occurrences": [OCCURRENCE],
    },
    "DraftResult": {
        "decision": "creation",
        "task": {"title": "Call Ada", "handler": "remind"},
        "schedule": _TASK["schedule"],
        "description": "every weekday at 09:00, Europe/Paris",
        "next": [OCCURRENCE],
        "draftToken": "eyEXAMPLE.0f",
        **_NOTHING_OPEN,
    },
    "CallerInfo": {"role": "admin", "seesAll": True, "mayChange": True, "now": "2027-01-04T08:00:00Z"},
    "Health": {"status": "ok", "circuits": {"store": "closed"}},
}


def response_example(schema: str) -> Json:
    """Return the example of a response with this schema."""
    return _RESPONSES[schema]
