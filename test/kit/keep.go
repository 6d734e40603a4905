package kit

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// keepVariable is the environment variable that makes the kit keep a test's clusters. `make
// scenario KEEP=1` sets it.
const keepVariable = "SLIPWAY_TEST_KEEP"

// namespaceDir is the directory that contains the network namespaces of `ip netns`.
const namespaceDir = "/run/netns"

func keepsClusters() bool { return os.Getenv(keepVariable) != "" }

// keep gives the cluster's network namespace a name, writes the `enter` and `remove` programs to
// the client's home directory, and prints how to use them. The cluster keeps running.
func (c *Cluster) keep(out io.Writer) error {
	if err := c.nameNamespace(); err != nil {
		return fmt.Errorf("keep network namespace: %w", err)
	}
	environment := fmt.Sprintf("export SLIPWAY_DATA_DIR=%q KUBECONFIG=%q HOME=%q PATH=%q:$PATH\n",
		c.DataDir, c.Path("admin.kubeconfig"), c.home, c.RepositoryFile("bin"))
	enter := fmt.Sprintf("exec nsenter --net=/run/netns/%s \"${@:-bash}\"\n", c.name)
	remove := fmt.Sprintf(`nsenter --net=/run/netns/%[1]s slipway down --purge || exit 1
ip link delete %[1]s
nft delete table ip %[1]s
ip netns delete %[1]s
rm -rf %[2]q %[3]q
`, c.name, c.DataDir, c.home)
	for name, script := range map[string]string{"enter": enter, "remove": remove} {
		content := "#!/usr/bin/env bash\n" + environment + script
		if err := os.WriteFile(filepath.Join(c.home, name), []byte(content), 0o700); err != nil {
			return fmt.Errorf("write program of a kept cluster: %w", err)
		}
	}
	path := filepath.Join(c.home, "enter")
	_, err := fmt.Fprintf(out, `
The cluster is kept. Its data directory is %[1]s.
  %[2]s oc get pods -A         # a command of the client
  %[2]s slipway status         # what runs
  %[2]s slipway logs node      # the log of a process
  %[2]s                        # a shell in the cluster's network
Remove it:
  %[3]s
`, c.DataDir, path, filepath.Join(c.home, "remove"))
	return err
}

// nameNamespace gives the network namespace a name, so that the user can enter it after the test.
func (c *Cluster) nameNamespace() error {
	if err := os.MkdirAll(namespaceDir, 0o755); err != nil {
		return err
	}
	path := filepath.Join(namespaceDir, c.name)
	if err := os.WriteFile(path, nil, 0o400); err != nil {
		return err
	}
	return unix.Mount(fmt.Sprintf("/proc/self/fd/%d", c.FD()), path, "", unix.MS_BIND, "")
}

// end takes the cluster down, or keeps it if the user set KEEP.
func (c *Cluster) end() []error {
	if !keepsClusters() || !c.runs {
		return c.dispose()
	}
	var text strings.Builder
	if err := c.keep(&text); err != nil {
		return append(c.dispose(), err)
	}
	fmt.Fprint(os.Stderr, text.String())
	return nil
}
