# SPDX-License-Identifier: Apache-2.0
"""A cpio archive in the kernel's "newc" format, as an initramfs is."""
import os
import stat


class Archive:
    """Entries are kept by path; parents are made; written once."""

    def __init__(self):
        self.entries = {}

    def _put(self, path, mode, data):
        path = path.strip("/")
        parent = os.path.dirname(path)
        if parent and parent not in self.entries:
            self.folder(parent)
        self.entries[path] = (mode, data)

    def folder(self, path, mode=0o755):
        self._put(path, stat.S_IFDIR | mode, b"")

    def file(self, path, data, mode=0o644):
        self._put(path, stat.S_IFREG | mode, data.encode() if isinstance(data, str) else data)

    def link(self, path, target):
        self._put(path, stat.S_IFLNK | 0o777, target.encode())

    def device(self, path, major, minor, mode=0o600):
        self._put(path, stat.S_IFCHR | mode, (major, minor))

    def __contains__(self, path):
        return path.strip("/") in self.entries

    def write(self, out):
        for number, (path, (mode, data)) in enumerate(self.entries.items(), 1):
            self._write_entry(out, number, path, mode, data)
        self._write_entry(out, 0, "TRAILER!!!", 0, b"")

    @staticmethod
    def _write_entry(out, number, path, mode, data):
        major = minor = 0
        if isinstance(data, tuple):
            (major, minor), data = data, b""
        name = path.encode() + b"\0"
        links = 2 if stat.S_ISDIR(mode) else 1
        fields = (number, mode, 0, 0, links, 0, len(data), 0, 0, major, minor, len(name), 0)
        head = b"070701" + b"".join(b"%08X" % field for field in fields) + name
        out.write(head + b"\0" * (-len(head) % 4))
        out.write(data + b"\0" * (-len(data) % 4))
