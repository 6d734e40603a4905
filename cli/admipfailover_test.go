package cli

import (
	"strings"
	"testing"
)

func TestIPFailoverDryRunPrintsObjects(t *testing.T) {
	args := []string{"--namespace=shop", "adm", "ipfailover", "ha", "--dry-run", "-o", "yaml", "--virtual-ips=192.0.2.10-11,192.0.2.20", "--selector=zone=edge", "--replicas=2",
		"--watch-port=8080", "--check-script=/etc/keepalive/check.sh", "--notify-script=/etc/keepalive/notify.sh", "--check-interval=5", "--vrrp-id-offset=30", "--virtual-ip-groups=2",
		"--interface=eth1", "--iptables-chain=", "--preemption-strategy=nopreempt", "--service-account=sharer", "--images=registry.example.com/${component}:${version}", "--latest-images", "--create"}
	stdout, stderr, code := client(t, "oc", nil, args...)
	if code != 0 {
		t.Fatalf("code %d, %s", code, stderr)
	}
	Golden(t, "adm-ipfailover.golden", stdout)
}

func TestIPFailoverReportsInvalidFlags(t *testing.T) {
	for flags, want := range map[string]string{
		"":                                    "you must specify at least one virtual IP address",
		"--virtual-ips=192.0.2.300":           "must be an IPv4 address",
		"--virtual-ips=192.0.2.0-192.0.3.255": "512 addresses need --virtual-ip-groups",
		"--virtual-ips=192.0.2.1-9 --vrrp-id-offset=250":          "The vrrp-id-offset must be in the range 0..246",
		"--virtual-ips=192.0.2.1 --replicas=0":                    "--replicas 0",
		"--virtual-ips=192.0.2.1 --check-script=check.sh":         "must be the path of a script in the pods",
		"--virtual-ips=192.0.2.1 --preemption-strategy=sometimes": "must be preempt_nodelay",
		"--virtual-ips=192.0.2.1 --type=other":                    "must be keepalived",
		"Bad_Name --virtual-ips=192.0.2.1":                        "parse name",
		"--virtual-ips=192.0.2.1 --selector=zone!=edge":           "parse --selector",
	} {
		_, stderr, code := client(t, "oc", nil, append([]string{"--namespace=shop", "adm", "ipfailover", "--dry-run"}, strings.Fields(flags)...)...)
		if code == 0 || !strings.Contains(stderr, want) {
			t.Errorf("%s: code %d, %q, want %q", flags, code, stderr, want)
		}
	}
}
