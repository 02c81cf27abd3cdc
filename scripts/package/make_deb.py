#!/usr/bin/env python3
"""Writes build/deb/fairlead_VERSION_ARCHITECTURE.deb: the programs, a hardened systemd unit, the plugin of kubectl, definitions
and manifests. The same input gives the same bytes.

make_deb.py --build BUILD --output FOLDER [--version V] [--epoch SECONDS]
"""
import gzip
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import built
import debian
import linked

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONFFILES = ("etc/default/fairlead", "etc/fairlead/fairlead.yaml")
COMPLETIONS = {
    "bash": "usr/share/bash-completion/completions/fairlead",
    "zsh": "usr/share/zsh/vendor-completions/_fairlead",
    "fish": "usr/share/fish/vendor_completions.d/fairlead.fish",
}
MAINTAINER = "The Fairlead authors <fairlead@fairlead.dev>"


def needed(program):
    """Names of the libraries that the program itself names."""
    out = subprocess.run(["readelf", "--dynamic", "--wide", program], check=True, capture_output=True, text=True).stdout
    return set(re.findall(r"\(NEEDED\).*\[(.+)\]", out))


def least(version):
    """A version that every update of the linked one's release satisfies: `7.88.1-10` of `7.88.1-10+deb12u15`, and `3.0.19-1~` of
    `3.0.19-1~deb12u2`, which comes before `3.0.19-1` (deb-version(7))."""
    return re.sub(r"([+~])deb\d.*$", lambda mark: mark[1].replace("+", ""), version)


def dependencies(programs):
    """The field Depends: packages of the libraries that the programs name. Those depend on the others."""
    files = linked.libraries(programs)
    names = set().union(*(needed(program) for program in programs))
    packages = set(debian.owners([files[name] for name in names if name in files]).values())
    return ", ".join(f"{name} (>= {least(debian.Package(name).version)})" for name in sorted(packages))


def place(root, path, content, mode=0o644):
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
    target.chmod(mode)


def fill(root, programs, debug):
    for program in programs:
        target = root / "usr/bin" / program.name
        target.parent.mkdir(parents=True, exist_ok=True)
        linked.strip(program, target, debug)
        target.chmod(0o755)
    (root / "usr/bin/kubectl-fairlead").symlink_to("fairlead")
    place(root, "usr/lib/systemd/system/fairlead.service", (ROOT / "packaging/fairlead.service").read_bytes())
    place(root, "etc/default/fairlead", (ROOT / "packaging/default").read_bytes())
    # The manifests' file names the namespace of the Lease, which `kubectl apply -k` makes.
    place(root, "etc/fairlead/fairlead.yaml", (ROOT / "manifests/base/fairlead.yaml").read_bytes())
    place(root, "usr/share/man/man1/fairlead.1.gz", gzip.compress((ROOT / "packaging/fairlead.1").read_bytes(), 9, mtime=0))
    for shell, path in COMPLETIONS.items():
        place(root, path, subprocess.run([root / "usr/bin/fairlead", "completion", shell], check=True, capture_output=True).stdout)
    place(root, "usr/share/doc/fairlead/copyright", (ROOT / "LICENSE").read_bytes())
    for folder in ("crds", "manifests"):
        # Links of the chart become files: their targets lie beside.
        shutil.copytree(ROOT / folder, root / "usr/share/fairlead" / folder)
    for path in (root / "usr/share/fairlead").rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    for path in [root, *root.rglob("*")]:
        if path.is_dir():
            path.chmod(0o755)


def control(root, version, architecture, depends):
    size_kib = sum((p.lstat().st_size + 1023) // 1024 for p in root.rglob("*") if p.is_file() and not p.is_symlink())
    place(root, "DEBIAN/control", f"""Package: fairlead
Version: {version}
Architecture: {architecture}
Maintainer: {MAINTAINER}
Installed-Size: {size_kib}
Depends: {depends}
Recommends: ca-certificates
Section: admin
Priority: optional
Homepage: https://fairlead.dev
Description: Kubernetes scheduler with queues and a GPU autoscaler
 Fairlead schedules pods by hierarchical queues with quotas and limits, says why
 each waiting workload waits, and requests nodes for those that capacity blocks
 and policy permits. The plugin kubectl-fairlead answers questions about them.
""".encode())
    place(root, "DEBIAN/conffiles", "".join(f"/{name}\n" for name in CONFFILES).encode())
    for name in ("postinst", "prerm", "postrm"):
        place(root, f"DEBIAN/{name}", (ROOT / "packaging" / name).read_bytes(), 0o755)
    (root / "DEBIAN").chmod(0o755)


def main(arguments):
    options = built.parser(__doc__.split("\n\n")[0], "a folder for the package").parse_args(arguments)
    programs = built.programs(options.build.resolve())
    version = options.version or built.version(programs[0])
    architecture = built.architecture()
    options.output.mkdir(parents=True, exist_ok=True)
    package = options.output / f"fairlead_{version}_{architecture}.deb"
    with tempfile.TemporaryDirectory() as scratch:
        root = pathlib.Path(scratch, "root")
        root.mkdir()
        fill(root, programs, options.output / "debug")
        control(root, version, architecture, dependencies(programs))
        # dpkg-deb sorts by itself, and takes the time of every file down to this one.
        for path in root.rglob("*"):
            os.utime(path, (options.epoch, options.epoch), follow_symlinks=False)
        os.utime(root, (options.epoch, options.epoch))
        subprocess.run(["dpkg-deb", "--root-owner-group", "-Zxz", "-z6", "--threads-max=1", "--build", root, package], check=True,
                       stdout=subprocess.DEVNULL, env={**os.environ, "SOURCE_DATE_EPOCH": str(options.epoch)})
    print(f"{package}: {package.stat().st_size / 2**20:.1f} MiB")


if __name__ == "__main__":
    built.run("make_deb.py", main)
