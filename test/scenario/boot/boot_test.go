// Package boot tests that one command boots a whole cluster, and tests the commands that inspect
// the cluster.
package boot

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slipway-platform/slipway/test/kit"
)

func TestMain(m *testing.M) { kit.Main(m) }

func TestEveryComponentAndNodeIsReady(t *testing.T) {
	c := kit.Shared(t)
	status := c.Status()
	if !status.Ready || status.DataDir != c.DataDir {
		t.Errorf("ready %t, data directory %q", status.Ready, status.DataDir)
	}
	for _, process := range status.Processes {
		if process.State != "ready" || process.PID == 0 || process.Restarts > 0 {
			t.Errorf("process %+v", process)
		}
		for _, component := range process.Components {
			if component.State != "ready" {
				t.Errorf("component %s of %s is %s: %s", component.Name, process.Name, component.State, component.Error)
			}
		}
	}
	if len(status.Nodes) != 1 || !status.Nodes[0].Ready || status.Nodes[0].Address != c.Address.String() {
		t.Errorf("nodes %+v, want one with the address %s", status.Nodes, c.Address)
	}
}

func TestComponentsWaitForEachOtherWithoutCycle(t *testing.T) {
	for _, process := range kit.Shared(t).Status().Processes {
		waits := map[string][]string{}
		for _, component := range process.Components {
			waits[component.Name] = component.After
		}
		for len(waits) > 0 {
			before := len(waits)
			for name, after := range waits {
				if !slices.ContainsFunc(after, func(other string) bool { _, waiting := waits[other]; return waiting }) {
					delete(waits, name)
				}
			}
			if len(waits) == before {
				t.Fatalf("components of %s wait for each other: %v", process.Name, waits)
			}
		}
	}
}

func TestKernelLimitsAreRaised(t *testing.T) {
	kit.Shared(t)
	for name, minimum := range map[string]int{"max_user_instances": 8192, "max_user_watches": 65536} {
		content, err := os.ReadFile("/proc/sys/fs/inotify/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if value, err := strconv.Atoi(strings.TrimSpace(string(content))); err != nil || value < minimum {
			t.Errorf("fs.inotify.%s is %q, want at least %d", name, content, minimum)
		}
	}
}

func TestComponentsArePrintedWithTheirStates(t *testing.T) {
	c := kit.Shared(t)
	table := c.MustSlipway("components")
	for _, process := range c.Status().Processes {
		for _, component := range process.Components {
			row := regexp.MustCompile(`(?m)^.*\b` + regexp.QuoteMeta(component.Name) + `\b.*\bready\b`)
			if !row.MatchString(table) {
				t.Errorf("no line reports %s as ready:\n%s", component.Name, table)
			}
		}
	}
}

