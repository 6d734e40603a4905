// Package flannel runs flannel on the hosts of a cluster, with the files in examples/flannel.
package flannel

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/slipway-platform/slipway/test/kit"
)

// Plugins is the directory of the CNI plugins in Debian's containernetworking-plugins package.
const Plugins = "/usr/lib/cni"

// Files is flannel's directory on one host.
type Files struct{ dir string }

// NewFiles returns Files in a temporary directory.
func NewFiles(t testing.TB) Files {
	t.Helper()
	dir, err := os.MkdirTemp("", "flannel-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return Files{dir}
}

// Node returns the NodeConfig settings that make the host use flannel's CNI configuration.
func (f Files) Node() string {
	return fmt.Sprintf("kubeletArguments: {cni-conf-dir: [%q], cni-bin-dir: [%q]}", f.path("net.d"), Plugins+","+f.dir)
}

// recorder is a CNI plugin that writes its arguments to a file and does nothing else. It returns
// the previous plugin's result, which is part of its configuration.
const recorder = `#!/bin/sh
configuration=$(cat)
if [ "$CNI_COMMAND" = ADD ]; then
	echo "$CNI_ARGS" >>"$0.log"
	echo "$configuration" | sed 's/^.*"prevResult":\(.*\),"type":"recorder".*$/\1/'
fi
`

// Record adds the recorder CNI plugin to the host's configuration.
func (f Files) Record(t testing.TB) {
	t.Helper()
	path := f.path(filepath.Join("net.d", "10-flannel.conflist"))
	content, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(f.path("recorder"), []byte(recorder), 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	const last = `"capabilities": {"portMappings": true}}`
	if !bytes.Contains(content, []byte(last)) {
		t.Fatalf("the configuration has no plugin portmap:\n%s", content)
	}
	write(t, path+".new", strings.Replace(string(content), last, last+`, {"type": "recorder"}`, 1))
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// Recorded returns the arguments (CNI_ARGS) that the recorder plugin has received, one line per
// pod.
func (f Files) Recorded() string {
	content, _ := os.ReadFile(f.path("recorder.log"))
	return string(content)
}

// Environment returns the path of the file with the flanneld service's settings, which is
// /etc/sysconfig/flanneld on a real host.
func (f Files) Environment() string { return f.path("flanneld") }

// Subnet returns the host's subnet, such as 10.128.2.1/23, or "" if flannel has not assigned a
// subnet.
func (f Files) Subnet() string {
	content, _ := os.ReadFile(f.path("subnet.env"))
	match := regexp.MustCompile(`(?m)^FLANNEL_SUBNET=(.*)$`).FindSubmatch(content)
	if match == nil {
		return ""
	}
	return string(match[1])
}

// Forget removes the host's subnet and CNI configuration.
func (f Files) Forget(t testing.TB) {
	t.Helper()
	for _, name := range []string{"subnet.env", filepath.Join("net.d", "10-flannel.conflist"), "addresses"} {
		if err := os.RemoveAll(f.path(name)); err != nil {
			t.Fatal(err)
		}
	}
}

func (f Files) path(name string) string { return filepath.Join(f.dir, name) }

// Daemon is a running flanneld on a host.
type Daemon struct {
	command *exec.Cmd
	log     string
}

// build builds flanneld, unless it is up to date, and returns its path.
func build(host *kit.Cluster) (string, error) {
	const module = "github.com/flannel-io/flannel"
	result := host.RepositoryFile("bin", "flanneld")
	// Only the UDP backend, which is not used, needs cgo.
	build := exec.Command("go", "build", "-tags", "netgo,osusergo", "-ldflags", "-s -w", "-o", result, module)
	build.Dir, build.Env = host.RepositoryFile("test", "kit", "flannel", "flanneld"), append(os.Environ(), "CGO_ENABLED=1")
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", module, err, output)
	}
	return result, nil
}

// readyTimeout is the maximum time until flanneld is ready.
const readyTimeout = time.Minute

// Start starts flanneld on a host, as systemd starts the service in examples/flannel. settings are
// NAME=value lines for the file that Environment returns. When flanneld has a subnet, Start writes
// the host's CNI configuration. At the end of the test, Start's cleanup stops the daemon and calls
// Remove.
func Start(t testing.TB, host *kit.Cluster, files Files, settings ...string) *Daemon {
	t.Helper()
	built, err := build(host)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files.Environment(), []byte(strings.Join(settings, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ready, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: files.path("notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(files.path("notify"))
	defer ready.Close()
	log, err := os.Create(files.path("log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	unit := files.unit(t, host, built)
	command := exec.Command("sh", "-c", "set -a; . "+unit["EnvironmentFile"]+"; exec "+unit["ExecStart"])
	command.Env = append(os.Environ(), "NOTIFY_SOCKET="+files.path("notify"))
	command.Stdout, command.Stderr = log, log
	if err := host.Do(command.Start); err != nil {
		t.Fatal(err)
	}
	d := &Daemon{command, files.path("log")}
	t.Cleanup(func() {
		d.Stop()
		if err := Remove(host); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("flanneld:\n%s", d.Log())
		}
	})
	if err := ready.SetReadDeadline(time.Now().Add(readyTimeout)); err != nil {
		t.Fatal(err)
	}
	message := make([]byte, 64)
	n, err := ready.Read(message)
	if err != nil || !bytes.Contains(message[:n], []byte("READY=1")) {
		t.Fatalf("flanneld is not ready: %v %q\n%s", err, message[:n], d.Log())
	}
	after := exec.Command("sh", "-c", unit["ExecStartPost"]+" "+files.path("addresses"))
	if output, err := after.CombinedOutput(); err != nil {
		t.Fatalf("write CNI configuration: %v\n%s", err, output)
	}
	return d
}

// unit returns the service's settings from the unit file, with this host's paths.
func (f Files) unit(t testing.TB, host *kit.Cluster, program string) map[string]string {
	t.Helper()
	content, err := os.ReadFile(host.RepositoryFile("examples", "flannel", "flanneld.service"))
	if err != nil {
		t.Fatal(err)
	}
	paths := strings.NewReplacer(
		"/etc/sysconfig/flanneld", f.Environment(), "/usr/local/bin/flanneld", program,
		"/usr/local/libexec/flannel-cni", host.RepositoryFile("examples", "flannel", "flannel-cni"),
		"/run/flannel/subnet.env", f.path("subnet.env"), "/etc/cni/net.d", f.path("net.d"),
	)
	unit := map[string]string{}
	for line := range strings.Lines(string(content)) {
		if key, value, isSetting := strings.Cut(strings.TrimSpace(line), "="); isSetting {
			unit[key] = paths.Replace(value)
		}
	}
	return unit
}

// Log returns the daemon's output.
func (d *Daemon) Log() string {
	content, _ := os.ReadFile(d.log)
	return string(content)
}

// Stop stops the daemon. The daemon's routes, devices and rules remain.
func (d *Daemon) Stop() {
	if d.command.ProcessState == nil {
		_ = d.command.Process.Kill()
		_ = d.command.Wait() // Wait returns an error because the daemon was killed
	}
}
