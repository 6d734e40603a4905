#!/bin/sh
# Unpacks Debian's packages of the pipeline runner into a file system, as a tar file: rootfs.sh FILE
#
# It needs root, the package mmdebstrap and a mirror of Debian: the default mirror, or MIRROR (a URL
# or a line of sources.list).
set -euf

here=$(cd "$(dirname "$0")" && pwd)
file=${1:?name the file to write}
packages=dash,coreutils,findutils,grep,sed,tar,gzip,ca-certificates,git,curl,openssh-client,openjdk-17-jre-headless,groovy,libyaml-snake-java
# Perl is only for other commands of git, and the runner uses one of the copies of Groovy.
leave_out='/usr/share/doc/* /usr/share/man/* /usr/share/info/* /usr/share/locale/* /usr/share/perl/* /usr/share/perl5/* /usr/bin/perl* /usr/lib/*/perl/*
	/usr/lib/*/perl-base/* /usr/share/groovy/indy/* /usr/share/groovy/embeddable/*-indy.jar /usr/share/java/groovy-2* /usr/share/java/groovydoc* /usr/share/maven-repo/*
	/usr/lib/jvm/*/lib/ct.sym /usr/lib/jvm/*/lib/server/classes_nocoops.jsa'

set --
for path in $leave_out; do set -- "$@" --dpkgopt="path-exclude=$path"; done
# Packages are not configured, so that the image contains no package management. configure.sh
# creates the missing files.
mmdebstrap --quiet --mode=root --format=tar --variant=extract --include="$packages" "$@" --aptopt='Acquire::Retries "5"' \
	--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr --extract-hook="$here/configure.sh" bookworm "$file.part" ${MIRROR:+"$MIRROR"}
mv "$file.part" "$file"
