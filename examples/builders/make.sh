#!/bin/sh
# Makes the source-to-image builder of a language out of Debian's packages and publishes it for every project of the cluster:
#
#   make.sh golang|nodejs|python
#
# It runs on a machine of the cluster. SLIPWAY is the program where it is not in the search path. ROOTFS is a file system that rootfs.sh has made
# before, perhaps elsewhere; without it, it is made now.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
slipway=${SLIPWAY:-slipway}
language=${1-}
case $language in # the version that Debian has
golang) version=1.19 ;;
nodejs) version=18 ;;
python) version=3.11 ;;
*) echo "usage: $0 golang|nodejs|python" >&2 && exit 2 ;;
esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -R "$here/$language/." "$work"
if [ -n "${ROOTFS-}" ]; then cp "$ROOTFS" "$work/rootfs.tar"; else "$here/rootfs.sh" "$language" "$work/rootfs.tar"; fi
"$slipway" images build --tag "localhost/builder-$language:$version" "$work"
"$slipway" images publish "localhost/builder-$language:$version" "openshift/$language:$version"
