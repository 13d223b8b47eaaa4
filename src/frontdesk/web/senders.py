"""Senders: whom it is counted for what comes from an address."""

import ipaddress

NETWORK_BITS = 64
"""Whoever has one address of IPv6 has all that share so many bits with it."""


def sender_of(address: str) -> str:
    """Whom it is counted for what comes from an address: that, or the network of IPv6 that it is in. What is
    no address is left as it is."""
    if ":" not in address:
        return address
    try:
        parsed = parsed_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    return str(ipaddress.ip_network((parsed, NETWORK_BITS), strict=False))


def parsed_address(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """One of IPv4 that is written as one of IPv6 is one of IPv4."""
    parsed = ipaddress.ip_address(address.partition("%")[0])
    return getattr(parsed, "ipv4_mapped", None) or parsed
