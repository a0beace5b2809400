"""Create the outbox's table."""

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):  # type: ignore[misc]  # Django has no types
    """The first one."""

    initial = True
    dependencies: ClassVar[list[tuple[str, str]]] = []
    operations: ClassVar = [
        migrations.CreateModel(
            name="OutboxRow",
            fields=[
                ("number", models.BigAutoField(primary_key=True, serialize=False)),
                ("id", models.CharField(max_length=36, unique=True)),
                ("task_id", models.CharField(max_length=128)),
                ("action", models.CharField(max_length=10)),
                ("content", models.TextField()),
                ("written_at", models.CharField(max_length=32)),
                ("state", models.CharField(max_length=10)),
                ("due_at", models.CharField(max_length=32)),
                ("attempts", models.IntegerField()),
                ("claim", models.CharField(max_length=36)),
                ("error", models.TextField()),
            ],
            options={
                "db_table": "cloudsched_outbox",
                "indexes": [
                    models.Index(fields=["state", "due_at"], name="cloudsched_outbox_due"),
                    models.Index(fields=["task_id", "state"], name="cloudsched_outbox_task"),
                    models.Index(fields=["claim"], name="cloudsched_outbox_claim"),
                ],
            },
        ),
    ]
