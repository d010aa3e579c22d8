"""A C compiler that compiles the core once for all exports that are linked with it.

The tests find it as ``cc``: ``python core_once.py COMPILER FOLDER ARGUMENT...`` runs the compiler
with these arguments, after files ``core/*.c`` among them were replaced by objects in the folder.
The objects of the same sources and flags are compiled by the first process that needs them.
"""

import fcntl
import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

NOT_LINKED = {"-c", "-E", "-S", "-fsyntax-only"}
OF_LINKING = "-o", "-l", "-Wl,", "-I"


def main(compiler: str, folder: str, *words: str) -> None:
    """Replace this process by the compiler."""
    sources = [word for word in words if word.endswith(".c") and Path(word).parent.name == "core"]
    if sources and not NOT_LINKED & {*words}:
        flags = [word for word in words if word[0] == "-" and not word.startswith(OF_LINKING)]
        paths = sorted(Path(source).resolve() for source in sources)
        objects = objects_of([compiler, *flags, "-c"], paths, Path(folder))
        words = *(word for word in words if word not in sources), *map(str, objects)
        words = *words, "-lm"  # after the objects
    os.execv(compiler, [compiler, *words])


def objects_of(command: list[str], sources: list[Path], folder: Path) -> list[Path]:
    """The object of each source, compiled unless another process did."""
    key = sha256(repr(command).encode())
    for file in sorted({file for source in sources for file in source.parent.glob("*.[ch]")}):
        key.update(file.name.encode() + file.read_bytes())
    objects = folder / key.hexdigest()[:16]
    objects.mkdir(parents=True, exist_ok=True)
    with (objects / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (objects / "done").exists():
            compiled = subprocess.run([*command, *sources], cwd=objects, check=False)
            if compiled.returncode:
                sys.exit(compiled.returncode)
            (objects / "done").touch()
    return [objects / f"{source.stem}.o" for source in sources]


if __name__ == "__main__":
    main(*sys.argv[1:])
