# SPDX-License-Identifier: MIT
"""Wireshark display filters that select a connection by addresses and ports."""

import ipaddress


def of_connection(endpoints: tuple[str, str]) -> str:
    """Filter for both directions between two endpoints; "" where they are pseudonyms."""
    try:
        (host, port), (peer, peer_port) = map(_split, endpoints)
    except ValueError:
        return ""
    kind = "ipv6" if host.version == 6 else "ip"
    parts = [f"{kind}.addr == {host}", f"{kind}.addr == {peer}", f"tcp.port == {port}"]
    return " && ".join([*parts, f"tcp.port == {peer_port}"])


def _split(endpoint: str) -> tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, int]:
    host, _, port = endpoint.rpartition(":")
    return ipaddress.ip_address(host.strip("[]")), int(port)
