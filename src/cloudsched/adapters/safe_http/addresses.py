"""The addresses that belong to the public internet."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_network
from typing import Final, TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address

_GLOBAL_UNICAST: Final = ip_network("2000::/3")
"""The only part of IPv6 that is assigned for global unicast (iana.org/assignments/ipv6-address-space). Everything
outside of it is refused: loopback, ``fc00::/7``, ``fe80::/10``, the deprecated site-local ``fec0::/10``, multicast,
NAT64 (``64:ff9b::/96``), and whatever is assigned there in the future."""

_SPECIAL_IPV4_NETWORKS: Final = tuple(
    ip_network(network)
    for network in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # shared address space of carriers
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # not IANA's: Azure's host (learn.microsoft.com, "What is IP address 168.63.129.16?")
        "169.254.0.0/16",  # link-local: metadata servers
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # IETF protocol assignments, with the two anycast addresses that are globally reachable
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # deprecated 6to4 relay anycast
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarking
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast (iana.org/assignments/ipv4-address-space)
        "240.0.0.0/4",  # reserved, with the limited broadcast address
    )
)
_SPECIAL_IPV6_NETWORKS: Final = tuple(
    ip_network(network)
    for network in (
        "2001::/23",  # IETF protocol assignments: Teredo, benchmarking, ORCHID, and the anycast services among them
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4: an IPv4 address that cannot be seen behind it
        "3fff::/20",  # documentation
    )
)
"""The blocks that are not globally reachable, from the IANA special-purpose address registries
(iana.org/assignments/iana-ipv4-special-registry, iana.org/assignments/iana-ipv6-special-registry), read in November
2026, the IPv6 one as updated on 2025-10-09. IPv6 blocks outside of `_GLOBAL_UNICAST` are left out. The table is our own
because the answer of ``ipaddress.is_global`` changes with Python's patch release (github.com/python/cpython/issues/
113171)."""


def is_public(address: Address) -> bool:
    """Return whether an address belongs to the public internet and is reachable from everywhere alike."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _SPECIAL_IPV4_NETWORKS)
    if address.ipv4_mapped is not None:
        return is_public(address.ipv4_mapped)
    return address in _GLOBAL_UNICAST and not any(address in network for network in _SPECIAL_IPV6_NETWORKS)
