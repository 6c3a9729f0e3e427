#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Says which C++ files name something of the standard library whose header neither they nor a header of this tree that they
include, includes. One library's headers pull in what another's do not, so such a file compiles with some compilers only.

    tools/includes.py          one line for each finding
    tools/includes.py --fix    adds the headers (clang-format -i sorts them)"""
import os
import re
import subprocess
import sys

# Header: what is looked for (a pattern), where comments and strings are taken out. size_t comes with every header.
NAMES = {
    "algorithm": r"std::(all_of|any_of|binary_search|clamp|copy|copy_if|copy_n|count|count_if|equal|fill|fill_n|find|find_if|"
                 r"for_each|generate|lower_bound|max|max_element|min|min_element|minmax|none_of|remove_if|replace|reverse|"
                 r"rotate|shuffle|sort|stable_sort|swap_ranges|transform|unique|upper_bound)\(",
    "array": r"std::array\b",
    "atomic": r"std::atomic",
    "bit": r"std::(bit_cast|bit_ceil|bit_floor|bit_width|countl_zero|countr_zero|endian|has_single_bit|popcount)\b",
    "cctype": r"std::(isalnum|isalpha|isdigit|isprint|isspace|isxdigit|tolower|toupper)\b",
    "cerrno": r"\berrno\b|(?<![\w:])E(AGAIN|BUSY|INTR|INVAL|IO|NODEV|NOENT|NOMEM|PERM)\b",
    "chrono": r"std::chrono\b",
    "cmath": r"std::(ceil|copysign|exp|fabs|floor|fma|hypot|isfinite|isinf|isnan|ldexp|log|log2|lrint|nearbyint|nextafter|pow|"
             r"round|signbit|sqrt|trunc)\b",
    "condition_variable": r"std::condition_variable",
    "cstdint": r"std::u?int(_fast|_least)?(8|16|32|64|ptr|max)_t\b|\bUINT(8|16|32|64)_MAX\b",
    "cstdio": r"std::(FILE|fclose|fflush|fgets|fopen|fprintf|fputc|fputs|fread|fwrite|perror|printf|puts|rename|snprintf|sscanf|"
              r"vsnprintf)\b",
    "cstdlib": r"std::(_Exit|abort|aligned_alloc|atexit|calloc|exit|free|getenv|malloc|strtod|strtol|strtoul|strtoull|system)\b",
    "cstring": r"std::(memchr|memcmp|memcpy|memmove|memset|strchr|strcmp|strerror|strlen|strncmp|strsignal|strstr)\b",
    "deque": r"std::deque<",
    "exception": r"std::(current_exception|exception|exception_ptr|terminate)\b",
    "filesystem": r"std::filesystem\b",
    "fstream": r"std::[io]?fstream\b",
    "functional": r"std::(function<|hash<|ref\(|cref\(|invoke\()",
    "future": r"std::(async|future|promise)\b",
    "iostream": r"std::(cerr|cin|cout)\b",
    "limits": r"std::numeric_limits\b",
    "list": r"std::list<",
    "map": r"std::(multi)?map<",
    "memory": r"std::(addressof|make_shared|make_unique|shared_ptr|unique_ptr|weak_ptr)\b",
    "mutex": r"std::(lock_guard|mutex|once_flag|recursive_mutex|scoped_lock|unique_lock)\b",
    "new": r"std::(align_val_t|bad_alloc|nothrow)\b",
    "numeric": r"std::(accumulate|gcd|iota|lcm|reduce)\(",
    "optional": r"std::(nullopt|optional)\b",
    "random": r"std::(bernoulli_distribution|minstd_rand|mt19937(_64)?|normal_distribution|random_device|uniform_\w+)\b",
    "set": r"std::(multi)?set<",
    "shared_mutex": r"std::shared_(lock|mutex)\b",
    "source_location": r"std::source_location\b",
    "span": r"std::span\b",
    "sstream": r"std::[io]?stringstream\b",
    "stdexcept": r"std::(invalid_argument|logic_error|out_of_range|runtime_error)\b",
    "string": r"std::(string|to_string|stoi|stoul|stoull)\b",
    "string_view": r"std::string_view\b",
    "thread": r"std::(this_thread|thread)\b",
    "tuple": r"std::(tie\(|tuple<)",
    "type_traits": r"std::(conditional_t|decay_t|enable_if_t|is_\w+_v|make_unsigned_t|remove_\w+_t|underlying_type_t)\b",
    "unordered_map": r"std::unordered_map<",
    "unordered_set": r"std::unordered_set<",
    "utility": r"std::(as_const|exchange|forward|make_pair|move|pair<|swap)\b",
    "variant": r"std::(monostate|variant|visit)\b",
    "vector": r"std::vector\b",
}
NAMES = {header: re.compile(pattern) for header, pattern in NAMES.items()}
# Headers that the standard, or every library there is, has in another one.
ALSO = {
    "cerrno": {"errno.h"},
    "cstdint": {"stdint.h"},
    "exception": {"new", "stdexcept"},
    "string_view": {"string"},
    "utility": {"algorithm", "array", "functional", "map", "memory", "optional", "set", "tuple", "unordered_map", "vector"},
}
INCLUDE = re.compile(r'^\s*#\s*include\s+[<"]([^>"]+)[>"]', re.MULTILINE)
NOT_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|R"\((?:.*?)\)"|"(?:\\.|[^"\\\n])*"', re.DOTALL)


def read_tree():
    names = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.cpp", "*.hpp", "*.h"],
                           capture_output=True, text=True, check=True).stdout.split()
    texts = {}
    for name in filter(os.path.isfile, names):
        with open(name, encoding="utf-8") as file:
            texts[name] = file.read()
    return texts


class Tree:
    def __init__(self, texts):
        self.texts = texts
        self.includes = {name: INCLUDE.findall(text) for name, text in texts.items()}

    def find(self, include, includer):
        """The file of this tree that an include line means, if it means one."""
        beside = os.path.normpath(os.path.join(os.path.dirname(includer), include))
        for name in (beside, include, f"libspankerctl/include/{include}"):
            if name in self.texts:
                return name
        return None

    def headers(self, name):
        """Foreign headers that a file includes, itself or through headers of the tree."""
        found, seen, left = set(), {name}, [name]
        while left:
            file = left.pop()
            for include in self.includes[file]:
                own = self.find(include, file)
                if own is None:
                    found.add(include)
                elif own not in seen:
                    seen.add(own)
                    left.append(own)
        return found

    def missing(self, name):
        """(header, what names it) that a file lacks."""
        code, has = NOT_CODE.sub(" ", self.texts[name]), self.headers(name)
        for header, pattern in NAMES.items():
            named = pattern.search(code)
            if named and header not in has and not ALSO.get(header, set()) & has:
                yield header, named.group(0)


def add(text, header):
    """The text with one more include, in the block of the first standard header, else after the last include."""
    lines = text.split("\n")
    at = next((n for n, line in enumerate(lines) if re.match(r"#include <[a-z_]+>$", line)), None)
    if at is None:
        last = max((n for n, line in enumerate(lines) if line.startswith("#include")), default=None)
        if last is None:
            last = next(n for n, line in enumerate(lines) if line.startswith("#pragma once"))
        lines[last + 1:last + 1] = ["", f"#include <{header}>"]
    else:
        lines.insert(at, f"#include <{header}>")
    return "\n".join(lines)


def main():
    fix = sys.argv[1:] == ["--fix"]
    if sys.argv[1:] and not fix:
        sys.exit(__doc__)
    tree = Tree(read_tree())
    findings = [(name, *lack) for name in sorted(tree.texts) if not name.endswith(".h") for lack in tree.missing(name)]
    for name, header, what in findings:
        print(f"{name}: {what} without <{header}>")
        if fix:
            tree.texts[name] = add(tree.texts[name], header)
    for name in {name for name, _, _ in findings if fix}:
        with open(name, "w", encoding="utf-8") as file:
            file.write(tree.texts[name])
    return 1 if findings and not fix else 0


sys.exit(main())
