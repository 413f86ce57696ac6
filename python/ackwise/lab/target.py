# SPDX-License-Identifier: MIT
"""What a kernel of the lab can be built for: a process in virtual time, or an emulated machine."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """An architecture, how its kernel is configured and made, and what that needs of the host."""

    name: str  # what commands call it
    arch: str  # ARCH of the kernel's Makefile
    base: str  # the configuration to start from
    goal: str  # what make is asked for
    image: str  # that, in make's output
    scope: str  # of what the host needs, in needs.tsv
    configs: tuple[str, ...]  # in linux/config, merged in this order
    own_configs: tuple[str, ...]  # those that a patched kernel has in addition
    cross: str = ""  # prefix of the cross compiler's commands
    tree: str = ""  # begins the name of the unpacked source; "": the lab's, without other machines

    @property
    def compiler(self) -> str:
        """The C compiler."""
        return f"{self.cross}gcc"

    @property
    def is_device(self) -> bool:
        """A machine whose processor is emulated; not the lab's process."""
        return self is not UML

    @property
    def make(self) -> tuple[str, ...]:
        """Variables of make."""
        cross = (f"CROSS_COMPILE={self.cross}",) if self.cross else ()
        return (f"ARCH={self.arch}", *cross)


UML = Target(
    "um", "um", "defconfig", "linux", "linux", "lab-build",
    ("lab.config",), ("ackwise.config",),
)  # fmt: skip
X86 = Target(
    "x86", "x86_64", "tinyconfig", "bzImage", "arch/x86/boot/bzImage", "device-x86",
    ("device/device.config", "device/x86.config"), ("device/policies.config",),
)  # fmt: skip
MIPS = Target(
    "mips", "mips", "tinyconfig", "vmlinux", "vmlinux", "device-mips",
    ("device/device.config", "device/mips.config"), ("device/policies.config",),
    cross="mips-linux-gnu-", tree="mips-",
)  # fmt: skip
DEVICES = {target.name: target for target in (X86, MIPS)}
