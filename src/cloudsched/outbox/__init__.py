"""The transactional outbox: create tasks in your own database transaction. They are handed over after it.

A row holds what is wanted, and is committed or rolled back with everything else that the transaction
does. A relay hands committed rows over: to an app, or to an API through its client. A row's id makes that
safe to repeat, so a crash at any point neither loses a task nor makes two. `rows` says what a row holds,
`handover` the way of one row.

Start with `SqlalchemyOutbox` (``cloudsched.outbox.sqlalchemy``) or `DjangoOutbox`
(``cloudsched.outbox.django``). The first needs the extra ``sqlalchemy``, the second ``django``. The other
modules need neither.
"""
