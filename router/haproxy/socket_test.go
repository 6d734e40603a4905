package haproxy

import (
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	routev1 "github.com/openshift/api/route/v1"
)

// TestOnlyHAProxyCanConnectToInternalSockets runs HAProxy under its own user, which cannot search
// the directories above the working directory. It checks access to the sockets before and after a
// reload.
func TestOnlyHAProxyCanConnectToInternalSockets(t *testing.T) {
	account, err := user.Lookup("haproxy")
	if err != nil || os.Geteuid() != 0 {
		t.Fatalf("the test needs root and the user haproxy: %v", err)
	}
	b := newFixture(t, nil)
	b.writer.User = account.Username
	b.writer.Dir = filepath.Join(b.writer.Dir, "router")
	b.engine.Dir = b.writer.Dir
	b.pod("web", "web", nil)
	b.route("edge", "edge.com", "web", secured(routev1.TLSConfig{Termination: "edge"}))
	b.run()
	for _, host := range []string{"edge.com", "next.com"} {
		b.route(host, host, "web", secured(routev1.TLSConfig{Termination: "edge"}), annotated("haproxy.router.openshift.io/timeout", "7s"))
		b.apply()
		b.until("https://"+host, "web")
	}
	status, _, header := b.get("https://edge.com")
	if status != 200 || header.Get("Got-X-Forwarded-For") != "127.0.0.1" {
		t.Errorf("status %d, client %q", status, header.Get("Got-X-Forwarded-For"))
	}
	for _, socket := range []string{sniSocket, noSNISocket} {
		info, err := os.Stat(filepath.Join(b.writer.Dir, socket))
		if err != nil {
			t.Fatal(err)
		}
		if owner := strconv.Itoa(int(info.Sys().(*syscall.Stat_t).Uid)); info.Mode() != os.ModeSocket|0o600 || owner != account.Uid {
			t.Errorf("%s: mode %v, owner %s", socket, info.Mode(), owner)
		}
	}
	for _, name := range []string{"ROUTER_SERVICE_SNI_PORT", "ROUTER_SERVICE_NO_SNI_PORT"} {
		port := b.writer.Settings.Text(name)
		if conn, err := net.Dial("tcp", "127.0.0.1:"+port); err == nil {
			conn.Close()
			t.Errorf("a process listens on the port of %s", name)
		}
	}
}

func TestSearchableDirectoryOfAnotherUserIsUnchanged(t *testing.T) {
	tests := map[string]struct{ mode, want os.FileMode }{
		"of a node":      {0o700, 0o711},
		"a pod's volume": {0o777, 0o777},
	}
	for name, tt := range tests {
		dir := t.TempDir()
		if err := os.Chmod(dir, tt.mode); err != nil {
			t.Fatal(err)
		}
		if err := makeSearchable(dir); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != tt.want {
			t.Errorf("%s: mode %v, %v, want %v", name, info.Mode(), err, tt.want)
		}
	}
	// /proc/self is already searchable. An attempt to change its mode would fail, as it would for a
	// directory that another user owns.
	if err := makeSearchable("/proc/self"); err != nil {
		t.Error(err)
	}
}
