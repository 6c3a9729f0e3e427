# SPDX-License-Identifier: Apache-2.0
"""What a guest is made of: an initramfs of busybox, kernel modules, programs of this machine with the libraries they need,
and the scripts of tests/vm/guest."""
import glob
import lzma
import os
import re
import shutil
import subprocess
import tempfile

from cpio import Archive

HERE = os.path.dirname(os.path.abspath(__file__))


class GuestError(Exception):
    """Something that a guest needs is missing; says what and what cures it."""


def find_program(name, package):
    path = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if not path:
        raise GuestError(f"{name} is not installed (package {package})")
    return path


def module_bytes(path):
    with open(path, "rb") as file:
        data = file.read()
    return lzma.decompress(data) if path.endswith(".xz") else data


def module_needs(data):
    """Names of the modules that a module depends on."""
    found = re.search(rb"\0depends=([^\0]*)\0", data)
    return [name for name in found.group(1).decode().split(",") if name] if found else []


class Guest:
    """An initramfs under construction for one kernel."""

    def __init__(self, kernel):
        self.kernel = kernel
        with open(os.path.join(kernel, "release"), encoding="ascii") as file:
            self.release = file.read().strip()
        self.archive = Archive()
        self.modules = []
        self.libraries = {}
        for folder in ("bin", "dev", "etc", "lib", "lib64", "proc", "root", "run", "sys", "var", "modules"):
            self.archive.folder(folder)
        self.archive.folder("tmp", 0o1777)
        self.archive.device("dev/console", 5, 1)
        self.archive.file("etc/passwd", "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n")
        self.archive.file("etc/group", "root:x:0:\nspankerd:x:990:\nnogroup:x:65534:\n")
        self._add_busybox()
        for path in glob.glob(os.path.join(HERE, "guest", "*")):
            if os.path.isfile(path):
                self.add_file(path, "init" if path.endswith("/init") else f"guest/{os.path.basename(path)}")

    def _add_busybox(self):
        busybox = find_program("busybox", "busybox-static")
        if "not a dynamic executable" not in subprocess.run(["ldd", busybox], capture_output=True, text=True,
                                                            check=False).stderr:
            raise GuestError(f"{busybox} is not linked statically (package busybox-static)")
        self.add_file(busybox, "bin/busybox")
        for applet in subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout.split():
            if f"bin/{applet}" not in self.archive:
                self.archive.link(f"bin/{applet}", "busybox")

    def add_file(self, source, path):
        with open(source, "rb") as file:
            self.archive.file(path, file.read(), 0o755 if os.access(source, os.X_OK) else 0o644)

    def add_program(self, source, path=None):
        """A program of this machine: stripped, with its libraries and its loader at the paths it asks for."""
        if not os.access(source, os.X_OK):
            raise GuestError(f"{source} is not built")
        path = path or f"bin/{os.path.basename(source)}"
        with tempfile.NamedTemporaryFile(prefix="spanker-vm-") as copy:
            subprocess.run(["strip", "-o", copy.name, source], check=True)
            with open(copy.name, "rb") as file:
                self.archive.file(path, file.read(), 0o755)
        self._add_libraries(source)

    def _add_libraries(self, source):
        listed = subprocess.run(["ldd", source], capture_output=True, text=True, check=False)
        for line in listed.stdout.splitlines():
            if "not found" in line:
                raise GuestError(f"{source} needs {line.split()[0]}, which this machine does not have")
            found = re.search(r"(?:=> )?(/\S+) \(0x", line)
            if found and found.group(1) not in self.archive:
                self.add_file(os.path.realpath(found.group(1)), found.group(1))

    def add_module(self, name):
        """A module of the kernel and those it needs. One that the kernel brings no file for is built in."""
        pattern = "[-_]".join(re.split("[-_]", name))
        for path in glob.glob(f"{self.kernel}/usr/lib/modules/{self.release}/kernel/**/{pattern}.ko*", recursive=True):
            self._add_module_data(name, module_bytes(path))
            break

    def add_own_module(self, path):
        self._add_module_data("spanker", module_bytes(path), load=False)

    def _add_module_data(self, name, data, load=True):
        if f"modules/{name}.ko" in self.archive:
            return
        for needed in module_needs(data):
            self.add_module(needed)
        self.archive.file(f"modules/{name}.ko", data)
        if load:
            self.modules.append(name)

    def write(self, path, programs, settings):
        """programs: lines `NAME SECONDS COMMAND...` that init runs in turn; settings: shell variables for the tests."""
        self.archive.file("etc/modules", "".join(f"{name}\n" for name in self.modules))
        self.archive.file("etc/programs", "".join(f"{line}\n" for line in programs))
        self.archive.file("etc/settings", "".join(f"{key}='{value}'\n" for key, value in settings.items()))
        with open(path, "wb") as file:
            self.archive.write(file)
