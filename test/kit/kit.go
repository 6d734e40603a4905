// Package kit boots a real cluster from bin/slipway for a test and gives it verbs that read like
// sentences: Start, Apply, WaitPodRunning, Exec, Kill, Down.
//
// Each cluster has a network namespace, a data directory and a control group root of its own, so
// that several can run on one machine with the default ports, and a test never meets the cluster of
// the person who runs it. When a test ends, `slipway down --purge` is run and whatever it leaves
// behind is an error of the test. When a test fails, the cluster's state is printed.
//
// It needs root and what `make build` makes.
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

// ToolsImage is the image of small programs (sh, httpd, nc, wget, nslookup) that every cluster has.
const ToolsImage = "localhost/slipway-tools:current"

// Options say how a cluster differs from one with defaults.
type Options struct {
	// Master and Node are YAML that is laid over the MasterConfig and the NodeConfig.
	Master, Node string
	// DataDir is an existing empty directory to use as the data directory. It is a temporary one by
	// default, below SLIPWAY_TEST_DIR or else /tmp. Its path must be short.
	DataDir string
}

// Cluster is one cluster, seen by one test, which its verbs fail.
type Cluster struct {
	*Machine
	// DataDir is the data directory.
	DataDir string
	// VolumePluginDir is where the node looks for FlexVolume drivers.
	VolumePluginDir string
	// CgroupRoot is the control group of the cluster's pods and processes.
	CgroupRoot string
	// Config and Client are the administrator's connection, set by Up.
	Config *rest.Config
	Client kubernetes.Interface
	// Namespace is the test's own in a cluster of Shared, else `default`.
	Namespace string

	t          testing.TB
	repository string
	home       string // of the client, for its caches
	runs       bool   // Up was called: there is something to take down
}

// New prepares a cluster that has not been started: its network and its configuration files.
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

// Start boots a cluster that ends with the test.
func Start(t testing.TB, options Options) *Cluster {
	t.Helper()
	c := New(t, options)
	c.Up()
	return c
}

// For is the same cluster seen by another test, such as a subtest.
func (c *Cluster) For(t testing.TB) *Cluster {
	same := *c
	same.t = t
	return &same
}

// prepare makes everything that has to be there before the first start.
func prepare(options Options) (*Cluster, error) {
	repository, err := findRepository()
	if err != nil {
		return nil, err
	}
	machine, err := newMachine()
	if err != nil {
		return nil, err
	}
	c := &Cluster{
		Machine: machine, DataDir: options.DataDir, Namespace: "default",
		repository: repository, CgroupRoot: "/slipway-" + machine.name,
	}
	if err := c.makeFiles(options); err != nil {
		return nil, errors.Join(append([]error{err}, c.dispose()...)...)
	}
	return c, nil
}

// makeFiles makes the directories and the configuration.
func (c *Cluster) makeFiles(options Options) (err error) {
	if c.home, err = os.MkdirTemp("", "slipway-client-"); err != nil {
		return fmt.Errorf("make home of the client: %w", err)
	}
	c.VolumePluginDir = filepath.Join(c.home, "plugins")
	if c.DataDir == "" {
		if c.DataDir, err = os.MkdirTemp(os.Getenv("SLIPWAY_TEST_DIR"), "slipway-"); err != nil {
			return fmt.Errorf("make data directory: %w", err)
		}
	}
	return c.configure(options)
}

// diskLeft is what kubelet leaves free of the disk: it evicts no pod because others have filled
// most of the machine's.
const diskLeft = "nodefs.available<1%,imagefs.available<1%,memory.available<100Mi"

// registryReserve is what pushes leave free of the disk, a little for the same reason.
const registryReserve = "slipway: {registry: {reserve: 1%}}"

// configure writes the configuration files: the few settings that keep clusters apart, and the
// test's.
func (c *Cluster) configure(options Options) error {
	apart := fmt.Sprintf("kubeletArguments: {volume-plugin-dir: [%q], eviction-hard: [%q]}\nslipway: {cgroupRoot: %q}\n", c.VolumePluginDir, diskLeft, c.CgroupRoot)
	for path, documents := range map[string][]string{
		c.MasterFile(): {"{apiVersion: v1, kind: MasterConfig}", registryReserve, options.Master},
		c.NodeFile():   {"{apiVersion: v1, kind: NodeConfig}", apart, options.Node},
	} {
		content, err := merge(documents...)
		if err != nil {
			return fmt.Errorf("merge configuration: %w", err)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return fmt.Errorf("make directory of the configuration: %w", err)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return fmt.Errorf("write configuration: %w", err)
		}
	}
	return nil
}

// merge joins YAML documents; the maps of later ones are laid over those of earlier ones.
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

// MasterFile is the path of the cluster's master-config.yaml.
func (c *Cluster) MasterFile() string { return c.Path("master", "master-config.yaml") }

// NodeFile is the path of the cluster's node-config.yaml.
func (c *Cluster) NodeFile() string { return c.Path("node", "node-config.yaml") }

// Path is a path below the data directory.
func (c *Cluster) Path(names ...string) string {
	return filepath.Join(append([]string{c.DataDir}, names...)...)
}

// RepositoryFile is a file of the repository, such as an example.
func (c *Cluster) RepositoryFile(names ...string) string {
	return filepath.Join(append([]string{c.repository}, names...)...)
}

// findRepository goes up from the test's directory to the one with go.mod, and checks that the
// programs under test are there.
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
			return "", fmt.Errorf("%s missing in the repository; run: make build", strings.Join(missing, " and "))
		}
		return dir, nil
	}
	return "", fmt.Errorf("find repository: no go.mod above the test's directory")
}
