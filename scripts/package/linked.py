"""What a program is linked with: shared libraries as the loader finds them, and headers that were compiled into it."""
import pathlib
import re
import subprocess


def interpreter(program):
    """The loader that the program names, such as /lib64/ld-linux-x86-64.so.2."""
    headers = subprocess.run(["readelf", "--program-headers", "--wide", program], check=True, capture_output=True, text=True).stdout
    return re.search(r"interpreter: ([^\]]+)\]", headers)[1]


def libraries(programs):
    """{name that the loader looks for: real file}, without the loader itself."""
    found = {}
    for program in programs:
        out = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
        for line in out.splitlines():
            name, arrow, rest = line.strip().partition(" => ")
            if not arrow:
                continue
            if not rest.startswith("/"):
                raise LookupError(f"{program} needs {name}, which is not there")
            found[name] = pathlib.Path(rest.split(" ")[0]).resolve()
    return found


def headers(build, programs):
    """Absolute paths of the headers outside of the tree that the programs' objects include, by Ninja's own record."""
    def ninja(*arguments):
        return subprocess.run(["ninja", "-C", build, "-t", *arguments], check=True, capture_output=True, text=True).stdout

    targets = [str(program.relative_to(build)) for program in programs]
    objects = [line for line in ninja("inputs", *targets).splitlines() if line.endswith(".o")]
    if not objects:
        raise LookupError(f"{build} has no record of what {', '.join(targets)} were built from")
    return sorted({line.strip() for line in ninja("deps", *objects).splitlines() if line.startswith("    /usr/include/")})


def strip(program, stripped, debug_folder):
    """Writes the program without debug information, and that information where gdb looks for it by build id:
    DEBUG_FOLDER/.build-id/NN/REST.debug."""
    notes = subprocess.run(["readelf", "--notes", "--wide", program], check=True, capture_output=True, text=True).stdout
    found = re.search(r"Build ID: ([0-9a-f]+)", notes)
    if found:
        debug = pathlib.Path(debug_folder, ".build-id", found[1][:2], found[1][2:] + ".debug")
        debug.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
    subprocess.run(["strip", "--strip-all", "-o", stripped, program], check=True)
