"""Read the libraries of wheels of any platform: their processor, what they load and export.

Prints a table; ends with 1 where one loads anything but the system's C library, needs a newer one
than its wheel's tag says, exports a name that is not the package's, or is not signed for macOS.
"""

from __future__ import annotations

import re
import sys
import zipfile
from pathlib import Path, PurePath

import lief

OURS = re.compile(r"_?((jac|fwd\d+|adj\d+)_)?(hybrid|blocks)_\w+")
OF_LINKERS = {"___dso_handle", "__mh_dylib_header", "_CRT_INIT", "__mingw_module_is_dll", "atexit"}
SYSTEM = re.compile(
    r"libc\.so\.6|libm\.so\.6|libdl\.so\.2|libpthread\.so\.0|ld-linux-\w+(-\w+)*\.so\.[12]"
    r"|/usr/lib/libSystem\.B\.dylib|KERNEL32\.dll|api-ms-win-crt-\w+(-\w+)*\.dll",
    re.IGNORECASE,
)


def described(data: bytes) -> tuple[str, set[str], set[str], str]:
    """Processor, loaded libraries, exported names, least version of the system."""
    lief.logging.disable()
    found = lief.parse(data)
    if isinstance(found, lief.MachO.FatBinary | lief.MachO.Binary):
        one = found.at(0) if isinstance(found, lief.MachO.FatBinary) else found
        own = next(
            c.name for c in one.commands if c.command == lief.MachO.LoadCommand.TYPE.ID_DYLIB
        )
        loaded = {library.name for library in one.libraries} - {own}
        names = {symbol.name for symbol in one.exported_symbols}
        least = ".".join(map(str, one.build_version.minos[:2]))
        signed = "signed" if one.has_code_signature else "not signed"
        return (
            str(one.header.cpu_type).rpartition(".")[2],
            loaded,
            names,
            f"{least}, {signed}, {own}",
        )
    if isinstance(found, lief.PE.Binary):
        loaded = {entry.name for entry in found.imports}
        names = {entry.name for entry in found.get_export().entries}
        return str(found.header.machine).rpartition(".")[2], loaded, names, "-"
    names = {symbol.name for symbol in found.exported_symbols}
    versions = {
        version.name for needed in found.symbols_version_requirement
        for version in needed.get_auxiliary_symbols()
    }  # fmt: skip
    least = max(versions, key=numbers, default="-")
    return str(found.header.machine_type).rpartition(".")[2], set(found.libraries), names, least


def numbers(version: str) -> list[int]:
    """Those of ``GLIBC_2.17``."""
    return [int(word) for word in re.findall(r"\d+", version)]


def main(wheels: list[str]) -> int:
    """Print the table; 1 where something is not as it should be."""
    faults = []
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            files = [name for name in archive.namelist() if "/_lib/" in name]
            print(f"{Path(wheel).name}, {Path(wheel).stat().st_size:,} B")
            for name in sorted(files):
                machine, loaded, names, least = described(archive.read(name))
                size = archive.getinfo(name).file_size
                others = {one for one in names if not OURS.fullmatch(one)} - OF_LINKERS
                strange = {one for one in loaded if not SYSTEM.fullmatch(one)}
                print(
                    f"  {PurePath(name).name:22} {machine:8} {size:8,} B {len(names):4} names, "
                    f"{least}; loads {', '.join(sorted(loaded)) or 'nothing'}"
                )
                if others:
                    faults.append(f"{wheel}: {name} exports {', '.join(sorted(others)[:9])}")
                if strange:
                    faults.append(f"{wheel}: {name} loads {', '.join(sorted(strange))}")
                if least.startswith("GLIBC") and numbers(least) > [2, 17]:
                    faults.append(f"{wheel}: {name} needs {least}")
                if machine == "ARM64" and "not signed" in least:  # macOS does not load it
                    faults.append(f"{wheel}: {name} is not signed")
    print("\n".join(faults) or "every library is as it should be")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
