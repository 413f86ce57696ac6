# SPDX-License-Identifier: MIT
"""A simulator scenario on the real kernel, with the same input and result format."""

from collections.abc import Sequence
from pathlib import Path

from ackwise.engine.scenario import Policy, Scenario
from ackwise.errors import InputError
from ackwise.host import files
from ackwise.host.programs import program
from ackwise.lab import machine, measure, network, traffic
from ackwise.lab.extras import NOTHING, Extras
from ackwise.lab.machine import Kernel
from ackwise.lab.measure import LabResult
from ackwise.lab.network import CLIENT, SERVER
from ackwise.plans.policy import STOCK, check_in_kernel

KEPT = (
    "client.pcap", "server.pcap", "flows", "samples", "pings", "steps", "console",
    *(f"counters-{host}{when}" for host in (CLIENT, SERVER) for when in ("", "-before")),
)  # fmt: skip
SAMPLES = 100  # samples of `tcp_info` in a run
_LAB = "/run/lab"


class Prepared:
    """A scenario as files of a run: steps, batches for `ip` and `tc`, distributions.

    Raises InputError for keys that the lab does not support.
    """

    def __init__(
        self,
        scenario: Scenario,
        link: str,
        workload: str,
        kernel: Kernel,
        extras: Extras = NOTHING,
        *,
        in_force: Sequence[str] | None = None,
        checks: Sequence[str] = (),
    ) -> None:
        """`in_force`: steps that put policies in force at whole hosts; None: each socket asks for
        its own. `checks`: steps after the run."""
        self.scenario = scenario
        self.files: dict[str, str] = {}
        net = network.build(scenario, link, extras)
        requests = policies(scenario, kernel) if in_force is None else {}
        flows = traffic.build(scenario, workload, requests, extras)
        self.groups_of = flows.groups_of
        ip, tc = program("ip"), program("tc")
        lines = [f"env TC_LIB_DIR {_LAB}"]
        lines += [f"namespace {name}" for name in net.namespaces]
        for host, route in flows.routes.items():
            # attributes of the sending host's route to its peer
            peer = network.ADDRESS[CLIENT if host == SERVER else SERVER]
            net.ip[host] = [
                line + route if line.startswith(f"route add {peer} ") else line
                for line in net.ip[host]
            ]
        for name, text in net.tables.items():
            self.files[f"{name}.dist"] = text
        for node, path, value in net.sysctls:
            lines.append(f"write {node} {path} {value}")
        for (host, path), value in flows.sysctls.items():
            lines.append(f"write {host} {path} {value}")
        for node, batch in net.ip.items():
            self.files[f"ip-{node}"] = "\n".join(batch) + "\n"
            lines.append(f"exec {node} {ip} -batch {_LAB}/ip-{node}")
        for node, batch in net.tc.items():
            self.files[f"tc-{node}"] = "\n".join(batch) + "\n"
            lines.append(f"exec {node} {tc} -batch {_LAB}/tc-{node}")
        for host, port, router, router_port in net.ends:
            lines.append(f"offload {host} {port} {'gro' if net.gro[host] else 'none'}")
            # the router must not merge or split segments
            lines.append(f"offload {router} {router_port} none")
            lines.append(f"capture {host} {port} {_LAB}/{host}.pcap")
        lines += flows.steps
        lines += [f"exec-at {at} {node} {tc} {line}" for at, node, line in net.changes]
        if scenario.ping_interval_ns:
            lines.append(f"ping {scenario.ping_interval_ns}")
        lines += in_force or ()
        # sampled even without a report: waking up advances the clock and so changes the packets
        interval_ns = max(1, scenario.duration_ns // SAMPLES)
        lines.append(f"run {scenario.duration_ns} {interval_ns}")
        for i in range(net.routers):
            lines.append(f"exec r{i + 1} {tc} -s qdisc show")
        lines += checks
        self.steps = lines


def policies(scenario: Scenario, kernel: Kernel) -> dict[str, str]:
    """The policy that each group's sockets request; "" requests none.

    Only this function knows the form of a request, which linux/lab/traffic.c makes. `linux` means
    stock behaviour, so it selects the kernel's own code, not the policy of that name.
    """
    chosen = {}
    for index, group in enumerate(scenario.groups):
        for role, policy in (("policy", group.policy), ("peer_policy", group.peer_policy)):
            name = policy.name
            if not kernel.has_policies:
                if name != STOCK:
                    raise InputError(
                        f'--policy: "{name}": {kernel.label} has no ACK policies; use linux, or '
                        "build a kernel with linux/patches"
                    )
                chosen[f"{index}/{role}"] = ""
                continue
            chosen[f"{index}/{role}"] = "stock" if name == STOCK else request(policy)
            check(policy)
    return chosen


def check(policy: Policy) -> None:
    """InputError for a policy that no kernel has."""
    check_in_kernel(policy.name, "--policy")
    # without a policy there are no orders to clamp
    if policy.host != STOCK or not (policy.clamp or policy.name == STOCK):
        raise InputError(
            f"--policy: {policy.name}: a kernel's rules and its clamp cannot be changed; give "
            "host=linux and clamp=flight, to the policy or in the plan, or use the simulator"
        )


def request(policy: Policy) -> str:
    """The words by which a kernel is asked for it."""
    values = ",".join(f"{key}={value}" for key, value in policy.params.items())
    return f"{policy.name}:{values}" if values else policy.name


WALL_FOR_CPU = 20  # ratio of real time to processor time that a guest may have on a busy host


def cpu_limit_s(scenario: Scenario) -> float:
    """Processor time after which a run counts as hung: thirty times the expected value."""
    seconds = scenario.duration_ns / 1e9
    packet_bits = 8 * scenario.mtu_bytes
    packets = seconds * (scenario.down.rate_bps + scenario.up.rate_bps) / packet_bits
    return 120 + 30 * packets * 1e-4


def simulate(
    scenario: Scenario,
    link: str,
    workload: str,
    kernel: Kernel,
    *,
    extras: Extras = NOTHING,
    cancel: object = None,
    limit_s: float | None = None,
    keep: Path | None = None,
) -> LabResult:
    """One run on `kernel`; its captures, samples, steps and console are stored in `keep`.

    Raises InputError for keys that the lab does not support, RunError when the guest failed.
    """
    prepared = Prepared(scenario, link, workload, kernel, extras)
    with machine.run_folder(kernel) as folder:
        for name, text in prepared.files.items():
            machine.put(folder, name, text)
        try:
            machine.run(
                kernel,
                folder,
                prepared.steps,
                seed=scenario.seed,
                wall_limit_s=limit_s or WALL_FOR_CPU * cpu_limit_s(scenario),
                cpu_limit_s=None if limit_s else cpu_limit_s(scenario),
                cancel=cancel,
            )
            return measure.result(folder, scenario, prepared.groups_of, extras)
        finally:
            if keep is not None:
                files.make_folder(keep)
                for name in (*KEPT, *prepared.files):
                    files.copy(folder / name, keep / name)
