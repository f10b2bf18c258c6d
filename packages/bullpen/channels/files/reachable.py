"""The hosts and addresses from which files of a platform may be fetched."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address

from yarl import URL

Address = IPv4Address | IPv6Address
Resolve = Callable[[str, int], Awaitable[Sequence[Address]]]

HTTPS_PORT = 443

# Prefixes that carry an IPv4 address in their last 32 bits: NAT64, and the deprecated
# IPv4-compatible form. The others have attributes in `ipaddress`.
_EMBEDDING = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("::/96"))
# Global in some versions of `ipaddress`: protocol assignments, 6to4 and its relays, site-local
# addresses, and local prefixes of NAT64.
_NOT_PUBLIC = (
    ipaddress.ip_network("192.0.0.0/24"),
    ipaddress.ip_network("192.88.99.0/24"),
    ipaddress.ip_network("2002::/16"),
    ipaddress.ip_network("fec0::/10"),
    ipaddress.ip_network("64:ff9b:1::/48"),
)


def is_public(address: Address) -> bool:
    """Whether an address is one of the Internet, and not of this machine or a private network."""
    for each in (address, *_embedded(address)):
        if not each.is_global or each.is_multicast or each.is_reserved or each.is_unspecified:
            # NAT64 is reserved, and as public as the address in it.
            if each is address and each in _EMBEDDING[0]:
                continue
            return False
        if any(each in network for network in _NOT_PUBLIC if network.version == each.version):
            return False
    return True


def _embedded(address: Address) -> tuple[Address, ...]:
    """The IPv4 addresses that an IPv6 address leads to."""
    if isinstance(address, IPv4Address):
        return ()
    found = [address.ipv4_mapped, *(address.teredo or ())]
    if any(address in network for network in _EMBEDDING):
        found.append(IPv4Address(int(address) & 0xFFFFFFFF))
    return tuple(each for each in found if each is not None)


async def resolve_host(host: str, port: int) -> list[Address]:
    """The addresses of a host, in the order of the system."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    # The scope of a link-local address follows a percent sign.
    return [ipaddress.ip_address(str(address[0]).partition("%")[0]) for *_, address in found]


@dataclass(frozen=True, slots=True)
class Hosts:
    """The hosts of a platform, from `Download.hosts`."""

    patterns: tuple[str, ...]

    def includes(self, url: URL) -> bool:
        """Whether a URL is on one of the hosts: https on port 443, or a fake on loopback."""
        return any(_matches(url, each) for each in self.patterns)


def _matches(url: URL, pattern: str) -> bool:
    if pattern.startswith("http://"):
        return is_loopback_url(url) and url.origin() == URL(pattern).origin()
    host = (url.host or "").lower().rstrip(".")
    name, _, port = pattern.lower().partition(":")
    if url.scheme != "https" or url.port != int(port or HTTPS_PORT):
        return False
    if name.startswith("."):
        return host.endswith(name) and len(host) > len(name)
    return host == name


def host_pattern(url: str) -> str:
    """The pattern in `Download.hosts` that includes this URL, of a server from the settings."""
    found = URL(url)
    if is_loopback_url(found):
        return str(found.origin())
    host = found.host or ""
    return host if found.port == HTTPS_PORT else f"{host}:{found.port}"


def is_loopback_url(url: URL) -> bool:
    """Whether a URL is http on a loopback address, as the fake of a platform has it."""
    try:
        address = ipaddress.ip_address(url.host or "")
    except ValueError:
        return False
    return url.scheme == "http" and address.is_loopback
