"""Writes a registry of npm into a directory: the modules of Debian's packages that are installed on
this machine and have the given names, and their dependencies.

    nodemodules.py DIRECTORY ADDRESS NAME...

ADDRESS is the URL of the directory.
"""

import json
import os
import pathlib
import sys
import tarfile

MODULES = pathlib.Path("/usr/share/nodejs")


def closure(names, found):
    for name in names:
        if name not in found:
            found[name] = json.loads((MODULES / name / "package.json").read_text())
            closure(found[name].get("dependencies", {}), found)
    return found


def write(directory, address, name, manifest):
    version = manifest["version"]
    archive = "-/%s-%s.tgz" % (name.replace("/", "-"), version)
    # Debian has one version of each module, and changes modules to work with it.
    dependencies = {dependency: "*" for dependency in manifest.get("dependencies", {})}
    manifest = {"name": name, "version": version, "main": manifest.get("main", "index.js"), "dependencies": dependencies}
    with tarfile.open(directory / archive, "w:gz", dereference=True) as tar:
        tar.add(MODULES / name, "package", filter=lambda entry: None if entry.name == "package/package.json" else entry)
        content = directory / "package.json"
        content.write_text(json.dumps(manifest))
        tar.add(content, "package/package.json")
        content.unlink()
    released = dict(manifest, dist={"tarball": "%s/%s" % (address, archive)})
    (directory / name).write_text(json.dumps({"name": name, "dist-tags": {"latest": version}, "versions": {version: released}}))


target = pathlib.Path(sys.argv[1])
os.mkdir(target / "-")
for key, value in closure(sys.argv[3:], {}).items():
    write(target, sys.argv[2], key, value)
