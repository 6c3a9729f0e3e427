#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Boots the scenarios of scenarios.py in virtual machines and says what came of it.

    tests/vm/run.py                          every scenario on every stock kernel
    tests/vm/run.py --debug                  the scenarios of the debug kernel
    tests/vm/run.py --set NAME=VALUE ...     a setting of the tests: FUZZ_SECONDS, FUZZ_SEED, STORM_ROUNDS
    tests/vm/run.py --list                   names of all boots
    tests/vm/run.py NAME...                  only these: a scenario, or one boot of it as --list says
    tests/vm/run.py --shell KERNEL [NAME]    a shell in the guest of a scenario (exit or ctrl-a x ends it)

Verdict lines for tools/check.sh (`passed N`, `failed 1 SENTENCE`, `skipped 1 REASON`) go to stdout, one line per boot to
stderr; what a boot printed stays in OUT/BOOT/{tap,console,qemu,sim}.log."""
import argparse
import asyncio
import contextlib
import os
import shutil
import signal
import sys
import time
from types import SimpleNamespace

from guest import Guest, GuestError, find_program
from machine import Machine, MachineError, accelerator, run
from report import Results, read_log, read_programs
from scenarios import PROGRAMS, SCENARIOS

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CACHE = os.environ.get("SPANKER_CACHE") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "spanker")
UNAVAILABLE = 75
DEBUG_SLOWER = 3  # at least: the checkers of the debug kernel
CARD_ID = "0xdead:0xbeef"


class Unavailable(Exception):
    """Something that is fetched or built once cannot be had now: a reason to skip."""


class Broken(Exception):
    """Something of this tree does not build: a reason to fail."""


def boots(options):
    """The (name, scenario, kernel) to be booted."""
    chosen = []
    for scenario in SCENARIOS:
        for kernel in scenario.kernels:
            name = f"{scenario.name}-{kernel}"
            if options.names:
                if name not in options.names and scenario.name not in options.names:
                    continue
            elif scenario.long or options.debug != (kernel == "debug"):
                continue
            chosen.append((name, scenario, kernel))
    known = {scenario.name for scenario in SCENARIOS} | {
        f"{scenario.name}-{kernel}" for scenario in SCENARIOS for kernel in scenario.kernels}
    for name in options.names:
        if name not in known:
            sys.exit(f"run.py: no scenario '{name}'; --list says which there are")
    return chosen


async def piece(*command):
    """The path that a program of tools/vm prints; its log goes to stderr. The last line of that says why not."""
    log = os.path.join(OPTIONS.out, f"{'-'.join(os.path.basename(word) for word in command)}.log")
    with open(log, "w+b") as file:
        status, out = await run([os.path.join(ROOT, "tools/vm", command[0]), *command[1:]], log=file, cwd=ROOT)
        file.seek(0)
        said = file.read().decode(errors="replace").strip()
    if status == 0:
        return out.strip().splitlines()[-1]
    print(said, file=sys.stderr)
    reason = said.splitlines()[-1] if said else f"{command[0]} failed"
    raise (Unavailable if status == UNAVAILABLE else Broken)(reason)


class Pieces:
    """Kernels and modules, each made once and by one at a time: they share the compiler's cores."""

    def __init__(self):
        self.made = {}
        self.lock = asyncio.Lock()

    async def get(self, *command):
        async with self.lock:
            if command not in self.made:
                try:
                    self.made[command] = await piece(*command)
                except (Unavailable, Broken) as error:
                    self.made[command] = error
        if isinstance(self.made[command], Exception):
            raise self.made[command]
        return self.made[command]

    async def kernel(self, series):
        return await (self.get("debug-kernel.sh") if series == "debug" else self.get("fetch.sh", "kernel", series))

    async def module(self, series):
        return await self.get("module.sh", series)


def lacks(program):
    """Whether the build may do without this program's binaries, and does."""
    return program.optional and not all(os.path.exists(os.path.join(OPTIONS.build, "bin", binary))
                                        for binary in program.binaries)


async def make_guest(scenario, programs, series, kernel, pieces, path):
    module = await pieces.module(series)

    def make():
        guest = Guest(kernel)
        guest.add_module("virtio_console")
        guest.add_module("virtio_pci")
        guest.add_own_module(module)
        lines = []
        for name in programs:
            program = PROGRAMS[name]
            seconds = int(program.seconds * OPTIONS.patience * (DEBUG_SLOWER if series == "debug" else 1))
            lines.append(f"{name} {seconds} {program.command}")
            for binary in program.binaries:
                guest.add_program(os.path.join(OPTIONS.build, "bin", binary))
            for tool, package in program.tools:
                guest.add_program(find_program(tool, package))
            for kernel_module in program.modules:
                guest.add_module(kernel_module)
            for source, place in program.files:
                guest.add_file(os.path.join(ROOT, source), place)
        guest.write(path, lines, {"RELEASE": guest.release, "CARDS": scenario.cards, "CARD_ID": CARD_ID,
                                  "SLOWER": DEBUG_SLOWER if series == "debug" else 1,
                                  **scenario.settings, **OPTIONS.set})

    await asyncio.to_thread(make)


