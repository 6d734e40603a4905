"""Writes an index of Python packages into a directory: the packages of Debian that are installed on
this machine and have the given names, and their dependencies, as wheels.

    wheels.py DIRECTORY NAME...
"""

import importlib.metadata
import os
import pathlib
import re
import subprocess
import sys
import zipfile

PACKAGES = "/usr/lib/python3/dist-packages/"


def files_of(package):
    """Returns the paths of a Debian package that Python finds, below PACKAGES, if it is installed."""
    listed = subprocess.run(["dpkg", "-L", package], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return [path[len(PACKAGES):] for path in listed.stdout.splitlines() if path.startswith(PACKAGES)]


def distribution_of(package):
    """Returns the metadata in a Debian package, or None if it contains none."""
    for path in files_of(package):
        if "/" not in path and path.endswith((".egg-info", ".dist-info")):
            return importlib.metadata.PathDistribution(pathlib.Path(PACKAGES + path))
    return None


def needed(package):
    """Returns the Debian packages of Python code that a package needs. Debian's metadata lacks them."""
    text = subprocess.check_output(["dpkg-query", "--show", "--showformat=${Depends}", package], text=True)
    return re.findall(r"(?:^|, )(python3-[\w.+-]+)", text)


def dependencies(package):
    return [name for name in needed(package) if distribution_of(name)]


def contents_of(package):
    """Returns the paths of the files of a package, and of the packages without metadata that it needs."""
    parts = [package] + [name for name in needed(package) if not distribution_of(name)]
    paths = [path for part in parts for path in files_of(part)]
    return [path for path in paths if os.path.isfile(PACKAGES + path)]


def closure(packages, found):
    for package in packages:
        if package not in found:
            found[package] = distribution_of(package)
            closure(dependencies(package), found)
    return found


def normalized(distribution):
    return re.sub(r"[-_.]+", "-", distribution.metadata["Name"]).lower()


def write(directory, package, distribution):
    name, version = normalized(distribution), distribution.version
    own = distribution._path.name
    paths = [path for path in contents_of(package) if path.split("/")[0] != own]
    native = any(path.endswith(".so") for path in paths)
    tag = "cp%d%d-cp%d%d-linux_x86_64" % (sys.version_info[:2] * 2) if native else "py3-none-any"
    stem = "%s-%s" % (name.replace("-", "_"), version)
    info = stem + ".dist-info/"
    required = ["Requires-Dist: " + normalized(distribution_of(other)) for other in dependencies(package)]
    contents = {path: pathlib.Path(PACKAGES + path).read_bytes() for path in paths}
    contents[info + "METADATA"] = "\n".join(["Metadata-Version: 2.1", "Name: " + name, "Version: " + version, *required, ""]).encode()
    contents[info + "WHEEL"] = ("Wheel-Version: 1.0\nRoot-Is-Purelib: %s\nTag: %s\n" % (str(not native).lower(), tag)).encode()
    entry_points = distribution.read_text("entry_points.txt")
    if entry_points:
        contents[info + "entry_points.txt"] = entry_points.encode()
    contents[info + "RECORD"] = "".join("%s,,\n" % path for path in [*contents, info + "RECORD"]).encode()
    folder = os.path.join(directory, name)
    os.makedirs(folder)
    wheel = "%s-%s.whl" % (stem, tag)
    with zipfile.ZipFile(os.path.join(folder, wheel), "w") as archive:
        for path, content in contents.items():
            archive.writestr(path, content)
    with open(os.path.join(folder, "index.html"), "w") as page:
        page.write('<!DOCTYPE html><a href="%s">%s</a>' % (wheel, wheel))


for key, value in closure(sys.argv[2:], {}).items():
    write(sys.argv[1], key, value)
