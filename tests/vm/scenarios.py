# SPDX-License-Identifier: Apache-2.0
"""The table of what is booted: a scenario is a machine and the programs that run in it, on each of its kernels."""
from dataclasses import dataclass, field

STOCK = ("6.1", "6.12", "7")


def defects(*words):
    """Arguments of spanker-sim for cards that are wrong, each CARD:DEFECT."""
    return tuple(argument for word in words for argument in ("--defect", word))


@dataclass(frozen=True)
class Program:
    """Runs in the guest. binaries are files of the build folder, tools are programs of this machine with their package,
    files are of this tree, each with its place in the guest, modules are of the kernel."""
    command: str
    seconds: int = 60
    binaries: tuple = ()
    tools: tuple = ()
    files: tuple = ()
    modules: tuple = ()
    optional: str = ""     # why a build may lack the binaries; else that is a failure


@dataclass(frozen=True)
class Scenario:
    """One machine. All names in `programs` are keys of PROGRAMS."""
    name: str
    programs: tuple
    kernels: tuple = STOCK
    cards: int = 0
    topology: str = "ring"
    sim: tuple = ()        # further arguments of spanker-sim
    qemu: tuple = ()       # further arguments
    cmdline: str = ""      # further arguments of the kernel
    allowed: tuple = ()    # patterns: faults in the kernel's log that belong to the scenario
    expected: tuple = ()   # patterns that the kernel's log must have
    memory_mib: int = 1024
    cpus: int = 2
    settings: dict = field(default_factory=dict)  # variables of the guest's tests
    seconds: int = 600     # for the whole boot, on a busy machine without KVM
    long: bool = False     # booted only when named: the settings say how long


HOLD = ("tests/vm_hold",)
WATCH = ("tests/vm_watch",)

IOMMU_CMDLINE = "intel_iommu=on iommu.strict=1"
IOMMU_QEMU = ("-device", "intel-iommu,caching-mode=on,intremap=off")

WRONG_CARDS = defects("1:magic", "2:abi", "3:uncalibrated", "4:not-ready", "5:no-queues", "6:short-bar", "7:no-bar",
                      "8:serial-zero", "10:serial-duplicate")
WRONG_CARDS_REFUSED = {"DEFECTS": "1:identity 2:identity 3:reset 4:reset 5:identity 6:BAR_0 7:BAR_0"}

# With it the log says how the cards were left when the machine is switched off, which "machine" waits for: first nobody may
# reach a card any more, then it reaches nobody's memory. Which number is on which bus depends on what ran before.
STATES_IN_LOG = "tp_printk"
MASTERS_NO_MORE = r"spanker 0000:0[12]:00\.0: disabling bus mastering"
SWITCHED_OFF = tuple(rf"(?s)spanker_state: card={card} old=ready new=gone.*?{MASTERS_NO_MORE}" for card in (0, 1)) + (
    rf"(?s){MASTERS_NO_MORE}.*?{MASTERS_NO_MORE}",)

MANY_MAPPINGS = ("DMA-API: exceeded 7 overlapping mappings", r"kernel/dma/debug\.c:\d+ add_dma_entry")

PROGRAMS = {
    "boot": Program("sh /guest/boot.sh"),
    "module": Program("sh /guest/module.sh", 180),
    "kunit": Program("sh /guest/kunit.sh"),
    "udev": Program("sh /guest/udev.sh", 180, tools=(("udevadm", "udev"),),
                    files=(("kernel/dist/60-spanker.rules", "etc/udev/rules.d/60-spanker.rules"),)),
    "removal": Program("sh /guest/removal.sh", 300, HOLD),
    "visibility": Program("sh /guest/visibility.sh", 240, HOLD, files=tuple(
        (f"docs/abi/{name}", f"abi/{name}") for name in ("sysfs-class-spanker", "debugfs-spanker"))),
    "visibility-removal": Program("sh /guest/visibility-removal.sh", 300, HOLD + WATCH),
    "bus-errors": Program("sh /guest/bus-errors.sh", 300, HOLD, modules=("aer_inject",)),
    "sleep": Program("sh /guest/sleep.sh", 300, HOLD, modules=("aer_inject",)),
    "machine": Program("sh /guest/machine.sh", 180, HOLD),
    "hangs": Program("sh /guest/hangs.sh", 180, HOLD),
    "refusals": Program("sh /guest/refusals.sh", 120, HOLD),
    "failures": Program("sh /guest/with-module.sh sh /guest/failures.sh", 300, ("tests/vm_failures",)),
    "iommu": Program("sh /guest/iommu.sh", 120, HOLD),
    "abi-bounced": Program("sh /guest/with-module.sh vm_abi --bounced", 180, ("tests/vm_abi",)),
    "steady": Program("sh /guest/with-module.sh vm_steady", 180, ("tests/vm_steady",)),
    "blocked": Program("sh /guest/with-module.sh vm_blocked", 180, ("tests/vm_blocked",)),
    "netlink": Program("sh /guest/with-module.sh vm_netlink", 180, ("tests/vm_netlink",)),
    "late": Program("sh /guest/with-module.sh vm_late", 60, ("tests/vm_late",)),
    "wedge": Program("sh /guest/with-module.sh vm_wedge", 120, ("tests/vm_wedge",)),
    "queues": Program("sh /guest/queues.sh", 120, HOLD),
    "fuzz": Program("sh /guest/with-module.sh sh /guest/fuzz.sh", 240, ("tests/vm_fuzz",)),
    "storm": Program("sh /guest/with-module.sh sh /guest/storm.sh", 300, ("tests/vm_storm",)),
    "abi": Program("sh /guest/with-module.sh vm_abi", 180, ("tests/vm_abi",)),
    "abi-32": Program("sh /guest/with-module.sh vm_abi32", 180, ("tests/vm_abi32",),
                      optional="the compiler makes no 32-bit programs (package g++-multilib)"),
    "contract": Program("sh /guest/with-module.sh contract_kernel --complete --gtest_filter=-*crossing*", 900,
                        ("tests/contract_kernel",)),
    "crossing": Program("sh /guest/with-module.sh contract_kernel --complete --gtest_filter=*crossing*", 400,
                        ("tests/contract_kernel",) + HOLD),
    "stack": Program("sh /guest/stack.sh", 300, HOLD + ("spankerd", "spankerctl"), (("dbus-daemon", "dbus-daemon"),)),
}

