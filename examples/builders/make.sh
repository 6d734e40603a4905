#!/bin/sh
# Makes the source-to-image builder of a language out of Debian's packages and publishes it for every project of the cluster:
#
#   make.sh golang|nodejs|python
#
# It needs root, the package mmdebstrap and a mirror of Debian: the usual one, or the one that MIRROR names (a URL, a line of sources.list or "-").
# SLIPWAY is the program if it is not in the search path. ROOTFS is where to keep the file system, which is what takes long; one that is there is used.
set -euf

here=$(cd "$(dirname "$0")" && pwd)
slipway=${SLIPWAY:-slipway}
release=bookworm
base=dash,coreutils,findutils,grep,sed,tar,ca-certificates
leave_out='/usr/share/doc/* /usr/share/man/* /usr/share/info/* /usr/share/locale/*'
language=${1-}
case $language in # the packages, and the version that the release has of them
golang)
	packages=golang-go version=1.19
	leave_out="$leave_out /usr/lib/go-*/pkg/linux_*/cmd/* /usr/share/go-*/src/cmd/* /usr/share/go-*/test/*"
	;;
nodejs) packages=nodejs version=18 ;;
python) packages=python3,python3-pip version=3.11 ;;
*) echo "usage: $0 golang|nodejs|python" >&2 && exit 2 ;;
esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -R "$here/$language/." "$work/"
rootfs=${ROOTFS:-$work/rootfs.tar}
if ! [ -e "$rootfs" ]; then
	set --
	for path in $leave_out; do set -- "$@" --dpkgopt="path-exclude=$path"; done
	# Packages are unpacked and not configured, which leaves package management out of the image.
	mmdebstrap --quiet --mode=root --format=tar --variant=extract --include="$base,$packages" "$@" \
		--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr --customize-hook="$here/rootfs.sh" "$release" "$rootfs.part" ${MIRROR:+"$MIRROR"}
	mv "$rootfs.part" "$rootfs"
fi
[ "$rootfs" = "$work/rootfs.tar" ] || cp "$rootfs" "$work/rootfs.tar"

"$slipway" images build --tag "localhost/builder-$language:$version" "$work"
"$slipway" images publish "localhost/builder-$language:$version" "openshift/$language:$version"
