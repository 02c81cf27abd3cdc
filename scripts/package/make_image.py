#!/usr/bin/env python3
"""Writes build/image/fairlead.tar, an OCI image from scratch: the programs without debug information, the shared libraries
that they load, Debian's bundle of certificate authorities, a user that is not root, licence texts and a bill of
materials. No container engine and no network are needed.

make_image.py --build BUILD --output FOLDER [--version V] [--revision R] [--epoch SECONDS]
"""
import datetime
import pathlib
import re
import tempfile

import built
import debian
import linked
import oci
import sbom

USER = 65532  # The Deployment's. Nothing in the image belongs to this user.
AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"
AUTHORITIES_FOLDER = pathlib.Path("/usr/share/ca-certificates/mozilla")
OS_RELEASE = pathlib.Path("/usr/lib/os-release")
SBOM_PATH = "usr/share/doc/fairlead/sbom.spdx.json"
ARCHITECTURES = {"amd64": "amd64", "arm64": "arm64"}
SOURCE = "https://fairlead.dev"


def authorities():
    """The bundle as the package has it: what an administrator added to this machine stays out."""
    files = sorted(AUTHORITIES_FOLDER.glob("*.crt"))
    if not files:
        raise LookupError(f"{AUTHORITIES_FOLDER} is empty: install ca-certificates")
    return files, b"".join(path.read_bytes().rstrip(b"\n") + b"\n" for path in files)


def add_packages(tree, packages):
    """Licence texts, and the paragraphs by which scanners find packages in images without dpkg."""
    for package in packages:
        tree.file(f"usr/share/doc/{package.name}/copyright", package.copyright())
        tree.file(f"var/lib/dpkg/status.d/{package.name}", package.status().encode())


def base_layer(programs):
    """(the lower layer, {package: relationship})."""
    tree = oci.Tree()
    # As Debian lays its files out, so that the loader and what vendors' runtimes mount find their places.
    for name in ("lib", "lib64"):
        tree.link(name, f"usr/{name}")
    tree.folder("tmp", 0o1777)
    for folder in ("dev", "etc/fairlead", "proc", "run", "sys"):
        tree.folder(folder)
    tree.link("var/run", "/run")
    tree.file("etc/passwd", f"root:x:0:0:root:/:/nologin\nfairlead:x:{USER}:{USER}:fairlead:/:/nologin\n".encode())
    tree.file("etc/group", f"root:x:0:\nfairlead:x:{USER}:\n".encode())
    tree.file("etc/nsswitch.conf", b"passwd: files\ngroup: files\nhosts: files dns\n")
    tree.file("usr/lib/os-release", OS_RELEASE.read_bytes())
    tree.link("etc/os-release", "../usr/lib/os-release")
    certificates, bundle = authorities()
    tree.file(AUTHORITIES[1:], bundle)

    loader = linked.interpreter(programs[0])
    libraries = linked.libraries(programs)
    real_loader = pathlib.Path(loader).resolve()
    if not loader.startswith("/lib64/") and not loader.startswith("/lib/"):
        raise LookupError(f"a loader in an unknown place: {loader}")
    tree.file(f"usr{loader}", real_loader.read_bytes(), 0o755)
    for name, path in libraries.items():
        folder = str(path.parent).removeprefix("/usr").lstrip("/")  # lib/x86_64-linux-gnu
        tree.file(f"usr/{folder}/{name}", path.read_bytes())
    files = {real_loader: "DYNAMIC_LINK", OS_RELEASE: "CONTAINS", certificates[0]: "CONTAINS"}
    files.update((path, "DYNAMIC_LINK") for path in libraries.values())
    names = {}
    for path, package in debian.owners(files).items():
        names[package] = files[path]
    relations = {debian.Package(name): relation for name, relation in names.items()}
    add_packages(tree, relations)
    return tree, relations


def compiled_in(build, programs, shared):
    """{package: relationship} of the libraries of which headers alone are in the programs."""
    compiler = ("libc6-dev", "linux-libc-dev", "libstdc++-")
    sources = {package.source for package in shared}
    found = {}
    for name in sorted(set(debian.owners(linked.headers(build, programs)).values())):
        package = debian.Package(name)
        # Development packages of libraries that are there as files already, and the compiler's own, say nothing new.
        if not name.startswith(compiler) and package.source not in sources:
            found[package] = "STATIC_LINK"
    return found


def parse(arguments):
    parser = built.parser(__doc__.split("\n\n")[0], "a folder for fairlead.tar and what belongs to it")
    parser.add_argument("--revision", default="unknown", help="of the sources")
    return parser.parse_args(arguments)


def main(arguments):
    options = parse(arguments)
    build = options.build.resolve()
    programs = built.programs(build)
    version = options.version or built.version(programs[0])
    created = datetime.datetime.fromtimestamp(options.epoch, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    architecture = built.architecture()
    if architecture not in ARCHITECTURES:
        raise LookupError(f"no name of OCI's is known for the architecture {architecture}")
    options.output.mkdir(parents=True, exist_ok=True)

    lower, relations = base_layer(programs)
    headers_only = compiled_in(build, programs, relations)
    upper = oci.Tree()
    add_packages(upper, headers_only)
    bill = sbom.document(version, created, debian.base_version(), {**relations, **headers_only})
    upper.file(SBOM_PATH, bill)
    upper.file("usr/share/doc/fairlead/copyright", (pathlib.Path(__file__).parents[2] / "LICENSE").read_bytes())
    with tempfile.TemporaryDirectory() as scratch:
        for program in programs:
            stripped = pathlib.Path(scratch, program.name)
            linked.strip(program, stripped, options.output / "debug")
            upper.file(f"usr/bin/{program.name}", stripped.read_bytes(), 0o755)
    (options.output / "fairlead.spdx.json").write_bytes(bill)
    image = options.output / "fairlead.tar"
    digest = oci.write(
        image, [("libraries of Debian, certificates, users", lower), ("Fairlead and its bill of materials", upper)],
        run={"User": f"{USER}:{USER}", "WorkingDir": "/", "Entrypoint": ["/usr/bin/fairlead"], "Cmd": ["run"],
             "Env": ["PATH=/usr/bin", f"SSL_CERT_FILE={AUTHORITIES}", f"GRPC_DEFAULT_SSL_ROOTS_FILE_PATH={AUTHORITIES}"]},
        labels={"org.opencontainers.image.title": "fairlead",
                "org.opencontainers.image.description": "Kubernetes scheduler with hierarchical queues and a GPU autoscaler",
                "org.opencontainers.image.licenses": "Apache-2.0",
                "org.opencontainers.image.version": version,
                "org.opencontainers.image.revision": options.revision,
                "org.opencontainers.image.created": created,
                "org.opencontainers.image.url": SOURCE},
        created=created, epoch_s=options.epoch, architecture=ARCHITECTURES[architecture], reference=f"fairlead:{re.sub('[^A-Za-z0-9_.-]', '-', version)}")
    (options.output / "fairlead.digest").write_text(digest + "\n")
    print(f"{image}: {image.stat().st_size / 2**20:.1f} MiB, {len(relations) + len(headers_only)} packages, {digest}")


if __name__ == "__main__":
    built.run("make_image.py", main)