async def boot(name, scenario, series, pieces, slots):
    """Runs one boot; returns its results and how long it took."""
    folder, results, started = os.path.join(OPTIONS.out, name), Results(), time.monotonic()
    try:
        kernel = await pieces.kernel(series)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        programs = [name for name in scenario.programs if not lacks(PROGRAMS[name])]
        async with slots:
            await make_guest(scenario, programs, series, kernel, pieces, f"{folder}/initramfs")
            started = time.monotonic()
            trouble = None
            try:
                await Machine(scenario, series, kernel, folder, TOOLS).boot(OPTIONS.patience)
            except MachineError as error:
                trouble = str(error)
        results, done = read_programs(text_of(f"{folder}/tap.log"), programs)
        results.skipped += [(name, PROGRAMS[name].optional) for name in scenario.programs if name not in programs]
        faults, missing = read_log(text_of(f"{folder}/console.log"), scenario.allowed, scenario.expected)
        results.failed += faults + missing
        if trouble or not done:
            results.failed.append(f"the machine {trouble or 'stopped before its end'}")
        os.remove(f"{folder}/initramfs")
    except Unavailable as error:
        results.skipped.append(("the boot", str(error)))
    except (Broken, GuestError) as error:
        results.failed.append(str(error))
    return results, time.monotonic() - started


def text_of(path):
    with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as file:
        return file.read()
    return ""


def tell(name, results, seconds):
    """One line for people, verdicts for tools/check.sh."""
    print(f"{name:<24} {results.passed:5} passed {len(results.failed):4} failed {len(results.skipped):4} skipped "
          f"{int(seconds // 60):4}:{int(seconds % 60):02}", file=sys.stderr)
    for sentence in results.failed:
        print(f"    failed: {sentence}", file=sys.stderr)
    print(f"passed {results.passed}")
    for sentence in results.failed:
        print(f"failed 1 {name}: {sentence}")
    for sentence, reason in results.skipped:
        print(f"skipped 1 {name}: {sentence}: {reason}")
    sys.stdout.flush()


async def prepare():
    TOOLS.qemu = await piece("fetch.sh", "qemu")
    TOOLS.accelerator = OPTIONS.accel
    if OPTIONS.accel == "auto":
        TOOLS.accelerator = await accelerator(TOOLS.qemu, await piece("fetch.sh", "kernel", "6.12"), CACHE)
    print(f"{TOOLS.qemu}, accelerated by {TOOLS.accelerator}", file=sys.stderr)


async def run_all(chosen):
    try:
        await prepare()
    except Unavailable as error:
        print(f"skipped {len(chosen)} virtual machines: {error}")
        return True
    pieces, slots, good = Pieces(), asyncio.Semaphore(OPTIONS.jobs), True
    # First what all cores work on, then the longest boots, so that at the end none is alone.
    for series in dict.fromkeys(series for _, _, series in chosen):
        with contextlib.suppress(Unavailable, Broken):
            await pieces.kernel(series)
            await pieces.module(series)
    chosen = sorted(chosen, key=lambda what: -what[1].seconds)

    async def one(name, scenario, series):
        nonlocal good
        results, seconds = await boot(name, scenario, series, pieces, slots)
        tell(name, results, seconds)
        good = good and not results.failed

    tasks = [asyncio.ensure_future(one(*what)) for what in chosen]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return good


async def run_shell(series, names):
    scenario = next((scenario for scenario in SCENARIOS if scenario.name in names), SCENARIOS[0])
    await prepare()
    pieces, folder = Pieces(), os.path.join(OPTIONS.out, f"shell-{series}")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    kernel = await pieces.kernel(series)
    programs = [name for name in scenario.programs if not lacks(PROGRAMS[name])]
    await make_guest(scenario, programs, series, kernel, pieces, f"{folder}/initramfs")
    await Machine(scenario, series, kernel, folder, TOOLS).shell()
    return True


def setting(text):
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=VALUE")
    return name, value


def options_of(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--debug", action="store_true", help="the boots of the debug kernel")
    parser.add_argument("--list", action="store_true", help="print the names of all boots")
    parser.add_argument("--shell", metavar="KERNEL", help="a shell in a guest: 6.1, 6.12, 7 or debug")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"), help="where the programs were built")
    parser.add_argument("--out", default=os.path.join(ROOT, "build/vm"), help="where logs go")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="boots at the same time")
    parser.add_argument("--set", nargs=1, action="extend", type=setting, default=[], metavar="NAME=VALUE",
                        help="a setting of the guests' tests, over that of the scenario")
    parser.add_argument("--patience", type=float, default=1, metavar="FACTOR", help="longer limits of time")
    parser.add_argument("--accel", choices=("auto", "kvm", "tcg"), default="auto")
    options = parser.parse_args(arguments)
    options.set = dict(options.set)
    return options


async def main():
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, task.cancel)
    if OPTIONS.shell:
        return await run_shell(OPTIONS.shell, OPTIONS.names)
    return await run_all(boots(OPTIONS))


OPTIONS = options_of(sys.argv[1:])
OPTIONS.build, OPTIONS.out = os.path.abspath(OPTIONS.build), os.path.abspath(OPTIONS.out)
TOOLS = SimpleNamespace(qemu=None, accelerator=None, build=OPTIONS.build)
if OPTIONS.list:
    print("\n".join(f"{scenario.name}-{kernel}" for scenario in SCENARIOS for kernel in scenario.kernels))
    sys.exit()
os.makedirs(OPTIONS.out, exist_ok=True)
try:
    sys.exit(0 if asyncio.run(main()) else 1)
except asyncio.CancelledError:
    sys.exit("run.py: ended by a signal")
except (Unavailable, Broken, GuestError) as error:
    sys.exit(f"run.py: {error}")
