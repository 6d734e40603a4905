// Package kit boots a real cluster from bin/slipway for a test. The test acts on the cluster with
// methods such as Apply, WaitPodRunning, Exec, Kill and Down.
//
// Each cluster has its own network namespace, data directory and root cgroup. Several clusters can
// run on one machine with the default ports, and a test never affects a cluster that the user runs.
// At the end of a test, the kit runs `slipway down --purge`, and fails the test if anything
// remains. If a test fails, the kit prints the cluster's state.
//
// The kit requires root and the programs that `make build` builds.
package kit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// ToolsImage is an image with small programs (sh, httpd, nc, wget, nslookup). Every cluster has it.
const ToolsImage = "localhost/slipway-tools:current"

// Options describes how a cluster differs from the defaults.
type Options struct {
	// Master and Node are YAML documents that are merged into the MasterConfig and the NodeConfig.
	Master, Node string
	// DataDir is an existing, empty directory with a short path. The default is a temporary
	// directory in SLIPWAY_TEST_DIR or, if that is not set, in /tmp.
	DataDir string
	// Segment connects the machine to a network segment that additional hosts can share. An
	// additional host with Segment set has its own segment. The machine that runs the test routes
	// packets between the segments.
	Segment bool
	// IPv6 gives machines on segments an additional IPv6 address.
	IPv6 bool
	// Router makes a host that joins the cluster as a node run a router.
	Router bool
	// OtherNetwork is set if a CNI plugin that the test installs provides the pod network. The kit
	// then ignores remaining nftables tables, which the plugin may leave behind.
	OtherNetwork bool
}

// Cluster is a cluster for one test. Its methods fail the test on errors.
type Cluster struct {
	*Machine
	// DataDir is the data directory.
	DataDir string
	// VolumePluginDir is the FlexVolume driver directory.
	VolumePluginDir string
	// Program, if set, is the path of a program to run instead of bin/slipway.
	Program string
	// CgroupRoot is the cgroup for the cluster's pods and processes.
	CgroupRoot string
	// Config and Client are the administrator's client configuration and client. Up sets them.
	Config *rest.Config
	Client kubernetes.Interface
	// Namespace is the test's namespace in a cluster that Shared returned, or `default` in other
	// clusters.
	Namespace string

	t          testing.TB
	repository string
	home       string   // the client's home directory
	runs       bool     // true if one of the cluster's programs has been started
	master     *Cluster // the first host's cluster if this is an additional host, or nil
	// router and otherNetwork are copies of the fields in Options.
	router, otherNetwork bool
}

// New creates a cluster's network and configuration files but does not start the cluster.
func New(t testing.TB, options Options) *Cluster {
	t.Helper()
	c, err := prepare(options)
	if err != nil {
		t.Fatal(err)
	}
	c.t = t
	t.Cleanup(func() {
		if t.Failed() {
			c.diagnose(t)
		}
		for _, problem := range c.end() {
			t.Error(problem)
		}
	})
	return c
}

// Start boots a cluster that is removed at the end of the test.
func Start(t testing.TB, options Options) *Cluster {
	t.Helper()
	c := New(t, options)
	c.Up()
	return c
}

// For returns a copy of the cluster for use in another test, such as a subtest.
func (c *Cluster) For(t testing.TB) *Cluster {
	clone := *c
	clone.t = t
	return &clone
}

// prepare creates the network and the files that the first start needs.
func prepare(options Options) (*Cluster, error) { return prepareIn(options, nil) }

// prepareIn works like prepare. If shared is not nil, the machine is on that existing network
// segment.
func prepareIn(options Options, shared *segment) (*Cluster, error) {
	repository, err := findRepository()
	if err != nil {
		return nil, err
	}
	machine, err := newMachine(options, shared)
	if err != nil {
		return nil, err
	}
	c := &Cluster{
		Machine: machine, DataDir: options.DataDir, Namespace: "default",
		repository: repository, CgroupRoot: "/slipway-" + machine.name,
		router: options.Router, otherNetwork: options.OtherNetwork,
	}
	if err := c.createFiles(options); err != nil {
		return nil, errors.Join(append([]error{err}, c.dispose()...)...)
	}
	return c, nil
}

