"""Writes a mirror of CPAN into a directory: Debian's packages of Perl that are installed on this
machine and have the given names, and their dependencies, each as a distribution.

    perlmodules.py DIRECTORY NAME...
"""

import gzip
import io
import os
import pathlib
import re
import subprocess
import sys
import tarfile

# The directories of Perl modules, and the variables of MakeMaker for their targets.
ROOTS = (("/usr/share/perl5/", "lib/", "INST_LIB"), ("/usr/lib/x86_64-linux-gnu/perl5/5.36/", "arch/", "INST_ARCHLIB"))
MAKEFILE = """use ExtUtils::MakeMaker;
WriteMakefile(
    NAME => '%s', VERSION => '1.0',
    PREREQ_PM => {%s},
    PM => {%s},
);
"""


def files_of(package):
    """Returns the files of a package: the path on this machine, the path in the distribution, the target."""
    listed = subprocess.run(["dpkg", "-L", package], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    for path in listed.stdout.splitlines():
        for root, prefix, variable in ROOTS:
            if path.startswith(root) and os.path.isfile(path):
                name = path[len(root):]
                yield path, prefix + name, "$(%s)/%s" % (variable, name)


def modules_of(package):
    names = [name.split("/", 1)[1] for _, name, _ in files_of(package) if name.endswith(".pm")]
    return sorted((name[:-len(".pm")].replace("/", "::") for name in names), key=len)


def dependencies(package):
    text = subprocess.check_output(["dpkg-query", "--show", "--showformat=${Pre-Depends}, ${Depends}", package], text=True)
    return [name for name in re.findall(r"(?:^|, )(lib[\w.+-]+-perl)", text) if modules_of(name)]


def closure(packages, found):
    for package in packages:
        if package not in found:
            found[package] = modules_of(package)
            closure(dependencies(package), found)
    return found


def add(archive, name, content):
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), 0o644
    archive.addfile(entry, io.BytesIO(content))


def write(folder, package):
    files = list(files_of(package))
    needed = ", ".join("'%s' => 0" % modules_of(name)[0] for name in dependencies(package))
    installed = ", ".join("'%s' => '%s'" % (name, target) for _, name, target in files)
    stem = package + "-1.0"
    with tarfile.open(folder / (stem + ".tar.gz"), "w:gz") as archive:
        add(archive, stem + "/Makefile.PL", (MAKEFILE % (package.replace("-", "::"), needed, installed)).encode())
        for path, name, _ in files:
            add(archive, stem + "/" + name, pathlib.Path(path).read_bytes())
    return stem + ".tar.gz"


def main():
    target, author = pathlib.Path(sys.argv[1]), "D/DE/DEBIAN/"
    folder = target / "authors" / "id" / author
    folder.mkdir(parents=True)
    lines = []
    for package, modules in closure(sys.argv[2:], {}).items():
        archive = write(folder, package)
        lines += ["%s undef %s%s" % (module, author, archive) for module in modules]
    (target / "modules").mkdir()
    index = "File: 02packages.details.txt\nLine-Count: %d\n\n%s\n" % (len(lines), "\n".join(sorted(lines)))
    (target / "modules" / "02packages.details.txt.gz").write_bytes(gzip.compress(index.encode()))


main()
