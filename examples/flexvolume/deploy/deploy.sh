#!/bin/sh
# Installs the FlexVolume driver of this image on the host whose plugin directory is mounted at /flexmnt, and installs it again if it is
# removed or changed there. The driver is the file /$DRIVER of the image; VENDOR may be empty.
#
# It is copied to a name that begins with a dot, which the kubelet ignores, and then renamed, so
# that no process runs an incomplete copy. When the pod ends, the driver remains: volumes can be in
# use.
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
