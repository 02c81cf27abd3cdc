"""Reads an OCI image from a tar file, and checks every digest and size on the way."""
import hashlib
import io
import json
import pathlib
import tarfile


class Image:
    def __init__(self, path):
        with tarfile.open(path) as outer:
            self.members = outer.getmembers()
            self.files = {m.name: outer.extractfile(m).read() for m in self.members if m.isfile()}
        self.index = json.loads(self.files["index.json"])
        [self.descriptor] = self.index["manifests"]
        self.manifest = json.loads(self.blob(self.descriptor))
        self.config = json.loads(self.blob(self.manifest["config"]))
        self.layers = [self.blob(layer) for layer in self.manifest["layers"]]

    def blob(self, descriptor):
        algorithm, _, digest = descriptor["digest"].partition(":")
        content = self.files[f"blobs/{algorithm}/{digest}"]
        if hashlib.new(algorithm, content).hexdigest() != digest or len(content) != descriptor["size"]:
            raise ValueError(f"not what its descriptor says: {descriptor}")
        return content

    def entries(self):
        """[tarfile.TarInfo] of all layers, the lowest first."""
        out = []
        for layer in self.layers:
            with tarfile.open(fileobj=io.BytesIO(layer)) as archive:
                out += archive.getmembers()
        return out

    def unpack(self, folder):
        """Applies the layers; there are no whiteouts in an image that was made at once."""
        for layer in self.layers:
            with tarfile.open(fileobj=io.BytesIO(layer)) as archive:
                # Older Pythons have no filters, and newer ones ask for one.
                archive.extractall(folder, **({"filter": "tar"} if hasattr(tarfile, "tar_filter") else {}))
        return pathlib.Path(folder)
