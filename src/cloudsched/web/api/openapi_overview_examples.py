"""The examples in ``/openapi.json`` of responses about many tasks at once."""

from __future__ import annotations

from typing import Any, Final

Json = dict[str, Any]

OCCURRENCE: Final[Json] = {"utc": "2027-01-04T08:00:00Z", "local": "2027-01-04T09:00:00+01:00"}
OVERVIEW_RESPONSES: Final[dict[str, Json]] = {
    "TaskCount": {"count": 12, "isAtLeast": False},
    "ExecutionLogs": {
        "lines": [
            {
                "at": "2027-01-04T08:00:01Z",
                "level": "INFO",
                "logger": "shop.reports",
                "text": "12 orders since yesterday",
                "attempt": 1,
            }
        ],
        "leftOut": 0,
        "isUnreadable": False,
    },
    "TaskHistory": {
        "entries": [
            {
                "at": "2027-01-04T08:00:00Z",
                "action": "EDITED",
                "by": {"role": "owner", "subject": "user:ada"},
                "fields": [{"field": "title", "before": '"Report"', "after": '"Weekday report"'}, {"field": "payload"}],
            }
        ],
        "omittedEntries": 0,
    },
    "OccurrencePage": {
        "occurrences": [
            {
                "utc": "2027-01-04T08:00:00Z",
                "local": "2027-01-04T09:00:00+01:00",
                "taskId": "0f9b7a52c1d34e6f8a90b1c2d3e4f506",
                "owner": "ada",
                "title": "Weekday report",
                "handler": "report",
                "timezone": "Europe/Paris",
            }
        ],
        "nextPageToken": "WyIxZjQwZmMyYzA0Il0",
    },
    "Queues": {
        "queues": [{"queue": "gpu", "skill": "cuda", "waiting": 3, "firstSince": "2027-01-04T08:00:00Z", "workers": 1}]
    },
    "QueuedTaskPage": {
        "tasks": [
            {
                "taskId": "render-1",
                "owner": "ada",
                "handler": "render",
                "title": "Render a film",
                "skill": "cuda",
                "priority": "NORMAL",
                "offeredAt": "2027-01-04T08:00:00Z",
            }
        ]
    },
    "OverviewCounts": {
        "countedAt": "2027-01-04T08:00:00Z",
        "tasks": {"ACTIVE": 12, "PAUSED": 1, "COMPLETED": 30, "FAILED": 2, "CANCELLED": 0, "EXPIRED": 0},
        "open": {"RUNNING": 1, "RETRYING": 0, "SUSPENDED": 2},
        "hours": [{"start": "2027-01-04T08:00:00Z", "failed": 1, "others": 7}],
        "dueSoon": 3,
        "overdueSince": "2027-01-04T07:59:59Z",
        "starts": [{"scheduledFor": "2027-01-04T07:00:00Z", "lateness": 0.4}],
        "sweep": {
            "finishedAt": "2027-01-04T07:59:31Z",
            "lag": 29,
            "examined": 1,
            "dispatched": 1,
            "unsent": 0,
            "failed": 0,
        },
    },
    "ChangeCursor": {"cursor": "1f40fc2c04a90b1c"},
    "Handlers": {
        "handlers": [
            {
                "name": "report",
                "description": "Write a report.",
                "access": "users",
                "isTool": False,
                "isQuick": False,
                "payloadSchema": {"type": "object", "properties": {"about": {"type": "string"}}},
            }
        ]
    },
    "Workers": {
        "workers": [
            {
                "worker": "box-1",
                "queue": "gpu",
                "skills": ["cuda"],
                "claimedBy": "key:gpu",
                "seenAt": "2027-01-04T08:00:00Z",
                "isListening": True,
            }
        ]
    },
    "LockPage": {
        "locks": [
            {
                "key": "printer",
                "scope": "global",
                "holders": [
                    {
                        "taskId": "print-1",
                        "executionId": "20270104T080000Z",
                        "title": "Print",
                        "until": "2027-01-04T08:05:00Z",
                    }
                ],
                "waiters": [
                    {
                        "taskId": "print-2",
                        "executionId": "20270104T080100Z",
                        "title": "Print more",
                        "dueAt": "2027-01-04T08:01:00Z",
                    }
                ],
                "hasMoreWaiters": False,
            }
        ]
    },
}
