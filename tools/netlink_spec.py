#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares kernel/spanker.yaml, the YNL description of the netlink family, with the headers of uapi/: every name of one is
in the other, with the same number. Prints one line for each difference."""
import re
import sys

import yaml

HEADERS = ("uapi/spanker_netlink.h", "uapi/spanker.h", "uapi/spanker_card.h")
# What the headers have beside the numbers: bounds, and what nobody sends.
NO_NAME = re.compile(r"_(UNSPEC|MAX|COUNT|STATES)$|^__")


def constants(text):
    """Names and numbers of a header's enumerators and of its defines that are numbers."""
    text, found = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL), {}
    for body in re.findall(r"enum \w+ \{(.*?)\}", text, re.DOTALL):
        number = -1
        for name, value in re.findall(r"(\w+)(?:\s*=\s*(\w+))?\s*(?:,|$|\Z|-)", body):
            number = number + 1 if not value else int(value, 0) if value.isdigit() else number
            found[name] = number
    found.update((name, int(value)) for name, value in re.findall(r"^#define (\w+)[ \t]+(\d+)\s*$", text, re.MULTILINE))
    return found


def c_name(prefix, name):
    return (prefix + name).upper().replace("-", "_")


def numbered(entries, start):
    """YNL counts on from the last value."""
    number = start
    for entry in entries:
        entry = {"name": entry} if isinstance(entry, str) else entry
        number = entry.get("value", number)
        yield entry["name"], number
        number += 1


def described(spec):
    """C names and numbers of everything that the description names."""
    names = {}
    for definition in spec["definitions"]:
        for name, number in numbered(definition["entries"], 0):
            names[c_name(definition["name-prefix"], name)] = number
    for space in spec["attribute-sets"]:
        for name, number in numbered(space["attributes"], 1):
            names[c_name(space["name-prefix"], name)] = number
    for operation in spec["operations"]["list"]:
        if "event" in operation:
            names[c_name(spec["operations"]["async-prefix"], operation["name"])] = operation["value"]
            continue
        names[c_name(spec["operations"]["name-prefix"], operation["name"])] = operation["do"]["request"]["value"]
        answer = operation["name"].removesuffix("-get")
        names[c_name(spec["operations"]["async-prefix"], answer)] = operation["do"]["reply"]["value"]
    for group in spec["mcast-groups"]["list"]:
        names[c_name("spanker-genl-group-", group["name"])] = group["name"]
    return names


def undescribed_attributes(spec):
    """Attributes that an operation names and the set does not have."""
    known = {attribute["name"] for attribute in spec["attribute-sets"][0]["attributes"]}
    for operation in spec["operations"]["list"]:
        parts = [operation.get("event"), *(operation.get(way, {}).get(what) for way in ("do", "dump")
                                           for what in ("request", "reply"))]
        for part in filter(None, parts):
            for name in part.get("attributes", []):
                if name not in known:
                    yield f"{operation['name']}: no attribute '{name}'"


def main():
    texts = {}
    for path in HEADERS:
        with open(path, encoding="utf-8") as file:
            texts[path] = file.read()
    with open("kernel/spanker.yaml", encoding="utf-8") as file:
        spec = yaml.safe_load(file)
    in_headers = {}
    for text in texts.values():
        in_headers.update(constants(text))
    family = texts[HEADERS[0]]
    in_headers.update(re.findall(r'^#define (SPANKER_GENL_GROUP_\w+)\s+"(\w+)"', family, re.MULTILINE))

    names, findings = described(spec), list(undescribed_attributes(spec))
    for name, number in names.items():
        if in_headers.get(name) != number:
            findings.append(f"{name} is {number} in kernel/spanker.yaml, {in_headers.get(name, 'nowhere')} in uapi/")
    own = {name for name in (*constants(family), *in_headers) if name.startswith(("SPANKER_CMD_", "SPANKER_MSG_", "SPANKER_A_",
                                                                                  "SPANKER_RUNG_", "SPANKER_GENL_GROUP_"))}
    findings += [f"{name} is not in kernel/spanker.yaml" for name in sorted(own - set(names)) if not NO_NAME.search(name)]
    version = re.search(r"#define SPANKER_GENL_VERSION\s+(\d+)", family)
    if int(version.group(1)) != spec["version"]:
        findings.append(f"version {spec['version']} in kernel/spanker.yaml, {version.group(1)} in {HEADERS[0]}")
    print("\n".join(findings), end="\n" if findings else "")
    return 1 if findings else 0


sys.exit(main())
