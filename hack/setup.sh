#!/usr/bin/env bash
# Installs the distribution's packages that building, running and testing need, where they are missing.
set -euo pipefail

missing=()
need() { # need <command or file> <Debian package>
	if [[ $1 == /* ]]; then [[ -e $1 ]] || missing+=("$2"); else command -v "$1" >/dev/null || missing+=("$2"); fi
}
need gcc gcc
need /usr/include/seccomp.h libseccomp-dev
need pkg-config pkg-config
need nft nftables
need conntrack conntrack
need mount mount
need losetup mount
need mkfs.ext4 e2fsprogs
need mkfs.xfs xfsprogs
need ip iproute2
need shellcheck shellcheck
# A static busybox becomes the image localhost/slipway-tools.
if ! [[ -x /bin/busybox ]] || [[ $(LC_ALL=C ldd /bin/busybox 2>&1 || true) != *"not a dynamic executable"* ]]; then missing+=(busybox-static); fi

if ((${#missing[@]} == 0)); then exit 0; fi
if [[ $(id -u) != 0 ]]; then
	echo "these packages are missing; install them as root: apt-get install -y ${missing[*]}" >&2
	exit 1
fi
if ! command -v apt-get >/dev/null; then
	echo "this machine has no apt-get; install with its own package manager what these Debian packages hold: ${missing[*]}" >&2
	exit 1
fi
echo "installing: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
apt-get install -q -y --no-install-recommends "${missing[@]}"
