"""What counts as a request of this machine: its name, what forwarded it, and which page sent it."""

from __future__ import annotations

import pytest
from tests.cases import try_each

from cloudsched.domain.local_requests import (
    find_detour,
    find_foreign_name,
    find_foreign_page,
    find_forwarding_header,
    is_loopback,
    is_same_origin,
)

FORWARDING = """
    Forwarded Via X-Forwarded X-Forwarded-For X-Forwarded-Host X-Forwarded-Proto X-Forwarded-Port X-Forwarded-Prefix
    X-Forwarded-User X-Forwarded-Client-Cert X-Forward-For Forwarded-For X-Original-Forwarded-For x-FORWARDED-for
    X-Real-IP X-RealIP X-Real-Port CF-Connecting-IP CF-Connecting-IPv6 CF-Ray CF-IPCountry CF-Visitor CDN-Loop
    True-Client-IP Client-IP X-Client-IP X-ClientIP X-Cluster-Client-IP Incap-Client-IP X-Sucuri-ClientIP
    Fly-Client-IP Fly-Region Fly-Forwarded-Port Fastly-Client-IP Fastly-FF Fastly-SSL Surrogate-Capability
    X-Appengine-User-IP X-Appengine-Country X-AppEngine-Remote-Addr X-Cloud-Trace-Context X-Goog-IAP-JWT-Assertion
    X-Goog-Authenticated-User-Email X-Amzn-Trace-Id X-Amz-Cf-Id X-Azure-ClientIP X-Azure-SocketIP X-Azure-FDID
    X-ARR-SSL X-ARR-LOG-ID WL-Proxy-Client-IP Proxy-Client-IP Proxy-Connection X-ProxyUser-Ip X-Remote-IP
    X-Remote-Addr Remote-Addr X-Originating-IP X-Host X-Host-Override X-Original-Host X-Original-URL X-Rewrite-URL
    X-Envoy-External-Address X-Envoy-Original-Path X-Vercel-Id X-Vercel-Forwarded-For X-NF-Client-Connection-IP
    DO-Connecting-IP Tailscale-User-Login Ngrok-Auth-User-Email X-Akamai-Edgescape Akamai-Origin-Hop X-Varnish
    Ali-Cdn-Real-Ip X-Coming-From X-Request-Start X-Scheme X-Auth-Request-Email X-BlueCoat-Via X-Client-Cert
"""
OWN = """
    Host User-Agent Accept Accept-Encoding Accept-Language Connection Content-Type Content-Length Cookie Origin
    Referer Authorization X-Api-Key Idempotency-Key If-Match If-None-Match traceparent tracestate baggage
    Sec-Fetch-Site Sec-Fetch-Mode Sec-Fetch-Dest Sec-Fetch-User Sec-CH-UA Sec-CH-UA-Platform
    Upgrade-Insecure-Requests DNT Sec-GPC Priority Cache-Control Pragma X-Requested-With Transfer-Encoding Expect TE
    Range X-CloudTasks-TaskName X-CloudTasks-QueueName X-CloudScheduler X-Cloudsched-Token
    X-Serverless-Authorization X-Request-ID X-Correlation-ID X-B3-TraceId Sentry-Trace X-Datadog-Trace-Id
    Access-Control-Request-Method Access-Control-Request-Headers Access-Control-Request-Private-Network
    Postman-Token X-Goog-Api-Client X-Goog-Request-Params Last-Event-ID X-Description X-Ship X-Membership From Date
"""


@try_each("name", FORWARDING.split())
def test_what_proxies_add_is_recognized(name: str) -> None:
    """The headers of the proxies that there are, of clouds, CDNs, tunnels and ingresses, by a rule and in any case."""
    for spelling in (name, name.lower(), name.upper()):
        assert find_forwarding_header(["Host", spelling]) == spelling


@pytest.mark.parametrize("name", ["X-Newcloud-Client-IP", "X-Tomorrow-Forwarded-By", "Nova-Real-Ip", "X-Proxied-For"])
def test_proxies_that_nobody_has_listed_are_recognized(name: str) -> None:
    """A header that says from where, by which words is usual, counts whoever made it."""
    assert find_forwarding_header([name]) == name


def test_what_browsers_and_clients_send_is_not_taken_for_a_proxys() -> None:
    """Nor what Cloud Tasks, Cloud Scheduler and tracing add."""
    assert find_forwarding_header(OWN.split()) is None


def test_the_refusal_of_a_forwarded_request_says_what_to_do() -> None:
    """It names the header, the direct way and the way with keys."""
    refusal = find_detour(["Host", "X-Forwarded-For"]) or ""
    assert all(part in refusal for part in ("'X-Forwarded-For'", "http://localhost", "CLOUDSCHED_API_KEYS", "keys new"))


@pytest.mark.parametrize(
    "host",
    ["localhost", "LOCALHOST:8080", "localhost.:8080", "app.localhost", "127.0.0.1:1", "127.9.9.9", "[::1]:8080", ""],
)
def test_names_of_this_machine_are_answered(host: str) -> None:
    """Each name and address that can mean no other machine, and a request of a program that names none."""
    assert find_foreign_name(host) is None


FOREIGN = """
    evil.example evil.example:8080 localhost.evil.example 127.0.0.1.nip.io evillocalhost 192.168.0.7 [::] 10.0.0.7:8080
    [::ffff:10.0.0.7] 2130706433 0x7f.1 127.1 [ @ :80 localhost.. localhost@evil.example evil.example@localhost.evil
"""


@try_each("host", FOREIGN.split())
def test_other_names_are_refused(host: str) -> None:
    """A name that somebody owns, an address that is not loopback, and what is no name at all."""
    assert find_foreign_name(host) is not None


@pytest.mark.parametrize("host", [None, "", "evil", "127.0.0.1.example", "10.0.0.7", "::ffff:10.0.0.7", "a.localhost"])
def test_only_loopback_hosts_are_loopback(host: str | None) -> None:
    """Where something is sent to, a name below localhost is not enough: a resolver may know it otherwise."""
    assert not is_loopback(host)
    assert is_loopback("::ffff:127.0.0.1")


@pytest.mark.parametrize("origin", ["null", "", "http://[", "http://", "//", "http://localhost", "http://localhost:81"])
def test_an_origin_is_compared_whole(origin: str) -> None:
    """Neither a part of it nor one that cannot be read is the same."""
    assert not is_same_origin(origin, "localhost:80")
    assert not is_same_origin(origin, "")


def test_a_page_elsewhere_is_told_by_what_browsers_send() -> None:
    """Sec-Fetch-Site decides where there is one, else Origin; reading is not refused."""
    own = {"Host": "localhost:1", "Origin": "http://localhost:1"}
    assert find_foreign_page("POST", own) is None
    assert find_foreign_page("POST", {**own, "Sec-Fetch-Site": "cross-site"})
    assert find_foreign_page("POST", {**own, "Origin": "http://localhost:2"})
    assert find_foreign_page("GET", {**own, "Origin": "http://localhost:2"}) is None
    assert find_foreign_page("POST", {"Host": "localhost:1"}) is None
    assert find_foreign_page("POST", {"Host": "localhost:1"}, needs_origin=True)
