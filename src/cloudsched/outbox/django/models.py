"""The outbox's table as Django's migrations and admin see it. The outbox itself uses SQL."""

from typing import ClassVar

from django.db import models

from cloudsched.outbox.rows import ID_LENGTH, INSTANT_LENGTH, TABLE, TASK_ID_LENGTH, WORD_LENGTH


class OutboxRow(models.Model):  # type: ignore[misc]  # Django has no types
    """A row. `cloudsched.outbox.rows` says what each column means."""

    number = models.BigAutoField(primary_key=True)
    id = models.CharField(max_length=ID_LENGTH, unique=True)
    task_id = models.CharField(max_length=TASK_ID_LENGTH)
    action = models.CharField(max_length=WORD_LENGTH)
    content = models.TextField()
    written_at = models.CharField(max_length=INSTANT_LENGTH)
    state = models.CharField(max_length=WORD_LENGTH)
    due_at = models.CharField(max_length=INSTANT_LENGTH)
    attempts = models.IntegerField()
    claim = models.CharField(max_length=ID_LENGTH)
    error = models.TextField()

    class Meta:
        """The table's name and indexes, which are those of `cloudsched.outbox.sqlalchemy`."""

        db_table = TABLE
        indexes: ClassVar = [
            models.Index(fields=["state", "due_at"], name=f"{TABLE}_due"),
            models.Index(fields=["task_id", "state"], name=f"{TABLE}_task"),
            models.Index(fields=["claim"], name=f"{TABLE}_claim"),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.task_id}: {self.state}"
