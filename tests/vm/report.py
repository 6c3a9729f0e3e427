# SPDX-License-Identifier: Apache-2.0
"""Reads what a guest printed: the programs' verdicts (TAP or GoogleTest) and the kernel's log."""
import re
from dataclasses import dataclass, field

# Each line of the log that matches is a fault, whatever the tests said.
FAULTS = re.compile(
    r"\bBUG: |\bBUG at |WARNING: |KASAN: |UBSAN: |KCSAN: |\bODEBUG: |DMA-API: |refcount_t: |\bOops\b|Kernel panic|"
    r"general protection fault|divide error|unreferenced object|kmemleak: \d+ new suspected|possible recursive locking|"
    r"possible (circular|irq lock inversion)|inconsistent lock state|suspicious RCU usage|sleeping function called|"
    r"scheduling while atomic|bad unlock balance|held lock freed|lock held when returning|DEBUG_LOCKS_WARN_ON|"
    r"INFO: task .* blocked for more than|rcu.*detected stall|soft lockup|list_(add|del) corruption|"
    r"Objects remaining in|irq \d+: nobody cared|unable to handle|Trying to (free|vfree) |possible memory leak|"
    r"deprecated workqueue|sysfs: cannot create duplicate|DMAR:.*fault")

# The debug kernel says so of itself at boot when the self-tests of lockdep or KASAN are quiet about a known thing.
HARMLESS = re.compile(r"rig: |DMA-API: preallocated|DMA-API: debugging enabled|DMA-API: disabled|kmemleak: Kernel memory leak detector")

STAMP = re.compile(r"^\[ *\d+\.\d+\](\[ *[TC]\d+\])? ?")
TAP = re.compile(r"^(not )?ok(?: (\d+))?(?: -)? ?(.*?)(?: # (SKIP)\b ?(.*))?$")
PLAN = re.compile(r"^1\.\.(\d+)(?: # SKIP ?(.*))?$")
GTEST = re.compile(r"^\[ +(OK|FAILED|SKIPPED) +\] ([\w/.-]+)(?:, .*)?(?: \(\d+ ms\))$")
GTEST_FAILURE = re.compile(r"(\w+\.[ch]pp:\d+): Failure$")
REASON_LENGTH = 400


@dataclass
class Results:
    """The verdicts of one boot."""
    passed: int = 0
    failed: list = field(default_factory=list)   # sentences
    skipped: list = field(default_factory=list)  # (sentence, reason)

    @property
    def count(self):
        return self.passed + len(self.failed) + len(self.skipped)


class Program:
    """The lines of one program."""

    def __init__(self, name):
        self.name = name
        self.results = Results()
        self.plan = None
        self.numbered = 0
        self.last_words = ""
        self.failure = []  # what GoogleTest said of the first one in the test that runs

    def line(self, text):
        found = GTEST.match(text)
        if found:
            bad, skipped = found.group(1) == "FAILED", found.group(1) == "SKIPPED"
            self._verdict(bad, found.group(2), skipped, " ".join(self.failure)[:REASON_LENGTH] if bad else self.last_words)
            self.failure = []
            return
        found = GTEST_FAILURE.search(text)
        if found or (self.failure and len(self.failure) < 6 and text.strip()):
            self.failure.append(f"{found.group(1)}:" if found else text.strip())
        found = TAP.match(text)
        if found:
            self.numbered += 1
            self._verdict(bool(found.group(1)), found.group(3), found.group(4) == "SKIP", found.group(5))
            return
        found = PLAN.match(text)
        if found:
            self.plan = int(found.group(1))
            if self.plan == 0:
                self._verdict(False, "everything", True, found.group(2))
        elif text.strip():
            self.last_words = text.strip()

    def _verdict(self, bad, name, skip, reason):
        if skip:
            self.results.skipped.append((f"{self.name}: {name}", reason or "no reason given"))
        elif bad:
            self.results.failed.append(f"{self.name}: {name}" + (f": {reason}" if reason else ""))
        else:
            self.results.passed += 1

    def end(self, status):
        """What the program did not say itself. Status 137 is the time limit's kill."""
        before = len(self.results.failed)
        if self.plan and self.plan != self.numbered:
            self.results.failed.append(f"{self.name}: planned {self.plan} tests, ran {self.numbered}")
        if status and not before:
            killed = " (its time was over)" if status == 137 else ""
            self.results.failed.append(f"{self.name}: ended with status {status}{killed}: {self.last_words}")
        if not self.results.count:
            self.results.failed.append(f"{self.name}: ran no test")


def read_programs(text, wanted):
    """The verdicts of all programs; one that did not run or did not end failed."""
    results, current, ended, done = Results(), None, set(), False

    def close(program, status):
        program.end(status)
        ended.add(program.name)
        results.passed += program.results.passed
        results.failed += program.results.failed
        results.skipped += program.results.skipped

    for line in text.splitlines():
        line = line.rstrip("\r")
        words = line.split()
        if line.startswith("#@ start "):
            current = Program(words[2])
        elif line.startswith("#@ end ") and current and words[2] == current.name:
            close(current, int(words[3]))
            current = None
        elif line == "#@ done":
            done = True
        elif current:
            current.line(line)
    if current:
        current.results.failed.append(f"{current.name}: the guest stopped in the middle: {current.last_words}")
        close(current, 0)
    for name in wanted:
        if name not in ended:
            results.failed.append(f"{name}: did not run")
    return results, done


def read_log(text, allowed=(), expected=()):
    """Faults in the kernel's log with the test they happened in, and what should be there and is not."""
    during, faults, allow = "boot", [], [re.compile(pattern) for pattern in allowed]
    for line in text.splitlines():
        line = STAMP.sub("", line.rstrip("\r"))
        if line.startswith("rig: "):
            during = line[5:]
        elif FAULTS.search(line) and not HARMLESS.search(line) and not any(pattern.search(line) for pattern in allow):
            faults.append(f"{during}: kernel log: {line.strip()[:160]}")
    missing = [f"kernel log lacks what it should have: {pattern}" for pattern in expected if not re.search(pattern, text)]
    return faults, missing
