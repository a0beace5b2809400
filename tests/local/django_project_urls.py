"""The addresses of the project."""

from django.urls import include, path

urlpatterns = [path("tools/scheduler/", include("cloudsched.local.django.urls"))]
