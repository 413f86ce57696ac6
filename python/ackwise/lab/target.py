# SPDX-License-Identifier: MIT
"""Targets of a lab kernel: a process in virtual time, or an emulated machine."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """An architecture, its kernel's configuration and build, and its host requirements."""

    name: str  # name in commands
    arch: str  # ARCH of the kernel's Makefile
    base: str  # the initial configuration
    goal: str  # make's goal
    image: str  # path of the image in make's output
    scope: str  # scope of its host requirements in needs.tsv
    configs: tuple[str, ...]  # in linux/config, merged in this order
    own_configs: tuple[str, ...]  # additional ones for a patched kernel
    cross: str = ""  # prefix of the cross compiler's commands
    # Prefix of the unpacked source's folder; "": the lab's, without other architectures.
    tree: str = ""

    @property
    def compiler(self) -> str:
        """The C compiler."""
        return f"{self.cross}gcc"

    @property
    def is_device(self) -> bool:
        """Whether it is a machine with an emulated processor, not the lab's process."""
        return self is not UML

    @property
    def make(self) -> tuple[str, ...]:
        """Variables for make."""
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