// createFiles creates the directories and the configuration.
func (c *Cluster) createFiles(options Options) (err error) {
	if c.home, err = os.MkdirTemp("", "slipway-client-"); err != nil {
		return fmt.Errorf("create client home directory: %w", err)
	}
	c.VolumePluginDir = filepath.Join(c.home, "plugins")
	if c.DataDir == "" {
		if c.DataDir, err = os.MkdirTemp(os.Getenv("SLIPWAY_TEST_DIR"), "slipway-"); err != nil {
			return fmt.Errorf("create data directory: %w", err)
		}
	}
	return c.configure(options)
}

// evictionThresholds are lower than the defaults, so that the kubelet does not evict pods on a
// machine whose disk is almost full.
const evictionThresholds = "nodefs.available<1%,imagefs.available<1%,memory.available<100Mi"

// registryReserve and storageReserve are also lower than the defaults, because the disk can be
// almost full.
const (
	registryReserve = "slipway: {registry: {reserve: 1%}}"
	storageReserve  = "slipway: {localStorage: {reserve: 1%}}"
)

// firstMaster contains etcd's addresses, as does the file that a cluster's first start writes.
const firstMaster = "{apiVersion: v1, kind: MasterConfig, etcdConfig: {address: '127.0.0.1:2379', peerAddress: '127.0.0.1:2380'}}"

// configure writes the configuration files. They combine the settings that keep clusters apart with
// the test's settings.
func (c *Cluster) configure(options Options) error {
	separation := fmt.Sprintf("kubeletArguments: {volume-plugin-dir: [%q], eviction-hard: [%q]}\nslipway: {cgroupRoot: %q}\n", c.VolumePluginDir, evictionThresholds, c.CgroupRoot)
	for path, documents := range map[string][]string{
		c.MasterFile(): {firstMaster, registryReserve, options.Master},
		c.NodeFile():   {"{apiVersion: v1, kind: NodeConfig}", storageReserve, separation, options.Node},
	} {
		content, err := merge(documents...)
		if err != nil {
			return fmt.Errorf("merge configuration: %w", err)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return fmt.Errorf("create configuration directory: %w", err)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return fmt.Errorf("write configuration: %w", err)
		}
	}
	return nil
}

// merge merges YAML documents. Later documents take precedence over earlier documents.
func merge(documents ...string) ([]byte, error) {
	merged := map[string]any{}
	for _, document := range documents {
		var layer map[string]any
		if err := yaml.UnmarshalStrict([]byte(document), &layer); err != nil {
			return nil, err
		}
		overlay(merged, layer)
	}
	return yaml.Marshal(merged)
}

func overlay(base, layer map[string]any) {
	for key, value := range layer {
		below, isMap := base[key].(map[string]any)
		above, both := value.(map[string]any)
		if isMap && both {
			overlay(below, above)
			continue
		}
		base[key] = value
	}
}

// MasterFile returns the path of the cluster's master-config.yaml.
func (c *Cluster) MasterFile() string { return c.Path("master", "master-config.yaml") }

// NodeFile returns the path of the cluster's node-config.yaml.
func (c *Cluster) NodeFile() string { return c.Path("node", "node-config.yaml") }

// Path returns a path below the data directory.
func (c *Cluster) Path(names ...string) string {
	return filepath.Join(append([]string{c.DataDir}, names...)...)
}

// RepositoryFile returns the path of a file in the repository, such as an example.
func (c *Cluster) RepositoryFile(names ...string) string {
	return filepath.Join(append([]string{c.repository}, names...)...)
}

// findRepository returns the closest parent directory of the test's directory that contains a
// go.mod. It checks that the programs under test exist.
func findRepository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find repository: %w", err)
	}
	for ; dir != "/"; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
			continue
		}
		var missing []string
		for _, program := range []string{"bin/slipway", "bin/oc"} {
			if _, err := os.Stat(filepath.Join(dir, program)); err != nil {
				missing = append(missing, program)
			}
		}
		if len(missing) > 0 {
			return "", fmt.Errorf("%s not found in the repository; run: make build", strings.Join(missing, " and "))
		}
		return dir, nil
	}
	return "", fmt.Errorf("find repository: no go.mod above the test's directory")
}