SCENARIOS = (
    # The module and everything on top of it.
    Scenario("module", ("boot", "module", "abi", "contract"), cards=4, seconds=1500),
    Scenario("stack", ("visibility", "removal", "stack"), cards=4, memory_mib=1536, seconds=900),
    Scenario("recovery", ("abi-32", "steady", "udev", "visibility-removal", "hangs", "bus-errors", "sleep"), ("6.12",), cards=2,
             seconds=900),
    # What depends on how a kernel saves, resets and restores a function. Not every kernel's port to the card model outlives a
    # sleep, so nothing comes after that.
    Scenario("recovery-others", ("hangs", "bus-errors", "sleep"), ("6.1", "7"), cards=2, settings={"SLEEP_ROUNDS": 3}),
    # Cards that are wrong beside sound ones.
    Scenario("refusals", ("refusals",), ("6.12",), cards=11, topology="none", sim=WRONG_CARDS, settings=WRONG_CARDS_REFUSED),
    # No interrupts but a line's, which the driver does not take.
    Scenario("no-messages", ("refusals",), ("6.12",), cards=2, topology="none", cmdline="pci=nomsi",
             settings={"DEFECTS": "0:interrupts 1:interrupts"}),
    # One process at a time has a queue; so many ports that a dump of them comes in pieces.
    Scenario("two-queues", ("queues", "netlink"), ("6.12",), cards=8, sim=("--queues", "2")),
    # Other ways to interrupt and to reach memory. Elsewhere a card has 16 queues with a vector each; with one vector they share it.
    Scenario("msi", ("abi",), ("6.12",), cards=2, sim=("--interrupts", "msi")),
    Scenario("one-vector", ("abi",), ("6.12",), cards=2, sim=("--interrupts", "msix1")),
    # The machine is switched off under work, so nothing comes after that.
    Scenario("machine", ("late", "machine"), cards=2, cmdline=STATES_IN_LOG, expected=SWITCHED_OFF),
    Scenario("swiotlb", ("abi-bounced",), ("6.12",), cards=2, cmdline="swiotlb=force"),
    Scenario("narrow", ("abi-bounced",), ("6.12",), cards=2, sim=("--dma-bits", "32"), memory_mib=5120),
    # At the end it is asked what all of them left mapped, and whether a transfer went where nothing is.
    Scenario("iommu", ("abi", "storm", "iommu"), ("6.12",), cards=2, cmdline=IOMMU_CMDLINE, qemu=IOMMU_QEMU,
             settings={"STORM_ROUNDS": 1}),
    # What is said of a mapping depends on the kernel.
    Scenario("iommu-maps", ("iommu",), ("6.1", "7"), cards=2, cmdline=IOMMU_CMDLINE, qemu=IOMMU_QEMU),
    # Load and malice; the long ones are those of `make fuzz` and `make soak`.
    Scenario("malice", ("wedge", "blocked", "fuzz", "crossing", "storm"), ("6.12",), cards=2, seconds=900,
             settings={"FUZZ_SECONDS": 10, "STORM_ROUNDS": 3}),
    Scenario("fuzz", ("fuzz",), ("6.12", "debug"), cards=2, settings={"FUZZ_SECONDS": 60}, long=True,
             allowed=MANY_MAPPINGS),
    Scenario("soak", ("storm", "crossing", "visibility-removal", "sleep"), ("6.12", "7", "debug"), cards=2,
             settings={"STORM_ROUNDS": 10, "SLEEP_ROUNDS": 50}, long=True),
    Scenario("soak-iommu", ("storm",), ("6.12",), cards=2, cmdline=IOMMU_CMDLINE, qemu=IOMMU_QEMU,
             settings={"STORM_ROUNDS": 10}, long=True),
    # The debug kernel.
    # The checker of DMA counts how often a page is registered at a time, and takes more than eight for a leak.
    Scenario("debug-malice", ("blocked", "fuzz", "crossing", "storm", "late", "machine"), ("debug",), cards=2, seconds=2400,
             settings={"FUZZ_SECONDS": 60, "STORM_ROUNDS": 1}, allowed=MANY_MAPPINGS, cmdline=STATES_IN_LOG,
             expected=SWITCHED_OFF),
    Scenario("debug-module", ("boot", "kunit", "module", "abi", "abi-32", "contract"), ("debug",), cards=4, seconds=3600),
    Scenario("debug-removal", ("removal", "visibility", "visibility-removal", "hangs", "netlink", "bus-errors", "sleep"), ("debug",),
             cards=2, seconds=2400),
    Scenario("debug-refusals", ("refusals",), ("debug",), cards=11, topology="none", sim=WRONG_CARDS,
             settings=WRONG_CARDS_REFUSED),
    # Others are refused memory as well: the checker of DMA then checks no more, and entries of /proc/irq that could not be
    # made are missed when they are to go.
    Scenario("debug-failures", ("failures",), ("debug",), cards=1, topology="none", seconds=1800,
             allowed=("DMA-API: cacheline tracking ENOMEM", r"fs/proc/generic\.c:\d+ remove_proc_entry")),
)
