package vrrp

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

// read reads settings from environment variables in the form NAME=value. NAME does not include the
// prefix.
func read(variables ...string) (*Settings, error) {
	values := map[string]string{}
	for _, variable := range variables {
		name, value, _ := strings.Cut(variable, "=")
		values[prefix+name] = value
	}
	return Read(func(name string) (string, bool) {
		value, set := values[name]
		return value, set
	})
}

func TestConfiguration(t *testing.T) {
	s, err := read("CONFIG_NAME=ha", "VIRTUAL_IPS=192.0.2.1-25,192.0.2.40", "VIP_GROUPS=1", "VRRP_ID_OFFSET=30", "REPLICA_COUNT=2", "PREEMPTION=preempt_delay 300",
		"CHECK_SCRIPT=/etc/keepalive/check.sh", "NOTIFY_SCRIPT=/etc/keepalive/notify.sh", "CHECK_INTERVAL=5", "MONITOR_PORT=0", "IPTABLES_CHAIN=")
	if err != nil {
		t.Fatal(err)
	}
	content, err := s.config("eth1", netip.MustParseAddr("198.51.100.4"), Programs{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"router_id ha\n", "vrrp_instance ha_31 {", "interface eth1\n", "virtual_router_id 31\n", "priority 250\n", "preempt_delay 300\n", "script \"/etc/keepalive/check.sh\"\n",
		"interval 5\n", "notify \"/etc/keepalive/notify.sh\"\n", "192.0.2.20/32 dev eth1\n\t}\n\tvirtual_ipaddress_excluded {\n\t\t192.0.2.21/32 dev eth1\n", "192.0.2.40/32 dev eth1",
	} {
		if !strings.Contains(string(content), want) {
			t.Errorf("missing %q in\n%s", want, content)
		}
	}
	if strings.Count(string(content), "vrrp_instance") != 1 || s.Chain != "" {
		t.Errorf("chain %q, configuration\n%s", s.Chain, content)
	}
}

func TestDefaultSettings(t *testing.T) {
	s, err := read("VIRTUAL_IPS=192.0.2.1,192.0.2.2", "PREEMPTION=preempt_nodelay 300")
	if err != nil {
		t.Fatal(err)
	}
	content, err := s.config("eth0", netip.MustParseAddr("198.51.100.4"), Programs{Netcat: "/bin/nc"})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"ipfailover_1 {", "ipfailover_2 {", `script "/bin/nc -w 2 127.0.0.1 80 -e /bin/true"`, "interval 2\n"} {
		if !strings.Contains(string(content), want) {
			t.Errorf("missing %q in\n%s", want, content)
		}
	}
	if s.Chain != "INPUT" || strings.Contains(string(content), "preempt") || strings.Contains(string(content), "notify") {
		t.Errorf("chain %q, configuration\n%s", s.Chain, content)
	}
}

// With two groups and three hosts, two of the hosts have one group each, and the third host is a
// backup.
func TestPriorities(t *testing.T) {
	s, err := read("VIRTUAL_IPS=192.0.2.1-2", "REPLICA_COUNT=3")
	if err != nil {
		t.Fatal(err)
	}
	first := map[string]int{}
	for group := range 2 {
		best, host := 0, ""
		for _, address := range []string{"198.51.100.7", "198.51.100.8", "198.51.100.9"} {
			if p := s.priority(group, netip.MustParseAddr(address)); p > best {
				best, host = p, address
			}
		}
		first[host]++
	}
	if len(first) != 2 {
		t.Errorf("hosts with the highest priority: %v", first)
	}
	for _, replicas := range []int{1, 250} {
		s.Replicas = replicas
		for group := range maxID {
			if p := s.priority(group, netip.MustParseAddr("198.51.100.255")); p < minPriority || p > maxPriority {
				t.Fatalf("priority %d of group %d on %d hosts", p, group, replicas)
			}
		}
	}
}

func TestInvalidVariables(t *testing.T) {
	for variable, want := range map[string]string{
		"VIRTUAL_IPS=":                      "set addresses",
		"VIRTUAL_IPS=192.0.2.0-192.0.3.200": "457 groups of addresses, with IDs from 1, exceed the maximum VRRP ID of 255",
		"VRRP_ID_OFFSET=255":                "a number from 0 to 254",
		"REPLICA_COUNT=0":                   "a number from 1",
		"CONFIG_NAME=a b":                   "OPENSHIFT_HA_CONFIG_NAME",
		"NETWORK_INTERFACE=eth0\n}":         "a network device",
		"CHECK_SCRIPT=/a\" b":               "the path of a script",
		"NOTIFY_SCRIPT=relative":            "the path of a script",
		"IPTABLES_CHAIN=INPUT; x":           "the name of a chain",
		"PREEMPTION=preempt_delay 2000":     "nopreempt",
		"PREEMPTION=nopreempt\n}":           "",
	} {
		_, err := read("VIRTUAL_IPS=192.0.2.1", variable)
		if want == "" && err == nil {
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", variable, err, want)
		}
	}
	if _, err := read("VRRP_ID_OFFSET=x", "CHECK_INTERVAL=0"); err == nil || strings.Count(fmt.Sprint(err), "\n") != 2 {
		t.Errorf("got errors %v, want three", err)
	}
}
