#!/usr/bin/env python3
"""The image that scripts/package/make_image.py makes: that it is what the OCI specification says, small, the same every time,
without anything that is writable or is not accounted for.

image_test.py ROOT BUILD
"""
import hashlib
import gzip
import json
import os
import pathlib
import re
import stat
import subprocess
import sys
import tempfile
import unittest

import oci_layout

ROOT, BUILD = pathlib.Path("."), pathlib.Path("build")
MOST_BYTES = 60 * 2**20
USER = 65532


def make(folder, *more):
    done = subprocess.run([sys.executable, "-B", ROOT / "scripts/package/make_image.py", "--build", BUILD, "--output", folder,
                           "--epoch", "1700000000", *more], capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return pathlib.Path(folder, "fairlead.tar")


class ImageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory(prefix="fairlead-image.")
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = pathlib.Path(scratch.name)
        cls.path = make(cls.folder / "one", "--revision", "abc")
        cls.image = oci_layout.Image(cls.path)
        cls.root = cls.image.unpack(cls.folder / "root")
        cls.bill = json.loads((cls.root / "usr/share/doc/fairlead/sbom.spdx.json").read_text())

    def test_it_is_small(self):
        self.assertLess(self.path.stat().st_size, MOST_BYTES)
        self.assertGreater(self.path.stat().st_size, 2**20)

    def test_a_second_one_has_the_same_bytes(self):
        # Another folder, another time, other names of the month and other masks of files.
        environment = dict(os.environ)
        try:
            os.environ.update(TZ="Asia/Tokyo", LC_ALL="C.UTF-8")
            mask = os.umask(0o077)
            again = make(self.folder / "two", "--revision", "abc")
        finally:
            os.umask(mask)
            os.environ.clear()
            os.environ.update(environment)
        self.assertEqual(hashlib.sha256(again.read_bytes()).hexdigest(), hashlib.sha256(self.path.read_bytes()).hexdigest())

    def test_the_layout(self):
        self.assertEqual(json.loads(self.image.files["oci-layout"]), {"imageLayoutVersion": "1.0.0"})
        self.assertEqual(self.image.manifest["schemaVersion"], 2)
        self.assertEqual(self.image.descriptor["platform"], {"architecture": self.image.config["architecture"], "os": "linux"})
        plain = ["sha256:" + hashlib.sha256(gzip.decompress(layer)).hexdigest() for layer in self.image.layers]
        self.assertEqual(self.image.config["rootfs"], {"type": "layers", "diff_ids": plain})
        self.assertEqual(len(self.image.config["history"]), len(plain))
        self.assertEqual((self.folder / "one/fairlead.digest").read_text().strip(), self.image.descriptor["digest"])
        # What `docker load` reads names the same blobs.
        [docker] = json.loads(self.image.files["manifest.json"])
        self.assertEqual(docker["Config"], "blobs/sha256/" + self.image.manifest["config"]["digest"][7:])
        self.assertEqual(docker["Layers"], ["blobs/sha256/" + layer["digest"][7:] for layer in self.image.manifest["layers"]])

    def test_times_and_owners_are_fixed(self):
        for entry in self.image.entries() + self.image.members:
            self.assertEqual((entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname), (1700000000, 0, 0, "", ""), entry.name)
        names = [entry.name for entry in self.image.members]
        self.assertEqual(names, sorted(names))
        for layer in self.image.layers:
            self.assertEqual(layer[4:8], b"\0\0\0\0", "a gzip header with a time")

    def test_it_runs_as_a_user_that_can_write_nothing(self):
        self.assertEqual(self.image.config["config"]["User"], f"{USER}:{USER}")
        self.assertIn(f"fairlead:x:{USER}:{USER}:", (self.root / "etc/passwd").read_text())
        for entry in self.image.entries():
            if entry.issym() or entry.name == "tmp":
                continue
            self.assertEqual(entry.mode & (stat.S_IWOTH | stat.S_IWGRP | stat.S_ISUID | stat.S_ISGID), 0, entry.name)

    def test_what_the_deployment_starts_is_there(self):
        # As the Deployment and reservation pods name them, by the image's own PATH.
        for name in ("fairlead", "fairlead-gpu-index"):
            self.assertIn("PATH=/usr/bin", self.image.config["config"]["Env"])
            self.assertTrue(os.access(self.root / "usr/bin" / name, os.X_OK))
        self.assertEqual(self.image.config["config"]["Entrypoint"], ["/usr/bin/fairlead"])
        deployment = (ROOT / "manifests/base/deployment.yaml").read_text()
        self.assertIn(f"runAsUser: {USER}\n", deployment)
        self.assertIn("command: [fairlead, run,", deployment)

    def test_nothing_else_can_be_started(self):
        executables = {p.relative_to(self.root).as_posix() for p in self.root.rglob("*") if p.is_file() and os.access(p, os.X_OK)}
        self.assertEqual({p for p in executables if not re.match(r"usr/lib(64)?/(\S+/)?ld-linux", p)},
                         {"usr/bin/fairlead", "usr/bin/fairlead-gpu-index"})

    def test_the_programs_have_no_debug_information_and_it_is_kept_beside(self):
        for name in ("fairlead", "fairlead-gpu-index"):
            sections = subprocess.run(["readelf", "--sections", "--wide", self.root / "usr/bin" / name], capture_output=True, text=True).stdout
            self.assertNotIn(".debug_info", sections)
            notes = subprocess.run(["readelf", "--notes", "--wide", self.root / "usr/bin" / name], capture_output=True, text=True).stdout
            build_id = re.search(r"Build ID: ([0-9a-f]+)", notes)[1]
            debug = self.folder / f"one/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug"
            kept = subprocess.run(["readelf", "--sections", "--wide", debug], capture_output=True, text=True).stdout
            self.assertIn(".debug_info", kept)

    def test_the_programs_do_not_say_where_they_were_built(self):
        for name in ("fairlead", "fairlead-gpu-index"):
            self.assertEqual((BUILD / "bin" / name).read_bytes().count(str(ROOT).encode() + b"/"), 0, name)

    def test_every_library_is_in_the_bill_of_materials(self):
        names = {package["name"] for package in self.bill["packages"]}
        self.assertEqual(self.bill["spdxVersion"], "SPDX-2.3")
        for name in ("fairlead", "libc6", "libssl3", "libcurl4", "libprotobuf32", "ca-certificates", "libboost1.81-dev", "libcli11-dev"):
            self.assertIn(name, names)
        ids = [package["SPDXID"] for package in self.bill["packages"]]
        self.assertEqual(len(ids), len(set(ids)))
        for relation in self.bill["relationships"]:
            self.assertIn(relation["relatedSpdxElement"], ids)
        # By dpkg again, of what is in the image: every library has its package, at the version that is installed here.
        versions = {package["name"]: package["versionInfo"] for package in self.bill["packages"]}
        libraries = [p for p in (self.root / "usr/lib").rglob("*.so*") if p.is_file()]
        self.assertGreater(len(libraries), 50)
        for library in libraries:
            # The loader knows its own alias in lib64; every other library lies where its package has it.
            place = pathlib.Path("/", library.relative_to(self.root)).resolve()
            found = ""
            for name in (place, pathlib.Path(str(place).replace("/usr/lib/", "/lib/", 1))):
                done = subprocess.run(["dpkg-query", "--search", name], capture_output=True, text=True)
                found = found or done.stdout.split(":")[0]
            self.assertIn(found, versions, library)
            self.assertEqual(library.read_bytes(), place.read_bytes())
            there = subprocess.run(["dpkg-query", "--show", "--showformat=${Version}\n", found], capture_output=True, text=True).stdout
            self.assertIn(versions[found], there.split("\n"))

    def test_every_package_comes_with_its_licence(self):
        for package in self.bill["packages"]:
            if package["name"] == "fairlead":
                continue
            self.assertTrue((self.root / f"usr/share/doc/{package['name']}/copyright").stat().st_size > 0)
            self.assertIn(f"Version: {package['versionInfo']}\n", (self.root / f"var/lib/dpkg/status.d/{package['name']}").read_text())

    def test_the_certificates_are_the_packages_and_no_others(self):
        bundle = (self.root / "etc/ssl/certs/ca-certificates.crt").read_text()
        count = len(list(pathlib.Path("/usr/share/ca-certificates/mozilla").glob("*.crt")))
        self.assertGreater(count, 50)
        self.assertEqual(bundle.count("BEGIN CERTIFICATE"), count)

    def test_a_program_that_is_not_there_is_said_so(self):
        with tempfile.TemporaryDirectory() as empty:
            done = subprocess.run([sys.executable, "-B", ROOT / "scripts/package/make_image.py", "--build", empty, "--output", empty,
                                   "--version", "1"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 1)
            self.assertIn("bin/fairlead is not there", done.stderr)


if __name__ == "__main__":
    ROOT, BUILD = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    unittest.main(argv=sys.argv[:1])
