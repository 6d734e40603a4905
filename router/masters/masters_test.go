package masters

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestParseServer(t *testing.T) {
	for text, want := range map[string]Server{
		"master-0.example.com":       {"master-0.example.com", "master-0.example.com:8443"},
		"master-0=192.0.2.1":         {"master-0", "192.0.2.1:8443"},
		"master-0=192.0.2.1:443":     {"master-0", "192.0.2.1:443"},
		"2001:db8::1":                {"2001-db8--1", "[2001:db8::1]:8443"},
		"master-0=[2001:db8::1]:443": {"master-0", "[2001:db8::1]:443"},
	} {
		if got, err := ParseServer(text); err != nil || got != want {
			t.Errorf("%q: got %+v, error %v", text, got, err)
		}
	}
	for _, text := range []string{"", "=192.0.2.1", "a b=192.0.2.1", "a=192.0.2.1:0", "a=192.0.2.1:x", "a=b c", "a\nserver b=192.0.2.1", "a=192.0.2.1 backup"} {
		if got, err := ParseServer(text); err == nil {
			t.Errorf("%q: got %+v, want an error", text, got)
		}
	}
}

func TestHAProxyAcceptsMastersConfiguration(t *testing.T) {
	program, err := exec.LookPath("haproxy")
	if err != nil {
		program = "/usr/sbin/haproxy"
	}
	text, err := Config{Listen: DefaultListen, Stats: DefaultStats, Servers: []Server{
		{"master-0", "192.0.2.1:8443"}, {"master-1", "[2001:db8::1]:8443"},
	}}.Text()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "haproxy.cfg")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if output, err := exec.Command(program, "-c", "-f", file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s\n%s", err, output, text)
	}
	want := "backend mgmt8443\n  balance source\n"
	if !strings.Contains(string(text), want) || !strings.Contains(string(text), "  # MASTERS 8443\n  server master-0 192.0.2.1:8443\n") {
		t.Errorf("the back end differs from the documentation:\n%s", text)
	}
}

func TestIncompleteBalancersAreRejected(t *testing.T) {
	server := Server{"master-0", "192.0.2.1:8443"}
	for name, c := range map[string]Config{
		"no master":              {Listen: DefaultListen, Stats: DefaultStats},
		"same name":              {Listen: DefaultListen, Stats: DefaultStats, Servers: []Server{server, server}},
		"invalid listen address": {Listen: "8443", Stats: DefaultStats, Servers: []Server{server}},
		"other lines":            {Listen: "*:8443\n  bind *:1", Stats: DefaultStats, Servers: []Server{server}},
	} {
		if text, err := c.Text(); err == nil {
			t.Errorf("%s: got %s", name, text)
		}
	}
}
