//go:build flexvolumedrivers

package flexvolumedrivers

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

// settings give one driver a deadline that a test can wait for, and let kubelet look at volumes' sizes more often than once a minute.
const settings = `
kubeletArguments: {volume-stats-agg-period: [2s]}
slipway:
  flexVolume:
    deadline.example.com/loop: {timeouts: {mount: 2s}}
`

// TestDrivers runs everything that one cluster with settings is enough for.
func TestDrivers(t *testing.T) {
	c := kit.Start(t, kit.Options{Node: settings})
	c.Apply(class)
	t.Run("together", func(t *testing.T) {
		for name, run := range map[string]func(*testing.T, *kit.Cluster){
			"a claim grows with its driver":                   claimGrows,
			"an expansion that fails is tried again":          failedExpansion,
			"a hung driver delays nobody else":                hungDriver,
			"a driver that exceeds its deadline is ended":     deadline,
			"volumes of a node that is gone are detached":     goneNode,
			"twenty pods start while their driver is updated": manyPods,
		} {
			t.Run(name, func(t *testing.T) { t.Parallel(); run(t, within(t, c)) })
		}
	})
	for _, test := range []struct {
		name string
		run  func(*testing.T, *kit.Cluster)
	}{
		{"the node is killed in the middle of each operation", killNode},
		{"the control plane is killed in the middle of each operation", killControlPlane},
		{"a daemon survives the node and a removed driver unmounts", leftBehind},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, within(t, c)) })
	}
}

// within is the cluster with a namespace for the test, which ends with it.
func within(t *testing.T, shared *kit.Cluster) *kit.Cluster {
	t.Helper()
	c := shared.For(t)
	name := strings.ReplaceAll(t.Name()[strings.LastIndexByte(t.Name(), '/')+1:], "_", "-")
	c.Namespace = strings.Trim(name[:min(len(name), 40)], "-")
	c.OC("create", "namespace", c.Namespace)
	t.Cleanup(func() { c.OC("delete", "namespace", c.Namespace, "--wait=false") })
	c.WaitFor("default service account", func(ctx context.Context) error {
		_, err := c.Client.CoreV1().ServiceAccounts(c.Namespace).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	return c
}

// restart kills a process of the host and waits until another one is ready in its place.
func restart(c *kit.Cluster, name string) {
	killed := pidOf(c, name)
	c.Kill(name)
	c.WaitFor("restart of "+name, func(context.Context) error {
		if status := c.Status(); !status.Ready || pidOf(c, name) == killed {
			return fmt.Errorf("%+v", status.Processes)
		}
		return nil
	})
}

func pidOf(c *kit.Cluster, name string) int {
	for _, process := range c.Status().Processes {
		if process.Name == name {
			return process.PID
		}
	}
	return 0
}

// alone checks that no operation of the driver runs twice for the same volume: what was called before a crash has been ended.
func (d *driver) alone() {
	d.t.Helper()
	d.c.WaitFor("one call at a time of "+d.name, func(context.Context) error {
		lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
		if err != nil {
			return err
		}
		running := map[string]bool{}
		for _, path := range lines {
			line, _ := os.ReadFile(path) // it may have ended
			args := string(line)
			if !strings.Contains(args, d.folder()+"/") {
				continue
			}
			if running[args] {
				return fmt.Errorf("twice: %q", args)
			}
			running[args] = true
		}
		return nil
	})
}
