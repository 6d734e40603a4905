package measure

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
)

// value is about as large as a small object in etcd.
var value = strings.Repeat("x", 800)

// buildEtcd builds a bare etcd and returns the program's path.
func buildEtcd(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "etcd")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "go.etcd.io/etcd/server/v3")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build etcd: %v\n%s", err, output)
	}
	return program
}

// measureEtcd writes keys one after another to a bare etcd with the given number of members. The
// members run on this machine, as the masters' members do, but they use etcd's default settings.
func measureEtcd(t *testing.T, program string, members int) (durations []time.Duration) {
	t.Helper()
	var clients, peers, cluster []string
	for i := range members {
		clients, peers = append(clients, "http://"+componenttest.UnusedAddress(t)), append(peers, "http://"+componenttest.UnusedAddress(t))
		cluster = append(cluster, fmt.Sprintf("m%d=%s", i, peers[i]))
	}
	for i := range members {
		command := exec.Command(program, "--name", fmt.Sprintf("m%d", i), "--data-dir", t.TempDir(), "--log-level", "error",
			"--listen-client-urls", clients[i], "--advertise-client-urls", clients[i],
			"--listen-peer-urls", peers[i], "--initial-advertise-peer-urls", peers[i], "--initial-cluster", strings.Join(cluster, ","))
		command.Stderr = os.Stderr
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() {
			_ = command.Process.Kill()
			_ = command.Wait()
		}()
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: clients[:1], DialTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	eventually.True(t, "etcd", func() bool { _, err := client.Put(t.Context(), "ready", ""); return err == nil })
	for i := range writes {
		start := time.Now()
		if _, err := client.Put(t.Context(), fmt.Sprintf("key-%d", i), value); err != nil {
			t.Fatal(err)
		}
		durations = append(durations, time.Since(start))
	}
	return durations
}
