"""Writes an OCI image as one tar file (image-spec 1.1: oci-layout, index.json, blobs/sha256). The file also has the
manifest.json that `docker load` of older versions reads.

The same content gives the same bytes: entries are sorted, times and owners are fixed, gzip headers have no time.
"""
import gzip
import hashlib
import io
import json
import tarfile

LAYOUT_VERSION = "1.0.0"
CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar+gzip"
MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
INDEX_TYPE = "application/vnd.oci.image.index.v1+json"


class Tree:
    """The content of a layer: path without a leading slash -> (kind, mode, content or target). Parents are added."""

    def __init__(self):
        self._entries = {}

    def folder(self, path, mode=0o755):
        self._parents(path)
        self._add(path, ("folder", mode, b""))

    def file(self, path, content, mode=0o644):
        self._parents(path)
        self._add(path, ("file", mode, content))

    def link(self, path, target):
        self._parents(path)
        self._add(path, ("link", 0o777, target))

    def paths(self):
        return sorted(self._entries)

    def _parents(self, path):
        parent = path.rpartition("/")[0]
        if parent and parent not in self._entries:
            self.folder(parent)

    def _add(self, path, entry):
        if not path or path.startswith("/") or ".." in path.split("/"):
            raise ValueError(f"not a path inside the image: {path!r}")
        if self._entries.setdefault(path, entry) != entry:
            raise ValueError(f"two contents for {path}")

    def tar(self, epoch_s):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
            for path, (kind, mode, content) in sorted(self._entries.items()):
                info = tarfile.TarInfo(path)
                info.mode, info.mtime = mode, epoch_s
                if kind == "folder":
                    info.type = tarfile.DIRTYPE
                elif kind == "link":
                    info.type, info.linkname = tarfile.SYMTYPE, content
                else:
                    info.size = len(content)
                archive.addfile(info, io.BytesIO(content) if kind == "file" else None)
        return buffer.getvalue()


def digest(content):
    return "sha256:" + hashlib.sha256(content).hexdigest()


def _packed(content):
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", fileobj=buffer, mode="wb", compresslevel=6, mtime=0) as out:
        out.write(content)
    return buffer.getvalue()


def _json(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def write(path, layers, run, labels, created, epoch_s, architecture, reference):
    """Writes the image.

    layers     [(what it is, Tree)], the lowest first
    run        "config" of the image configuration: user, entry point, environment
    labels     annotations of the manifest and labels of the image
    created    RFC 3339
    epoch_s    time of every file, in seconds
    reference  NAME:TAG under which a loaded image is found
    """
    outer = Tree()

    def blob(content, media_type):
        outer.file("blobs/sha256/" + digest(content)[7:], content)
        return {"mediaType": media_type, "digest": digest(content), "size": len(content)}

    plain = [tree.tar(epoch_s) for _, tree in layers]
    packed = [blob(_packed(content), LAYER_TYPE) for content in plain]
    configuration = blob(_json({
        "created": created,
        "architecture": architecture,
        "os": "linux",
        "config": {**run, "Labels": labels},
        "rootfs": {"type": "layers", "diff_ids": [digest(content) for content in plain]},
        "history": [{"created": created, "created_by": what} for what, _ in layers],
    }), CONFIG_TYPE)
    manifest = blob(_json({"schemaVersion": 2, "mediaType": MANIFEST_TYPE, "config": configuration, "layers": packed,
                           "annotations": labels}), MANIFEST_TYPE)
    name, _, tag = reference.rpartition(":")
    outer.file("oci-layout", _json({"imageLayoutVersion": LAYOUT_VERSION}))
    outer.file("index.json", _json({
        "schemaVersion": 2,
        "mediaType": INDEX_TYPE,
        "manifests": [{
            **manifest,
            "platform": {"architecture": architecture, "os": "linux"},
            "annotations": {"org.opencontainers.image.ref.name": tag, "io.containerd.image.name": f"docker.io/library/{name}:{tag}"},
        }],
    }))
    blob_path = "blobs/sha256/{}".format
    outer.file("manifest.json", _json([{
        "Config": blob_path(configuration["digest"][7:]),
        "RepoTags": [reference],
        "Layers": [blob_path(layer["digest"][7:]) for layer in packed],
    }]))
    path.write_bytes(outer.tar(epoch_s))
    return manifest["digest"]
