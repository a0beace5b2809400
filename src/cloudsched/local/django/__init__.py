"""cloudsched inside a Django project: put ``cloudsched.local.django`` into ``INSTALLED_APPS``.

It reads these settings of the project:

* ``CLOUDSCHED_APP``: your app, as ``"shop.tasks.app"``.
* ``CLOUDSCHED_DATA``: the folder of its store.
* ``CLOUDSCHED_PAGE``: the access to the page. It is a function, or its name, that takes the request and
  returns a `cloudsched.Visitor`, or None. Or it is ``True`` for those who sign in with a key of the API, or
  ``False`` for nobody. By default superusers are its admins, where ``django.contrib.auth`` is installed. Elsewhere
  people sign in at ``/ui/``.
* ``CLOUDSCHED_THREADS``: the most handlers that run at the same time.

The processes that serve the project start it, and one of them runs the tasks. Management commands and other
programs only create tasks. ``path("scheduler/", include("cloudsched.local.django.urls"))`` is the API and the
page.
"""
