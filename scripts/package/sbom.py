"""The software bill of materials: an SPDX 2.3 document in JSON (spdx.github.io/spdx-spec/v2.3)."""
import hashlib
import json
import re
import urllib.parse

ROOT = "SPDXRef-Package-fairlead"


def _reference(package):
    return "SPDXRef-Package-deb-" + re.sub(r"[^A-Za-z0-9.-]", "-", package.name)


def _purl(package, debian):
    quoted = urllib.parse.quote(package.version, safe="")
    return f"pkg:deb/debian/{package.name}@{quoted}?arch={package.architecture}&distro=debian-{debian}"


def _entry(package, debian):
    return {
        "SPDXID": _reference(package),
        "name": package.name,
        "versionInfo": package.version,
        "supplier": "Organization: Debian",
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "homepage": package.fields.get("Homepage", "NOASSERTION"),
        "sourceInfo": f"built from: {package.source} {package.source_version}",
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": "NOASSERTION",
        "licenseComments": f"The licence texts are in /usr/share/doc/{package.name}/copyright.",
        "copyrightText": "NOASSERTION",
        "primaryPackagePurpose": "LIBRARY",
        "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": _purl(package, debian)}],
    }


def document(version, created, debian, relations):
    """relations: {Package: its SPDX relationship to Fairlead, such as DYNAMIC_LINK}; the packages that are there."""
    packages = sorted(relations, key=lambda package: package.name)
    root = {
        "SPDXID": ROOT,
        "name": "fairlead",
        "versionInfo": version,
        "supplier": "NOASSERTION",
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": "Apache-2.0",
        "licenseDeclared": "Apache-2.0",
        "copyrightText": "NOASSERTION",
        "primaryPackagePurpose": "APPLICATION",
    }
    content = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"fairlead-{version}",
        "creationInfo": {"created": created, "creators": ["Tool: fairlead-make-image"]},
        "packages": [root, *(_entry(package, debian) for package in packages)],
        "relationships": [
            {"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": ROOT},
            *({"spdxElementId": ROOT, "relationshipType": relations[package], "relatedSpdxElement": _reference(package)}
              for package in packages),
        ],
    }
    # Two documents of one name need different namespaces; the same content has the same one.
    content["documentNamespace"] = f"https://fairlead.dev/spdx/fairlead-{version}-" + hashlib.sha256(
        json.dumps(content, sort_keys=True).encode()).hexdigest()
    return json.dumps(content, indent=1, sort_keys=True).encode() + b"\n"
