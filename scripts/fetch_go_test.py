#!/usr/bin/env python3
"""Tests of fetch_go.py, against a module proxy on loopback."""
import contextlib
import http.server
import io
import os
import pathlib
import platform
import tempfile
import threading
import unittest
import zipfile
from unittest import mock

import fetch_go

ARCHITECTURE = fetch_go.ARCHITECTURES.get(platform.machine())
VERSION = f"v0.0.1-{fetch_go.RELEASE}.linux-{ARCHITECTURE}"
PATH = f"/golang.org/toolchain/@v/{VERSION}.zip"


def archive_of(files):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, content in files.items():
            archive.writestr(f"golang.org/toolchain@{VERSION}/{name}", content)
    return data.getvalue()


@unittest.skipIf(ARCHITECTURE is None, "no Go is downloaded for this machine")
class FetchTest(unittest.TestCase):
    def setUp(self):
        self.files = {"bin/go": "#!go", "pkg/tool/compile": "tool", "VERSION": "v"}
        self.served = {PATH: archive_of(self.files)}
        served = self.served

        class Proxy(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                content = served.get(self.path)
                self.send_response(404 if content is None else 200)
                self.end_headers()
                self.wfile.write(content or b"")

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.proxy = f"http://127.0.0.1:{server.server_port}"
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name) / "go"
        self.trust(self.served[PATH])

    def trust(self, content):
        right = fetch_go.sum_of(zipfile.ZipFile(io.BytesIO(content)))
        patch = mock.patch.dict(fetch_go.SUMS, {ARCHITECTURE: right})
        patch.start()
        self.addCleanup(patch.stop)

    def fetch(self, proxies):
        with mock.patch.dict(os.environ, {"GOPROXY": proxies}), contextlib.redirect_stderr(io.StringIO()):
            return fetch_go.fetch(str(self.folder))

    def test_what_go_runs_can_be_run(self):
        self.assertIsNone(self.fetch(self.proxy + "/,direct"))
        self.assertEqual((self.folder / "VERSION").read_text(), "v")
        for program in ("bin/go", "pkg/tool/compile"):
            self.assertTrue(os.access(self.folder / program, os.X_OK), program)
        self.assertEqual(os.listdir(self.folder.parent), ["go"])

    def test_another_content_is_not_unpacked(self):
        for files in ({**self.files, "bin/go": "#!evil"}, {**self.files, "more": ""}, {"bin/go": "#!go"}):
            self.served[PATH] = archive_of(files)
            self.assertIn("its sum is another one", self.fetch(self.proxy))
            self.assertEqual(os.listdir(self.folder.parent), [])

    def test_the_next_proxy_is_asked(self):
        self.assertIsNone(self.fetch(f"{self.proxy}/none|{self.proxy}"))

    def test_why_it_cannot_be_had(self):
        self.assertIn("404", self.fetch(f"{self.proxy}/none"))
        self.served[PATH] = b"<html>"
        self.assertIn("not a zip file", self.fetch(self.proxy))
        self.assertIn("GOPROXY names no proxy", self.fetch("off"))
        self.assertEqual(os.listdir(self.folder.parent), [])

    def test_one_that_is_there_stays(self):
        self.folder.mkdir()
        (self.folder / "mine").touch()
        self.assertIsNone(self.fetch(self.proxy))
        self.assertEqual(os.listdir(self.folder), ["mine"])

    def test_the_sum_is_that_of_go(self):
        """Of golang.org/x/mod's dirhash.Hash1: sha256 of lines "sha256  name", in order."""
        content = zipfile.ZipFile(io.BytesIO(archive_of({})))
        self.assertEqual(fetch_go.sum_of(content), "h1:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=")


if __name__ == "__main__":
    unittest.main()
