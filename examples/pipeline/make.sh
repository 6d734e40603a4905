#!/bin/sh
# Builds the image that runs Jenkinsfiles from Debian packages, and publishes it to all projects of
# the cluster.
#
# It runs as root on a host of the cluster. SLIPWAY and OC are the paths of the programs if the
# search path does not contain them. ROOTFS is a file system that rootfs.sh has created, possibly on
# another machine; by default, this script creates it.
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
(cd "$work/root" && LD_LIBRARY_PATH=$java/lib chroot . $java/bin/java -XX:TieredStopAtLevel=1 -cp /usr/share/groovy/embeddable/groovy-all-2.4.21.jar:/usr/share/java/snakeyaml.jar \
	org.codehaus.groovy.tools.FileSystemCompiler -d /classes runner/*.groovy)
mv "$work/root/classes" "$work/context/classes"
cp "$here/Dockerfile" "$work/context"
cp "$oc" "$work/context/oc"
"$slipway" images build --tag localhost/pipeline-runner:current "$work/context"
"$slipway" images publish localhost/pipeline-runner:current openshift/pipeline-runner:latest
