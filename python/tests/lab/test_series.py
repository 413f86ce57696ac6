# SPDX-License-Identifier: MIT
"""`ackwise run` on a kernel with the patch series: the lab's own, with this host's files."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import lab_kernel

from ackwise.roads import sysctl

pytestmark = [pytest.mark.lab, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[3]
TRANSFER = """
import socket, threading
listener = socket.create_server(("127.0.0.1", 0))
sender = socket.create_connection(listener.getsockname())
receiver, _ = listener.accept()
def read():
    while receiver.recv(65536):
        pass
reader = threading.Thread(target=read)
reader.start()
for _ in range(100):
    sender.sendall(bytes(65536))
sender.close()
reader.join()
"""
INIT = """\
#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin PYTHONPATH={path}
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs tmpfs /run
ip link set lo up
ackwise() {{ {python} -m ackwise "$@" 2>&1; }}
says() {{ echo "== $1"; shift; "$@"; }}
says dry-run ackwise run adaptive --dry-run
says rival ackwise run picoquic --dry-run
says run ackwise run adaptive --detach
says chosen cat {policy}
{python} {transfer}
sleep 1.5
says status ackwise run --status --json
says second ackwise run every
says stop ackwise run --stop
says given-back cat {policy}
says gone ackwise run --status
echo "== end"
echo o > /proc/sysrq-trigger
sleep 60
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each command printed."""
    kernel = lab_kernel(stock=False)
    folder = tmp_path_factory.mktemp("series")
    transfer, init = folder / "transfer.py", folder / "init"
    transfer.write_text(TRANSFER)
    init.write_text(
        INIT.format(
            path=ROOT / "python",
            python=sys.executable,
            policy=sysctl.IPV4 / sysctl.POLICY,
            transfer=transfer,
        )
    )
    init.chmod(0o755)
    words = [
        *(str(kernel.linux), "mem=512M", "root=/dev/root", "rootfstype=hostfs", "rootflags=/"),
        *("ro", f"init={init}", "con=null", "con0=fd:0,fd:1", "kunit.enable=0", "panic=-1"),
    ]
    done = subprocess.run(
        words, stdin=subprocess.DEVNULL, capture_output=True, timeout=300, check=False
    )
    text = done.stdout.decode(errors="replace").replace("\r", "")
    parts = [part.partition("\n") for part in text.split("== ")[1:]]
    assert parts and parts[-1][0] == "end", text
    return {name: rest for name, _, rest in parts}


def test_a_kernel_with_the_series_is_the_first_road(said: dict[str, str]) -> None:
    assert said["dry-run"].startswith("by patch series: /proc/sys/net/ipv4/")
    assert "which no kernel has" in said["rival"]


def test_the_policy_is_in_force_and_counted(said: dict[str, str]) -> None:
    assert "in force" in said["run"] and said["chosen"] == "adaptive\n"
    status = json.loads(said["status"])
    assert status["in_force"]
    counters = status["record"]["counters"]
    by_reason = [name for name in counters if not name.startswith("host_")]
    assert len(by_reason) > 20 and sum(counters[name] for name in by_reason) > 10
    assert "adaptive is in force, by process" in said["second"]


def test_everything_is_stock_again(said: dict[str, str]) -> None:
    assert "adaptive" in said["stop"]
    assert said["given-back"] == "stock\n"
    assert said["gone"].startswith("no policy is in force")
