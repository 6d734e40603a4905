#!/usr/bin/env bash
# Installs the missing distribution packages that building, running and testing require.
set -euo pipefail

# Each row contains a program or file, the Debian package that contains it, and its purpose.
needs() {
	cat <<-'ROWS'
		git                                 git             make: the version, the files that are checked
		/etc/ssl/certs/ca-certificates.crt  ca-certificates go: modules
		gcc                                 gcc             runc, which is C in part
		/usr/include/stdio.h                libc6-dev       runc
		/usr/include/seccomp.h              libseccomp-dev  runc
		pkg-config                          pkg-config      runc
		node                                nodejs          make: the web console
		npm                                 npm             make: the web console
		nft                                 nftables        slipway
		mount                               mount           slipway
		losetup                             mount           slipway
		mkfs.ext4                           e2fsprogs       slipway
		/bin/busybox                        busybox-static  slipway: the image localhost/slipway-tools
		mkfs.xfs                            xfsprogs        slipway
		bindfs                              bindfs          tests of volumes: a FUSE daemon
		linux.uml                           user-mode-linux tests of volumes: a kernel with NFS and quotas
		modprobe                            kmod            tests of volumes: modules of this kernel
		rpc.nfsd                            nfs-kernel-server tests of volumes: a server of NFS
		mount.nfs                           nfs-common      tests of volumes: NFS
		iscsid                              open-iscsi      tests of volumes: iSCSI
		glusterd                            glusterfs-server tests of volumes: GlusterFS
		/lib/systemd/systemd-udevd          udev            tests of volumes: iSCSI
		/usr/bin/python3                    python3         tests of volumes: a driver in Python
		ip                                  iproute2        tests of the network
		nsenter                             util-linux      tests of processes
		slapd                               slapd           tests of LDAP
		ldapadd                             ldap-utils      tests of LDAP
		krb5kdc                             krb5-kdc        tests of oc login: Kerberos
		kadmin.local                        krb5-admin-server tests of oc login: Kerberos
		kinit                               krb5-user       tests of oc login: Kerberos
		openssl                             openssl         tests of the router
		tclsh                               tcl             tests of the router: an iRule
		dig                                 bind9-dnsutils  tests of DNS
		haproxy                             haproxy         slipway: the router
		keepalived                          keepalived      slipway: oc adm ipfailover
		/usr/lib/cni/bridge                 containernetworking-plugins tests of flannel
		iptables                            iptables        slipway: the chain of administrators
		chromium                            chromium        tests of routes and the web console
		firefox-esr                         firefox-esr     tests of the web console
		wrk                                 wrk             make bench: the router
		mmdebstrap                          mmdebstrap      tests of builds: builder images
		ruby                                ruby            tests of builds: a mirror of gems
		puma                                puma            tests of builds: a gem
		/usr/share/doc/ruby-rails           ruby-rails      tests of builds: gems
		/usr/share/doc/ruby-pg              ruby-pg         tests of builds: a gem
		/usr/share/nodejs/express           node-express    tests of builds: a registry of npm
		/usr/share/doc/libdancer2-perl      libdancer2-perl tests of builds: a mirror of CPAN
		/usr/share/doc/python3-django       python3-django  tests of builds: an index of Python
		/usr/share/doc/python3-gunicorn     python3-gunicorn tests of builds: an index of Python
		/usr/share/doc/python3-psycopg2     python3-psycopg2 tests of builds: an index of Python
		/usr/share/doc/python3-whitenoise   python3-whitenoise tests of builds: an index of Python
		skopeo                              skopeo          tests of the registry
		rsync                               rsync           tests of oc rsync
		gpg                                 gnupg           tests of signatures
		ansible-playbook                    ansible-core    tests of playbooks
		cockpit-bridge                      cockpit-bridge  tests of playbooks
		/usr/share/cockpit/shell            cockpit-system  tests of playbooks
		/usr/share/cockpit/static           cockpit-ws      tests of playbooks
		buildah                             buildah         make bench: builds beside ours
		dbus-daemon                         dbus-daemon     tests of shutdowns
		/lib/systemd/systemd                systemd         tests of the service
		pgrep                               procps          tests of the service
		shellcheck                          shellcheck      make lint
		mkdocs                              mkdocs          make docs
		/usr/share/doc/mkdocs-material      mkdocs-material make docs
	ROWS
}

# Ordinary users' search paths do not contain the directories with administrators' programs.
PATH=$PATH:/usr/sbin:/sbin

missing=()
while read -r what package _; do
	if [[ $what == /* ]]; then [[ -e $what ]]; else command -v "$what" >/dev/null; fi || missing+=("$package")
done < <(needs)
# A dynamically linked busybox does not run in an image that lacks its libraries.
if [[ -e /bin/busybox && $(LC_ALL=C ldd /bin/busybox 2>&1 || true) != *"not a dynamic executable"* ]]; then missing+=(busybox-static); fi

if ((${#missing[@]} > 0)); then
	if [[ $(id -u) != 0 ]]; then
		echo "these packages are missing; install them as root: apt-get install -y ${missing[*]}" >&2
		exit 1
	fi
	if ! command -v apt-get >/dev/null; then
		echo "this machine has no apt-get; install the equivalents of these Debian packages with its own package manager: ${missing[*]}" >&2
		exit 1
	fi
	echo "installing: ${missing[*]}"
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -q
	apt-get install -q -y --no-install-recommends "${missing[@]}"
fi

# The distribution's Go is too old. Go 1.21 or later downloads the version that go.mod specifies.
if ! command -v "${GO:-go}" >/dev/null; then
	echo "Go is missing: install the version that go.mod names, or a later one, from https://go.dev/dl and put its bin directory into PATH" >&2
	exit 1
fi
