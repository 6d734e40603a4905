#!/bin/sh
# Unpacks Debian's packages of a language into a file system, as a tar file: rootfs.sh golang|nodejs|python FILE
#
# It needs root, the package mmdebstrap and a mirror of Debian: the usual one, or the one that MIRROR names (a URL or a line of sources.list).
set -euf

here=$(cd "$(dirname "$0")" && pwd)
release=bookworm
packages=dash,coreutils,findutils,grep,sed,tar,ca-certificates
leave_out='/usr/share/doc/* /usr/share/man/* /usr/share/info/* /usr/share/locale/*'
case ${1-} in
golang)
	packages=$packages,golang-go
	leave_out="$leave_out /usr/lib/go-*/pkg/linux_*/cmd/* /usr/share/go-*/src/cmd/* /usr/share/go-*/test/*"
	;;
nodejs) packages=$packages,nodejs ;;
python) packages=$packages,python3,python3-pip ;;
*) echo "usage: $0 golang|nodejs|python FILE" >&2 && exit 2 ;;
esac
file=${2:?name the file to write}

set --
for path in $leave_out; do set -- "$@" --dpkgopt="path-exclude=$path"; done
# Packages are not configured, so that no package management comes along; configure.sh makes what is missed.
mmdebstrap --quiet --mode=root --format=tar --variant=extract --include="$packages" "$@" --aptopt='Acquire::Retries "5"' \
	--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr --customize-hook="$here/configure.sh" "$release" "$file.part" ${MIRROR:+"$MIRROR"}
mv "$file.part" "$file"
