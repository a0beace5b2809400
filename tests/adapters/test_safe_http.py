"""URLs given by users lead to the public internet, whatever they look like and wherever their names point."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any

import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import try_each
from tests.harness import WAIT_SECONDS
from werkzeug.wrappers import Request, Response

from cloudsched.adapters.safe_http import is_public, make_session
from cloudsched.errors import InvalidInput
from cloudsched.local.wsgi_server import WebServer

PRIVATE = [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "168.63.129.16/32",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
]
"""iana.org/assignments/iana-ipv4-special-registry, multicast, and Azure's host."""

PRIVATE_IPV6 = [
    "::/96",
    "64:ff9b::/96",
    "64:ff9b:1::/48",
    "100::/64",
    "100:0:0:1::/64",
    "2001::/23",
    "2001:db8::/32",
    "2002::/16",
    "3fff::/20",
    "5f00::/16",
    "fc00::/7",
    "fe80::/10",
    "fec0::/10",
    "ff00::/8",
]
"""iana.org/assignments/iana-ipv6-special-registry, multicast, and what RFC 3879 and RFC 4291 deprecate."""


@pytest.fixture
def page() -> Iterator[tuple[str, list[str]]]:
    """A page on this machine, and the paths that it was asked for; /to?… redirects there."""
    asked: list[str] = []

    @Request.application
    def answer(request: Request) -> Response:
        asked.append(request.path)
        if request.path == "/to":
            return Response(status=302, headers={"Location": request.args["url"]})
        return Response("inside")

    with WebServer(answer) as server:
        server.serve()
        yield server.address, asked


@try_each(
    "url",
    [
        "http://169.254.169.254/computeMetadata/v1/",
        "http://127.0.0.1:{port}/",
        "http://localhost:{port}/",
        "http://2130706433:{port}/",
        "http://0x7f000001:{port}/",
        "http://0177.0.0.1:{port}/",
        "http://127.1:{port}/",
        "http://0.0.0.0:{port}/",
        "http://[::1]:{port}/",
        "http://[::ffff:127.0.0.1]:{port}/",
        "http://[::ffff:7f00:1]:{port}/",
        "http://[::]:{port}/",
        "http://user:password@127.0.0.1:{port}/",
        "http://127.0.0.1:{port}#@example.com/",
        "http://10.0.0.1/",
        "http://192.168.0.1/",
        "http://[fd20:ce::254]/",
        "http://[fe80::1]/",
        "http://[64:ff9b::a9fe:a9fe]/",
        "https://127.0.0.1:{port}/",
        "http://224.0.0.1/",
    ],
)
def test_an_internal_address_is_refused(page: tuple[str, list[str]], url: str) -> None:
    """Nothing is sent to an address that is not public, whatever its notation."""
    address, asked = page
    with pytest.raises(InvalidInput, match="may not be reached"), make_session() as web:
        web.get(url.format(port=address.partition(":")[2]), timeout=WAIT_SECONDS)
    assert not asked


def test_a_redirect_to_an_internal_address_is_refused(page: tuple[str, list[str]]) -> None:
    """An allowed page cannot redirect the fetcher to a forbidden one."""
    address, asked = page
    elsewhere = address.replace("127.0.0.1", "127.0.0.2")
    with make_session(["127.0.0.1/32"]) as web:
        assert web.get(f"http://{address}/", timeout=WAIT_SECONDS).text == "inside"
        for target in (f"http://{elsewhere}/secret", "http://169.254.169.254/", f"//{elsewhere}/secret"):
            with pytest.raises(InvalidInput):
                web.get(f"http://{address}/to", params={"url": target}, timeout=WAIT_SECONDS)
        with pytest.raises(requests.exceptions.InvalidSchema):
            web.get(f"http://{address}/to", params={"url": "file:///etc/passwd"}, timeout=WAIT_SECONDS)
    assert set(asked) == {"/", "/to"}


def _resolving(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[str]:
    """Let names lead to these addresses, one answer after the other; return the names that were asked for."""
    asked: list[str] = []
    rest = list(answers)

    def getaddrinfo(host: str, port: int, *_: Any, **__: Any) -> list[Any]:
        if host[0].isdigit():
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, port))]
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (place, port)) for place in rest.pop(0)]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return asked


