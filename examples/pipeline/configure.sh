#!/bin/sh
# mmdebstrap calls it with the directory of a file system in which no package's script has
# run. It creates the files of those scripts that the runner needs.
set -eu
cd "$1"
cat usr/share/ca-certificates/mozilla/*.crt >etc/ssl/certs/ca-certificates.crt
cat >etc/passwd <<'USERS'
root:x:0:0:root:/root:/bin/sh
default:x:1001:0:pipeline:/opt/app-root:/bin/sh
USERS
echo root:x:0: >etc/group
# The runner adds the user that the cluster chooses.
chmod 664 etc/passwd
mkdir -p opt/app-root tmp
chown -R 1001:0 opt/app-root
chmod -R u=rwX,g=rwX,o=rX opt/app-root
chmod 1777 tmp
