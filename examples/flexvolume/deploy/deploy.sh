#!/bin/sh
# Installs this image's FlexVolume driver on the host whose plugin directory is mounted at /flexmnt.
# If the driver is removed or changed there, the script installs it again. The driver is the file
# /$DRIVER in the image. VENDOR can be empty.
#
# The script copies the driver to a name that begins with a dot, which the kubelet ignores, and then
# renames the copy, so that no process runs an incomplete copy. When the pod ends, the driver
# remains, because volumes can be in use.
set -o errexit -o nounset

VENDOR=${VENDOR-example.com}
DRIVER=${DRIVER-loop}
# Paths; only tests change them.
source=${SOURCE:-}/$DRIVER
directory=${FLEXMNT:-/flexmnt}/$VENDOR${VENDOR:+"~"}$DRIVER

trap 'exit 0' TERM INT
while :; do
	if ! cmp -s "$source" "$directory/$DRIVER" || [ ! -x "$directory/$DRIVER" ]; then
		mkdir -p "$directory"
		cp "$source" "$directory/.$DRIVER"
		chmod 0755 "$directory/.$DRIVER"
		sync
		mv -f "$directory/.$DRIVER" "$directory/$DRIVER"
		echo "installed $directory/$DRIVER"
	fi
	sleep "${INTERVAL:-60}" &
	wait $!
done
