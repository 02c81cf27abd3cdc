"""The programs that are packaged, and what both packages say about them."""
import argparse
import pathlib
import subprocess
import sys

NAMES = ("fairlead", "fairlead-gpu-index")


def _said(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


def parser(description, output):
    """The arguments of both packagers."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--build", type=pathlib.Path, required=True, help="the build folder; the programs are in its bin/")
    made.add_argument("--output", type=pathlib.Path, required=True, help=output)
    made.add_argument("--version", help="default: what the program says")
    made.add_argument("--epoch", type=int, default=0, help="time of all files, in seconds")
    return made


def programs(build):
    """Paths of the programs; LookupError if one is not there."""
    found = [build / "bin" / name for name in NAMES]
    for program in found:
        if not program.exists():
            raise LookupError(f"{program} is not there: build it first")
    return found


def version(program):
    return _said(program, "version")[1]


def architecture():
    """As Debian calls it."""
    return _said("dpkg", "--print-architecture")[0]


def run(name, main):
    """Calls main with the arguments of the command line; what was not found ends the program with its message."""
    try:
        main(sys.argv[1:])
    except LookupError as error:
        sys.exit(f"{name}: {error}")
