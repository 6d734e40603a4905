#!/bin/sh
# Makes the image that runs Jenkinsfiles out of Debian's packages, and publishes it for every project of the cluster.
#
# It runs as root on a machine of the cluster. SLIPWAY and OC are the programs where they are not in the search path. ROOTFS is a file system that rootfs.sh
# has made before, perhaps elsewhere; without it, it is made now.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
slipway=${SLIPWAY:-slipway}
oc=${OC:-$(command -v oc || true)}
[ -x "$oc" ] || { echo "$0: find oc: set OC to its path" >&2 && exit 2; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/context" "$work/root"
if [ -n "${ROOTFS-}" ]; then cp "$ROOTFS" "$work/context/rootfs.tar"; else "$here/rootfs.sh" "$work/context/rootfs.tar"; fi

# The runner is compiled by the image's own Groovy.
tar -C "$work/root" -xf "$work/context/rootfs.tar"
cp -R "$here/runner" "$work/root/runner"
mkdir "$work/root/classes"
java=/usr/lib/jvm/java-17-openjdk-amd64
(cd "$work/root" && LD_LIBRARY_PATH=$java/lib chroot . $java/bin/java -XX:TieredStopAtLevel=1 -cp /usr/share/groovy/embeddable/groovy-all-2.4.21.jar \
	org.codehaus.groovy.tools.FileSystemCompiler -d /classes runner/*.groovy)
mv "$work/root/classes" "$work/context/classes"
cp "$here/Dockerfile" "$work/context"
cp "$oc" "$work/context/oc"
"$slipway" images build --tag localhost/pipeline-runner:current "$work/context"
"$slipway" images publish localhost/pipeline-runner:current openshift/pipeline-runner:latest
