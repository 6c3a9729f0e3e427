#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of one build that carry a label and gives tools/check.sh the verdict.

    rig-ctest.py BUILD LABEL_REGEX JOBS

ctest's log goes to stderr; stdout carries `passed N`, `failed 1 NAME` and `skipped 1 NAME: reason` lines. A test that
ctest could not start counts as failed, and so does a label that no test carries."""
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as xml


def skip_reason(output):
    """GoogleTest prints `file:line: Skipped` and the reason on the next line."""
    match = re.search(r": Skipped\n(.*)", output or "")
    return match.group(1).strip() if match and match.group(1).strip() else "no reason given"


def main(build, labels, jobs):
    report = os.path.join(build, "ctest-" + re.sub(r"\W+", "", labels) + ".xml")
    if os.path.exists(report):
        os.remove(report)
    subprocess.run(
        ["ctest", "--test-dir", build, "-L", labels, "--parallel", jobs, "--output-junit", report,
         "--no-tests=error", "--output-on-failure"],
        stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False)

    if not os.path.exists(report):
        print(f"failed 1 ctest -L {labels} wrote no report")
        return
    cases = xml.parse(report).getroot().findall("testcase")
    passed = 0
    for case in cases:
        name, status, skip = case.get("name"), case.get("status"), case.find("skipped")
        if status == "run":
            passed += 1
        elif status == "notrun" and skip is not None and "SKIP" in skip.get("message", ""):
            print(f"skipped 1 {name}: {skip_reason(case.findtext('system-out'))}")
        else:
            print(f"failed 1 {name}")
    print(f"passed {passed}")
    if not cases:
        print(f"failed 1 no test carries the label {labels}")


main(*sys.argv[1:])