// TestResourcesShareConnectionToEtcd counts etcd's sockets. Upstream opens a connection for each of
// more than a hundred resources.
func TestResourcesShareConnectionToEtcd(t *testing.T) {
	c := kit.Shared(t)
	var sockets []byte
	err := c.Do(func() (err error) {
		sockets, err = os.ReadFile("/proc/thread-self/net/unix")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	// One socket listens on the path. The other sockets are connections: for the resources, health
	// checks, allocators and leases.
	if count := strings.Count(string(sockets), c.Path("run", "etcd.sock")+"\n"); count < 2 || count > 20 {
		t.Errorf("etcd has %d sockets, want at most 20", count)
	}
}

// TestPathsOfOpenShiftExistOnHost checks that the host has a counterpart for every path in
// OpenShift's documents.
func TestPathsOfOpenShiftExistOnHost(t *testing.T) {
	c := kit.Shared(t)
	paths := map[string]string{}
	for line := range strings.Lines(c.MustSlipway("paths")) {
		if fields := strings.Fields(line); strings.HasPrefix(fields[0], "/") {
			paths[fields[0]] = fields[1]
		}
	}
	for former, path := range paths {
		if path == "-" {
			continue
		}
		if _, err := os.Stat(path); err != nil {
			t.Errorf("counterpart of %s: %v", former, err)
		}
	}
	for former, want := range map[string]string{
		"/etc/origin/master/master-config.yaml": c.MasterFile(), "/etc/origin/node/node-config.yaml": c.NodeFile(),
		"/var/lib/etcd": c.Path("etcd"), "/etc/origin/master/ca.serial.txt": "-", "/var/lib/dockershim": "-",
	} {
		if paths[former] != want {
			t.Errorf("%s is %q on the host, want %q", former, paths[former], want)
		}
	}
}

func TestUpReportsRunningCluster(t *testing.T) {
	c := kit.Shared(t)
	before := c.Status()
	if output := c.Up(); !strings.Contains(output, "already runs") {
		t.Errorf("slipway up printed:\n%s", output)
	}
	for i, process := range c.Status().Processes {
		if process.PID != before.Processes[i].PID {
			t.Errorf("process %s was started again", process.Name)
		}
	}
}

func TestConfigViewHasEveryDefault(t *testing.T) {
	c := kit.Shared(t)
	view := c.MustSlipway("config", "view")
	for _, want := range []string{
		"kind: MasterConfig", "bindAddress: 0.0.0.0:8443", "cidr: 10.128.0.0/14", "hostSubnetLength: 9",
		"serviceNetworkCIDR: 172.30.0.0/16",
		"kind: NodeConfig", "dnsDomain: cluster.local", c.VolumePluginDir, c.DataDir,
	} {
		if !strings.Contains(view, want) {
			t.Errorf("config view does not contain %q:\n%s", want, view)
		}
	}
}

func TestLogsOfComponent(t *testing.T) {
	c := kit.Shared(t)
	c.WaitFor("five lines of the log of kubelet", func(context.Context) error {
		if log := c.MustSlipway("logs", "kubelet", "-n", "5"); strings.Count(log, "\n") != 5 {
			return fmt.Errorf("the log is %q", log)
		}
		return nil
	})
	// Ignore lines without a timestamp, such as pflag's warnings, because they belong to the last
	// line before them that has a timestamp.
	withTime := regexp.MustCompile(`(?m)^[IWE][0-9]{4} .*$`)
	own := withTime.FindAllString(c.MustSlipway("logs", "kubelet", "-n", "-1"), -1)
	for _, line := range own {
		if !strings.HasSuffix(line, `component="kubelet"`) {
			t.Errorf("a line of another component: %s", line)
		}
	}
	if all := withTime.FindAllString(c.MustSlipway("logs", "node", "-n", "-1"), -1); len(own) == 0 || len(own) >= len(all) {
		t.Errorf("%d of the %d lines of the process belong to the kubelet", len(own), len(all))
	}
	unknown := c.Slipway("logs", "kubelett")
	if unknown.Code != 1 || !strings.Contains(unknown.Stderr, `"kubelett"`) || !strings.Contains(unknown.Stderr, "kubelet,") {
		t.Errorf("exit code %d, the error does not name the component and the existing components: %s", unknown.Code, unknown.Stderr)
	}
}

func TestVersions(t *testing.T) {
	c := kit.Shared(t)
	version := c.OC("version")
	// The output contains the client's version and then the server's version.
	number := regexp.MustCompile(`(?m)^kubernetes (v1\.\d+\.\d+)$`)
	match := number.FindAllStringSubmatch(version, -1)
	if len(match) != 2 || match[0][1] != match[1][1] {
		t.Fatalf("oc version:\n%s", version)
	}
	if version := c.MustSlipway("--version"); !strings.Contains(version, "Kubernetes "+match[1][1]) {
		t.Errorf("slipway --version %q does not name Kubernetes %s", version, match[1][1])
	}
}

func TestBinaryContainsClient(t *testing.T) {
	c := kit.Shared(t)
	for _, name := range []string{"oc", "kubectl"} {
		nodes := c.MustSlipway(name, "get", "nodes", "-o", "name")
		if !strings.HasPrefix(nodes, "node/") {
			t.Errorf("slipway %s get nodes printed %q", name, nodes)
		}
	}
}

func TestOpenShiftResourcesAreServed(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(`
apiVersion: user.openshift.io/v1
kind: Group
metadata:
  name: boot-admins
users: [anna, ben]
`)
	if users := c.OC("get", "groups.user.openshift.io", "boot-admins", "-o", "jsonpath={.users[*]}"); users != "anna ben" {
		t.Errorf("users %q", users)
	}
	c.OC("patch", "group.user.openshift.io", "boot-admins", "--type", "merge", "-p", `{"users":["carl"]}`)
	if users := c.OC("get", "groups.user.openshift.io", "boot-admins", "-o", "jsonpath={.users[*]}"); users != "carl" {
		t.Errorf("users %q after the change", users)
	}
	c.OC("delete", "group.user.openshift.io", "boot-admins")
	if _, err := c.TryOC("get", "group.user.openshift.io", "boot-admins"); err == nil || !strings.Contains(err.Error(), "not found") {
		t.Errorf("after the deletion: %v", err)
	}
}

func TestProjectsOfOpenShiftExist(t *testing.T) {
	c := kit.Shared(t)
	c.OC("get", "namespaces", "openshift", "openshift-infra", "openshift-node")
}

// TestOpenShiftStartNotifiesSystemd runs the supervisor in the foreground, as the unit file does,
// under OpenShift 3's name for `slipway run`. The first start writes the flags to the
// configuration.
func TestOpenShiftStartNotifiesSystemd(t *testing.T) {
	c := kit.New(t, kit.Options{})
	if err := os.Remove(c.MasterFile()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	command := c.StartSlipwayAs("openshift", []string{"NOTIFY_SOCKET=" + path, "WATCHDOG_USEC=1000000"}, "start",
		"--public-master=openshift.example.com", `--cors-allowed-origins=(?i)//console\.example\.com(:|\z)`)
	waitMessage(t, socket, "READY=1")
	waitMessage(t, socket, "WATCHDOG=1")
	view := c.MustSlipway("config", "view")
	for _, want := range []string{"masterPublicURL: https://openshift.example.com:8443", `(?i)//console\.example\.com(:|\z)`} {
		if !strings.Contains(view, want) {
			t.Errorf("config view does not contain %q:\n%s", want, view)
		}
	}
	if metadata := c.MustSlipway("oc", "get", "--raw", "/.well-known/oauth-authorization-server"); !strings.Contains(metadata, "https://openshift.example.com:8443/oauth/authorize") {
		t.Errorf("the public address is not in %s", metadata)
	}
	if status := c.Status(); !status.Ready {
		t.Errorf("systemd was notified, but the status is %+v", status)
	}
	if err := command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	waitMessage(t, socket, "STOPPING=1")
	if err := command.Wait(); err != nil {
		t.Errorf("openshift start after SIGTERM: %v", err)
	}
}

func waitMessage(t *testing.T, socket *net.UnixConn, want string) {
	t.Helper()
	if err := socket.SetReadDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, os.Getpagesize())
	for {
		size, err := socket.Read(buffer)
		if err != nil {
			t.Fatalf("wait for %s: %v", want, err)
		}
		if strings.Contains(string(buffer[:size]), want) {
			return
		}
	}
}
