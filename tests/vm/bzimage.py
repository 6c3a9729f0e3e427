# SPDX-License-Identifier: Apache-2.0
"""The kernel inside a bzImage, unpacked once: without KVM that takes a guest two to four seconds at every boot. QEMU starts
it at its PVH entry. Formats: Documentation/arch/x86/boot.rst of the kernel."""
import contextlib
import lzma
import os
import struct
import subprocess
import zlib

SECTOR = 512
SETUP_SECTORS, PAYLOAD = 0x1F1, 0x248  # places in the header
# The note that tells the PVH entry: length of its name, of the address, type, name. Without CONFIG_PVH there is none.
PVH_NOTES = [struct.pack("<III4s", 4, size, 18, b"Xen") for size in (4, 8)]


def payload_of(image):
    (sectors,) = struct.unpack_from("<B", image, SETUP_SECTORS)
    offset, length = struct.unpack_from("<II", image, PAYLOAD)
    return image[((sectors or 4) + 1) * SECTOR + offset:][:length]


def unpack(payload):
    """The ELF file; nothing if the format, or the program that knows it, is missing. A length follows the data."""
    with contextlib.suppress(lzma.LZMAError, zlib.error, OSError, subprocess.CalledProcessError):
        if payload.startswith(b"\xfd7zXZ"):
            return lzma.LZMADecompressor().decompress(payload)
        if payload.startswith(b"\x1f\x8b"):
            return zlib.decompressobj(wbits=31).decompress(payload)
        if payload.startswith(b"\x28\xb5\x2f\xfd"):
            return subprocess.run(["zstd", "-dcq"], input=payload[:-4], stdout=subprocess.PIPE, check=True).stdout
    return b""


def bootable(kernel):
    """The file of a kernel's folder (tools/vm/fetch.sh) that QEMU is given."""
    unpacked = os.path.join(kernel, "vmlinux.pvh")
    if os.path.exists(unpacked):
        return unpacked
    packed = os.path.join(kernel, "vmlinuz")
    with open(packed, "rb") as file:
        elf = unpack(payload_of(file.read()))
    if not any(note in elf for note in PVH_NOTES):
        return packed
    unfinished = f"{unpacked}.{os.getpid()}"
    with open(unfinished, "wb") as file:
        file.write(elf)
    os.replace(unfinished, unpacked)
    return unpacked
