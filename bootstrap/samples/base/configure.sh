#!/bin/sh
# mmdebstrap runs this script with the directory of a file system in which no package's script has
# run. The script creates the files that images need from those scripts: CA certificates, the user,
# and directories that the group root can write. Clusters run images as users who only have this
# group.
set -eu
cd "$1"
cat usr/share/ca-certificates/mozilla/*.crt >etc/ssl/certs/ca-certificates.crt
printf '%s\n' root:x:0:0:root:/root:/bin/sh "$IMAGE_USER:x:$IMAGE_UID:0:$IMAGE_USER:$IMAGE_HOME:/bin/sh" >etc/passwd
printf '%s\n' root:x:0: >etc/group
rm -rf var/cache/apt var/lib/apt var/lib/dpkg/info var/log/*
for directory in "$IMAGE_HOME" $IMAGE_WRITABLE; do mkdir -p ".$directory"; done
if [ -n "$IMAGE_SETUP" ]; then eval "$IMAGE_SETUP"; fi
for directory in "$IMAGE_HOME" $IMAGE_WRITABLE; do
	chown -R "$IMAGE_UID:0" ".$directory"
	chmod -R u=rwX,g=rwX,o=rX ".$directory"
done
