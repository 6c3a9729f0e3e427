# SPDX-License-Identifier: Apache-2.0
"""Starts the processes of one virtual machine (the card model, QEMU), waits for its end, and leaves none of them behind."""
import asyncio
import contextlib
import ctypes
import os
import signal
import tempfile

from bzimage import bootable

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)


class MachineError(Exception):
    """The machine could not be started or did not end."""


def die_with_parent():
    """Between fork and exec: the child goes when this program goes, however that happens."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


@contextlib.asynccontextmanager
async def process(arguments, log):
    """A child in a process group of its own; ended, group and all, when the block is left."""
    try:
        with open(log, "ab") as out:
            child = await asyncio.create_subprocess_exec(
                *arguments, stdin=asyncio.subprocess.DEVNULL, stdout=out, stderr=out, preexec_fn=die_with_parent,
                start_new_session=True)
    except OSError as error:
        raise MachineError(f"cannot start {arguments[0]}: {error.strerror}") from error
    try:
        yield child
    finally:
        for how, seconds in ((signal.SIGTERM, 5), (signal.SIGKILL, 5)):
            if child.returncode is not None:
                break
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, how)
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(asyncio.shield(child.wait()), seconds)


async def run(arguments, log=None, seconds=None, **options):
    """Output and status of a program."""
    child = await asyncio.create_subprocess_exec(
        *arguments, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
        stderr=log or asyncio.subprocess.DEVNULL, preexec_fn=die_with_parent, **options)
    try:
        out, _ = await asyncio.wait_for(child.communicate(), seconds)
        return child.returncode, out.decode(errors="replace")
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()


async def accelerator(qemu, kernel, cache):
    """kvm if /dev/kvm can run this kernel, else tcg. What was found holds until the machine is started again."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "tcg"
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        tried = f"{file.read().strip()} {qemu} {kernel} "
    kept = os.path.join(cache, "vm", "accelerator")
    with contextlib.suppress(OSError), open(kept, encoding="utf-8") as file:
        known = file.read()
        if known.startswith(tried):
            return known[len(tried):]
    verdict = await try_kvm(qemu, kernel)
    with contextlib.suppress(OSError), open(kept, "w", encoding="utf-8") as file:
        file.write(tried + verdict)
    return verdict


async def try_kvm(qemu, kernel):
    """A nested or paravirtual /dev/kvm may exist and be of no use."""
    child = await asyncio.create_subprocess_exec(
        qemu, "-machine", "q35,accel=kvm", "-cpu", "host", "-m", "512", "-nodefaults", "-no-user-config", "-display",
        "none", "-no-reboot", "-serial", "stdio", "-kernel", f"{kernel}/vmlinuz",
        "-append", "console=ttyS0 panic=-1", stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, preexec_fn=die_with_parent)
    verdict = "tcg"
    with contextlib.suppress(asyncio.TimeoutError):
        while line := await asyncio.wait_for(child.stdout.readline(), 15):
            if b"Kernel panic" in line or b"Linux version" in line:
                verdict = "kvm"
                break
            if b"internal error" in line:
                break
    if child.returncode is None:
        child.kill()
    await child.wait()
    return verdict


def sim_arguments(folder):
    """What spanker-sim tells QEMU: memory, a port and a card each, a serial port to its control socket."""
    with open(f"{folder}/qemu.args", encoding="utf-8") as file:
        return file.read().splitlines()


class Machine:
    """A scenario on a kernel. Logs lie in a folder of its own: console.log, tap.log, qemu.log, sim.log; sockets in a
    short one, for their paths may have 107 characters. A warning ends a stock
    kernel; the debug kernel goes on, for it has more to tell."""

    def __init__(self, scenario, series, kernel, folder, tools):
        self.scenario, self.kernel, self.folder, self.tools = scenario, kernel, folder, tools
        self.strict = "" if series == "debug" else "panic_on_warn=1"
        self.sockets = None

    def command(self, shell=False):
        scenario = self.scenario
        kvm = self.tools.accelerator == "kvm"
        cmdline = ["console=ttyS0", "panic=-1", "oops=panic", "loglevel=7", self.strict, scenario.cmdline]
        if not kvm:
            cmdline += ["no_timer_check", "tsc=reliable", "mitigations=off", "nokaslr"]  # the last two: a tenth faster
        if shell:
            cmdline += ["spanker.shell"]
        arguments = [
            self.tools.qemu, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
            "-cpu", "host" if kvm else "max,la57=off", "-smp", str(scenario.cpus),
            *scenario.qemu]  # before the cards: an IOMMU must be there when they are plugged
        if scenario.cards:
            arguments += sim_arguments(self.sockets)
        else:
            arguments += ["-machine", f"q35,accel={self.tools.accelerator}", "-m", f"{scenario.memory_mib}M"]
        arguments += [
            "-kernel", bootable(self.kernel), "-initrd", f"{self.folder}/initramfs",
            "-append", " ".join(filter(None, cmdline))]
        if shell:
            arguments += ["-serial", "mon:stdio"]
        else:
            arguments += ["-serial", f"file:{self.folder}/console.log", "-serial", f"file:{self.folder}/tap.log"]
        return arguments

    @contextlib.asynccontextmanager
    async def cards(self):
        """The card model, if the scenario has cards, ready to be connected to."""
        scenario = self.scenario
        if not scenario.cards:
            yield None
            return
        log = f"{self.folder}/sim.log"
        with tempfile.TemporaryDirectory(prefix="spanker-vm-") as self.sockets:
            async with process([f"{self.tools.build}/bin/spanker-sim", "--cards", str(scenario.cards), "--topology",
                                scenario.topology, "--dir", self.sockets, f"--accel={self.tools.accelerator}",
                                "--guest-memory", f"{scenario.memory_mib}M", *scenario.sim], log) as sim:
                for _ in range(1500):
                    if os.path.exists(f"{self.sockets}/qemu.args") or sim.returncode is not None:
                        break
                    await asyncio.sleep(0.02)
                if not os.path.exists(f"{self.sockets}/qemu.args"):
                    raise MachineError(f"spanker-sim wrote no qemu.args: {last_line(log)}")
                yield sim

    async def boot(self, patience=1):
        """Boots and waits for the end. A machine that does not end, or whose parts die, is an error."""
        seconds = int(self.scenario.seconds * patience)
        log = f"{self.folder}/qemu.log"
        async with self.cards() as sim, process(self.command(), log) as qemu:
            waits = {asyncio.ensure_future(qemu.wait())}
            if sim:
                waits.add(asyncio.ensure_future(sim.wait()))
            try:
                await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waits:
                    wait.cancel()
            if qemu.returncode is None and sim and sim.returncode is not None:
                raise MachineError(f"spanker-sim ended with {sim.returncode}: {last_line(self.folder + '/sim.log')}")
            if qemu.returncode is None:
                raise MachineError(f"did not end in {seconds} seconds")
            if qemu.returncode:
                raise MachineError(f"QEMU ended with {qemu.returncode}: {last_line(log)}")

    async def shell(self):
        """The same machine with this terminal as its console."""
        async with self.cards():
            child = await asyncio.create_subprocess_exec(*self.command(shell=True), preexec_fn=die_with_parent)
            try:
                await child.wait()
            finally:
                if child.returncode is None:
                    child.kill()


def last_line(path):
    with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as file:
        lines = [line.strip() for line in file if line.strip()]
        return lines[-1] if lines else "it said nothing"
    return "it said nothing"
