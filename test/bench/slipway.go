package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/slipway-platform/slipway/test/bench/host"
)

// slipwayNode contains the settings that separate this cluster from other clusters on the machine.
// As on the stock side, the kubelet does not evict pods if the disk is nearly full.
const slipwayNode = `apiVersion: v1
kind: NodeConfig
kubeletArguments:
  volume-plugin-dir: [%q]
  max-pods: ["300"]
  eviction-hard: ["nodefs.available<1%%,imagefs.available<1%%,memory.available<100Mi"]
slipway:
  cgroupRoot: %s
`

// slipway is the side that `slipway up` starts.
type slipway struct {
	host    *host.Host
	program string
}

func newSlipway(h *host.Host, program string) (side, error) {
	s := &slipway{host: h, program: program}
	file := s.data("node", "node-config.yaml")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return nil, fmt.Errorf("write configuration: %w", err)
	}
	content := fmt.Sprintf(slipwayNode, h.Path("drivers"), h.CgroupRoot)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		return nil, fmt.Errorf("write configuration: %w", err)
	}
	return s, nil
}

func (s *slipway) data(names ...string) string {
	return s.host.Path(append([]string{"data"}, names...)...)
}

// start runs `slipway up`, which returns when all components are ready. It then checks that the API
// server and the node are ready.
func (s *slipway) start(ctx context.Context) (*cluster, error) {
	begin := time.Now()
	if err := s.run(ctx, "up"); err != nil {
		return nil, err
	}
	c, err := connectCluster(s.host, s.data("admin.kubeconfig"))
	if err != nil {
		return nil, err
	}
	if err := c.waitAPI(ctx); err != nil {
		return nil, err
	}
	return c, c.waitNode(ctx, begin)
}

// prepare is a no-op, because slipway loads its embedded images itself.
func (s *slipway) prepare(context.Context) error { return nil }

func (s *slipway) stop(ctx context.Context) error { return s.run(ctx, "down") }

func (s *slipway) discard(ctx context.Context) error { return s.run(ctx, "down", "--purge") }

// run runs a slipway command and waits for it to exit. The error contains the output.
func (s *slipway) run(ctx context.Context, args ...string) error {
	command := exec.CommandContext(ctx, s.program, append(args, "--data-dir", s.data())...)
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = 10 * time.Second
	// Write the output to a file, because background processes would keep a pipe open.
	output, err := os.CreateTemp(s.host.Dir, "output-")
	if err != nil {
		return fmt.Errorf("record output: %w", err)
	}
	defer output.Close()
	command.Stdout, command.Stderr = output, output
	err = s.host.Start(command)
	if err == nil {
		err = command.Wait()
	}
	if err == nil {
		return nil
	}
	body, readErr := os.ReadFile(output.Name())
	return errors.Join(fmt.Errorf("slipway %s: %w\n%s", args[0], err, bytes.TrimSpace(body)), readErr)
}

// onSlipway starts a separate cluster, passes it to use, and then removes it. An empty master
// selects the default MasterConfig.
func onSlipway(ctx context.Context, dir, cgroupRoot, program, master string, use func(*cluster, *slipway) error) (err error) {
	h, err := host.New(dir, cgroupRoot)
	if err != nil {
		return err
	}
	var s *slipway
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), host.CleanupTime)
		defer cancel()
		if s != nil {
			err = errors.Join(err, s.discard(ctx))
		}
		err = errors.Join(err, h.Remove(ctx))
	}()
	side, err := newSlipway(h, program)
	if err != nil {
		return err
	}
	s = side.(*slipway)
	if master != "" {
		if err := os.MkdirAll(s.data("master"), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(s.data("master", "master-config.yaml"), []byte(master), 0o600); err != nil {
			return err
		}
	}
	c, err := s.start(ctx)
	if err != nil {
		return err
	}
	return use(c, s)
}
