# SPDX-License-Identifier: MIT
"""Live sockets as the kernel tells of them, from messages made by hand."""

import re
import socket
import struct
from pathlib import Path

import pytest

from ackwise.cli import main as cli
from ackwise.errors import RunError
from ackwise.host import sockets
from ackwise.lab.build import linux_folder


def attribute(kind: int, data: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(data), kind) + data + bytes(-len(data) % 4)


def message(family: int, local: str, peer: str, attributes: bytes = b"", state: int = 1) -> bytes:
    ends = [socket.inet_pton(family, a).ljust(16, b"\0") for a in (local, peer)]
    return (
        bytes([family, state, 0, 0]) + struct.pack(">HH", 5001, 20001) + b"".join(ends)
        + bytes(12) + bytes(20) + attributes
    )  # fmt: skip


def policy(choice: bytes, reason: bytes, counts: tuple[int, int, int, int], state: bytes) -> bytes:
    return attribute(
        23 | 0x8000,  # with NLA_F_NESTED, as newer kernels set it
        attribute(1, choice + b"\0")
        + attribute(2, reason + b"\0")
        + attribute(3, struct.pack("=QQQQ", *counts))
        + attribute(4, state + b"\0"),
    )


def test_numbers_are_those_of_the_series() -> None:
    # which the C compiler holds to the kernel's headers
    header = (linux_folder() / "selftests/netlink.h").read_text()
    given = dict(re.findall(r"_Static_assert\((\w+) == (\d+),", header))
    assert int(given["INET_DIAG_ACK_POLICY"]) == sockets._ACK_POLICY
    fuzz = linux_folder() / "fuzz/uapi"
    for name in ("TCP_ACK_POLICY", "INET_DIAG_ACK_POLICY"):
        stands = "\n".join(file.read_text() for file in sorted(fuzz.glob("*.h")))
        assert re.findall(rf"^#define {name} (\d+)", stands, re.MULTILINE) == [given[name]]
    readme = (linux_folder() / "README.md").read_text()
    assert f"{given['TCP_ACK_POLICY']} /* TCP_ACK_POLICY */" in readme


def test_a_socket_tells_its_policy_and_state() -> None:
    counts = (7, 56, 2_000_000, 38_000_000)
    told = policy(b"ratelimit:probe=3", b"segment-count", counts, b"a=4,b=9")
    before = attribute(2, bytes(240))  # tcp_info
    found = sockets.read_message(message(socket.AF_INET, "10.0.0.2", "10.0.0.1", before + told))
    assert found == sockets.LiveSocket(
        "10.0.0.2:5001", "10.0.0.1:20001", "established", "ratelimit:probe=3", "segment-count",
        7, 56, 2_000_000, 38_000_000, {"a": 4, "b": 9},
    )  # fmt: skip


def test_a_socket_without_policy_is_a_stock_one() -> None:
    found = sockets.read_message(message(socket.AF_INET6, "::1", "::", state=10))
    assert found == sockets.LiveSocket("[::1]:5001", "[::]:20001", "listen", "stock")


def test_a_policy_that_tells_nothing_has_no_values() -> None:
    told = policy(b"every", b"none", (0, 0, 0, 0), b"")
    found = sockets.read_message(message(socket.AF_INET, "10.0.0.2", "10.0.0.1", told))
    assert found.values == {}
    assert found.last_reason is None


def test_a_kernel_without_policies_is_told_of(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sockets, "AVAILABLE", tmp_path / "none")
    with pytest.raises(RunError, match="has no ACK policies"):
        sockets.live()
    assert cli.main(["policy", "show"]) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "linux/README.md" in said


def test_watching_is_for_live_sockets(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["policy", "show", "every", "--watch", "1s"]) == 2
    assert cli.main(["policy", "show", "--watch", "soon"]) == 2
    assert "--watch" in capsys.readouterr().err
