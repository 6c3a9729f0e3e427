#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""clang-tidy over every product source whose last clean verdict is out of date.

    rig-tidy.py BUILD CACHE JOBS

The path-sensitive analyzer takes three quarters of the time; it looks shallowly unless TIDY=deep is set, which is for
nights. A clean deep verdict is a clean shallow one.

A verdict is remembered under a hash of clang-tidy's version, .clang-tidy, the compile command, the source and every
header of this tree that it includes (as the build recorded them), so an unchanged file costs nothing. Tests are
left out: the macros of GoogleTest are not ours. Findings go to stderr, verdicts to stdout."""
import concurrent.futures
import hashlib
import json
import os
import re
import subprocess
import sys

ROOT = os.getcwd()
DEEP = os.environ.get("TIDY") == "deep"
SHALLOW = ["--extra-arg=-Xclang", "--extra-arg=-analyzer-config", "--extra-arg=-Xclang", "--extra-arg=mode=shallow"]


def included_files(build):
    """object -> headers of this tree, from ninja's dependency log"""
    log = subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True, check=False).stdout
    deps, current = {}, None
    for line in log.splitlines():
        if line.startswith("    "):
            path = os.path.normpath(os.path.join(build, line.strip()))
            if path.startswith(ROOT + os.sep):
                current.append(path)
        elif line:
            current = deps.setdefault(line.split(":")[0], [])
    return deps


def key_of(entry, headers, constants):
    digest = hashlib.sha256(constants)
    digest.update(entry["command"].replace(ROOT, "").encode())
    for path in sorted({entry["file"], *headers}):
        with open(path, "rb") as file:
            digest.update(os.path.relpath(path, ROOT).encode() + b"\0" + file.read())
    return digest.hexdigest()


def tidy(build, entry, mark):
    run = subprocess.run(["clang-tidy", "--quiet", "-p", build, *([] if DEEP else SHALLOW), entry["file"]],
                         capture_output=True, text=True, check=False)
    if run.returncode == 0:
        with open(mark if DEEP else mark + "-shallow", "w", encoding="utf-8"):
            pass
        return None
    return run.stdout + run.stderr


def main(build, cache, jobs):
    os.makedirs(cache, exist_ok=True)
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        entries = [entry for entry in json.load(file)
                   if not os.path.relpath(entry["file"], ROOT).startswith(("tests", "build"))]
    with open(".clang-tidy", "rb") as file:
        constants = subprocess.check_output(["clang-tidy", "--version"]) + file.read()
    deps = included_files(build)

    stale, fresh = [], 0
    for entry in entries:
        output = entry.get("output") or re.search(r" -o (\S+)", entry["command"]).group(1)
        mark = os.path.join(cache, key_of(entry, deps.get(output, []), constants))
        if os.path.exists(mark) or not DEEP and os.path.exists(mark + "-shallow"):
            fresh += 1
        else:
            stale.append((entry, mark))

    print(f"{len(stale)} files to look at, {fresh} unchanged since their clean verdict", file=sys.stderr)
    passed = fresh
    with concurrent.futures.ThreadPoolExecutor(int(jobs)) as pool:
        runs = {pool.submit(tidy, build, entry, mark): entry["file"] for entry, mark in stale}
        for done in concurrent.futures.as_completed(runs):
            findings = done.result()
            if findings is None:
                passed += 1
            else:
                print(findings, file=sys.stderr)
                print(f"failed 1 {os.path.relpath(runs[done], ROOT)}")
    print(f"passed {passed}")


main(*sys.argv[1:])
