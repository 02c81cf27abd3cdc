"""What Debian's package database says about the files that go into an image.

Only dpkg-query is asked, so nothing is fetched. Every function raises LookupError for a file that no package has.
"""
import os
import pathlib
import re
import subprocess

DOCUMENTS = "/usr/share/doc"


def _query(*arguments):
    return subprocess.run(["dpkg-query", *arguments], check=True, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}).stdout


def other_names(path):
    """The path, and its other name if /lib is a link to /usr/lib: packages of Debian 12 use either."""
    path = str(path)
    yield path
    if path.startswith("/usr/lib"):
        yield path[len("/usr"):]
    elif path.startswith("/lib"):
        yield "/usr" + path


def owners(paths):
    """{path: name of the package that has it}."""
    asked = {name: path for path in paths for name in other_names(path)}
    done = subprocess.run(["dpkg-query", "--search", *sorted(asked)], capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
    found = {}
    for line in done.stdout.splitlines():
        packages, separator, name = line.partition(": ")
        if separator and name in asked and not packages.startswith("diversion by"):
            found[asked[name]] = packages.split(",")[0].split(":")[0]
    missing = sorted(set(map(str, paths)) - set(map(str, found)))
    if missing:
        raise LookupError(f"no installed package has {', '.join(missing)}")
    return found


class Package:
    """An installed package; its fields are those of dpkg's status file."""

    FIELDS = ("Package", "Version", "Architecture", "Source", "Maintainer", "Homepage", "Section", "Depends")

    def __init__(self, name):
        architecture = subprocess.run(["dpkg", "--print-architecture"], check=True, capture_output=True, text=True).stdout.strip()
        shown = "".join(f"{field}: ${{{field}}}\\n" for field in self.FIELDS)
        # A name alone is ambiguous if two architectures are installed.
        for asked in (f"{name}:{architecture}", f"{name}:all", name):
            try:
                text = _query("--show", f"--showformat={shown}", asked)
                break
            except subprocess.CalledProcessError:
                continue
        else:
            raise LookupError(f"the package {name} is not installed")
        self.fields = dict(re.findall(r"^(\S+): (.+)$", text, flags=re.M))
        self.name = self.fields["Package"]
        self.version = self.fields["Version"]
        self.architecture = self.fields["Architecture"]
        source, _, version = self.fields.get("Source", self.name).partition(" ")
        self.source, self.source_version = source, version.strip("()") or self.version

    def status(self):
        """Its paragraph, as scanners of images read it from var/lib/dpkg/status.d."""
        return "".join(f"{field}: {value}\n" for field, value in (("Package", self.name), ("Status", "install ok installed"), *(
            (field, self.fields[field]) for field in self.FIELDS[1:] if field in self.fields)))

    def copyright(self):
        """Its licence texts. A package may refer to the documents of another one by a link."""
        path = pathlib.Path(DOCUMENTS, self.name, "copyright")
        if not path.exists():
            raise LookupError(f"{path} is missing: a file of {self.name} cannot be passed on without its licence")
        return path.read_bytes()


def base_version():
    """VERSION_ID of Debian, such as 12."""
    return re.search(r'^VERSION_ID="?([^"\n]*)', pathlib.Path("/etc/os-release").read_text(), flags=re.M)[1]
