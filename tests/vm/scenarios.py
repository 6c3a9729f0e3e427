# SPDX-License-Identifier: Apache-2.0
"""The table of what is booted: a scenario is a machine and the programs that run in it, on each of its kernels."""
from dataclasses import dataclass

STOCK = ("6.1", "6.12", "7")


@dataclass(frozen=True)
class Program:
    """Runs in the guest. binaries are files of the build folder, tools are programs of this machine."""
    command: str
    seconds: int = 60
    binaries: tuple = ()
    tools: tuple = ()


@dataclass(frozen=True)
class Scenario:
    """One machine. All names in `programs` are keys of PROGRAMS."""
    name: str
    programs: tuple
    kernels: tuple = STOCK
    cards: int = 0
    topology: str = "ring"
    sim: tuple = ()        # further arguments of spanker-sim
    module: bool = True    # spanker.ko is in the guest (the programs load it)
    qemu: tuple = ()       # further arguments
    cmdline: str = ""      # further arguments of the kernel
    allowed: tuple = ()    # patterns: faults in the kernel's log that belong to the scenario
    expected: tuple = ()   # patterns that the kernel's log must have
    memory_mib: int = 1024
    cpus: int = 2
    seconds: int = 300     # for the whole boot, with one accelerated by KVM or not


PROGRAMS = {
    "boot": Program("sh /guest/boot.sh"),
}

SCENARIOS = (
    Scenario("plain", ("boot",), kernels=STOCK + ("debug",), module=False),
)