def test_dns_rebinding_has_no_effect(page: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    """A name is resolved once, and the connection goes to the address that was checked."""
    port = page[0].partition(":")[2]
    asked = _resolving(monkeypatch, ["127.0.0.1"], ["127.0.0.2"])
    with make_session(["127.0.0.1/32"]) as web:
        assert web.get(f"http://rebind.example:{port}/", timeout=WAIT_SECONDS).text == "inside"
    assert asked == ["rebind.example"]
    _resolving(monkeypatch, ["127.0.0.2"])
    with make_session(["127.0.0.1/32"]) as web, pytest.raises(InvalidInput):
        web.get(f"http://rebind.example:{port}/", timeout=WAIT_SECONDS)


def test_a_name_with_one_internal_address_is_refused(
    page: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All addresses of a name have to be public, since the connection could go to any of them."""
    port = page[0].partition(":")[2]
    _resolving(monkeypatch, ["127.0.0.1", "169.254.169.254"])
    with make_session(["127.0.0.1/32"]) as web, pytest.raises(InvalidInput):
        web.get(f"http://mixed.example:{port}/", timeout=WAIT_SECONDS)


def test_the_environments_proxy_is_not_used(page: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy would connect to any address; passwords from .netrc are not sent either."""
    address, asked = page
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://{address}")
    with make_session() as web, pytest.raises(InvalidInput):
        web.get("http://10.0.0.1/", timeout=WAIT_SECONDS)
    assert not asked


@pytest.mark.parametrize("scheme", ["http", "https", "all"])
@pytest.mark.parametrize("place", ["request", "session"])
def test_a_request_that_names_a_proxy_is_refused(page: tuple[str, list[str]], scheme: str, place: str) -> None:
    """A proxy would connect to any address, so none is used, wherever it is configured."""
    address, asked = page
    url = f"{'https' if scheme == 'https' else 'http'}://8.8.8.8/"
    proxies = {scheme: f"http://{address}"}
    with make_session(["127.0.0.1/32"]) as web:
        web.proxies.update(proxies if place == "session" else {})
        with pytest.raises(InvalidInput, match="names a proxy"):
            web.get(url, timeout=WAIT_SECONDS, proxies=proxies if place == "request" else None)
    assert not asked


def test_the_certificate_must_match_the_host_name(page: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Connecting to the checked address still verifies the certificate of the name."""
    wanted: list[object] = []

    def wrap(*_: Any, server_hostname: object = None, **__: Any) -> None:
        wanted.append(server_hostname)
        raise ssl.SSLError("seen enough")

    monkeypatch.setattr(ssl.SSLContext, "wrap_socket", wrap)
    _resolving(monkeypatch, ["127.0.0.1"])
    with make_session(["127.0.0.1/32"]) as web, pytest.raises(requests.exceptions.SSLError):
        web.get(f"https://bank.example:{page[0].partition(':')[2]}/", timeout=WAIT_SECONDS)
    assert wanted == ["bank.example"]


@given(st.sampled_from(PRIVATE).flatmap(lambda network: st.ip_addresses(network=network)))
def test_no_special_network_is_public(address: IPv4Address) -> None:
    """No address of a special network is public, nor is its IPv6-mapped form."""
    assert not is_public(address)
    for carrier in ("::ffff:", "64:ff9b::"):
        assert not is_public(ip_address(f"{carrier}{address}"))


@given(st.sampled_from(PRIVATE_IPV6).flatmap(lambda network: st.ip_addresses(network=network)))
def test_no_special_ipv6_network_is_public(address: IPv6Address) -> None:
    """No address of a special network is public, whatever Python's own table says of it."""
    assert not is_public(address)


@pytest.mark.parametrize("address", ["192.0.0.8", "192.88.99.1", "3fff::1", "fec0::1", "168.63.129.16", "::7f00:1"])
def test_special_addresses_that_python_calls_global_are_refused(address: str) -> None:
    """The result is the same under every patch release of Python, since `ipaddress` does not decide it."""
    assert not is_public(ip_address(address))
    with pytest.raises(InvalidInput, match="may not be reached"), make_session() as web:
        web.get(f"http://[{address}]/" if ":" in address else f"http://{address}/", timeout=WAIT_SECONDS)


@given(st.ip_addresses(v=4))
def test_all_other_addresses_are_public(address: IPv4Address) -> None:
    """An address outside every special network is public, so the check does not refuse too much."""
    special = any(address in ip_network(each) for each in PRIVATE)
    assert special or is_public(address)
