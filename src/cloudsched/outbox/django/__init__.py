"""The outbox for Django. Put ``cloudsched.outbox.django``, which has its table, into ``INSTALLED_APPS``.

`DjangoOutbox` is what you use. `models` and `migrations` have the names by which Django finds them.
Nothing else here imports them, so an outbox may be made before Django is set up.
"""

from cloudsched.outbox.django.outbox import DjangoOutbox

__all__ = ["DjangoOutbox"]
