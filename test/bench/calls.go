package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/slipway-platform/slipway/storage/flexvolume"
	"github.com/slipway-platform/slipway/test/bench/stats"
)

// callsPerOperation is the number of calls per operation, which alternate between calls through the
// engine and direct executions of the driver.
const callsPerOperation = 100

// callCost contains the median durations for one operation.
type callCost struct {
	operation flexvolume.Operation
	// bare is the duration of a fork and exec of the driver with the operation's arguments. engine
	// is the duration of a call through the engine.
	bare, engine time.Duration
}

// measureCalls installs the driver "quick" in a separate directory, and calls it through a
// registry, as the kubelet does.
func measureCalls(ctx context.Context, dir string) (costs []callCost, err error) {
	r := &flexvolume.Registry{Dir: filepath.Join(dir, "drivers"), KeepDir: filepath.Join(dir, "kept")}
	const name = "example.com/quick"
	installed, err := installDriver(r.Dir, name, "quick")
	if err != nil {
		return nil, err
	}
	err = whileRunning(ctx, r, func(ctx context.Context) error {
		driver, err := r.Ready(ctx, name)
		if err != nil {
			return err
		}
		for _, op := range flexvolume.Operations() {
			cost, err := measureCall(ctx, driver, installed.Path, op)
			if err != nil {
				return err
			}
			costs = append(costs, cost)
		}
		return nil
	})
	return costs, err
}

// whileRunning runs the registry until do returns.
func whileRunning(ctx context.Context, r *flexvolume.Registry, do func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- r.Run(ctx, func() { close(ready) }) }()
	select {
	case err := <-done:
		return err
	case <-ready:
	}
	err := do(ctx)
	cancel()
	return errors.Join(err, <-done)
}

// measureCall measures one operation.
func measureCall(ctx context.Context, driver *flexvolume.Driver, path string, op flexvolume.Operation) (callCost, error) {
	volume := flexvolume.Volume{Name: "pv1", FSType: "ext4", Options: map[string]string{"size": "1Gi"}}
	input, err := volume.Input()
	if err != nil {
		return callCost{}, err
	}
	args, call := callOf(driver, op, volume, input)
	var bare, engine []float64
	for range callsPerOperation {
		start := time.Now()
		if err := exec.CommandContext(ctx, path, args...).Run(); err != nil {
			return callCost{}, fmt.Errorf("execute driver: %w", err)
		}
		forked := time.Now()
		if err := call(ctx); err != nil {
			return callCost{}, err
		}
		bare, engine = append(bare, forked.Sub(start).Seconds()), append(engine, time.Since(forked).Seconds())
	}
	inTime := func(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }
	return callCost{op, inTime(stats.Median(bare)), inTime(stats.Median(engine))}, nil
}

// callOf returns an operation in two forms: as the driver's arguments, and as a call through the
// engine.
func callOf(d *flexvolume.Driver, op flexvolume.Operation, v flexvolume.Volume, input string) ([]string, func(context.Context) error) {
	const dir, device, node = "/mnt/pv1", "/dev/x", "node"
	with := func(args ...string) []string { return append([]string{string(op)}, args...) }
	switch op {
	case flexvolume.OpInit:
		return with(), func(ctx context.Context) error { _, err := d.Init(ctx); return err }
	case flexvolume.OpGetVolumeName:
		return with(input), func(ctx context.Context) error { _, _, err := d.VolumeName(ctx, v); return err }
	case flexvolume.OpAttach:
		return with(input, node), func(ctx context.Context) error { _, err := d.Attach(ctx, v, node); return err }
	case flexvolume.OpWaitForAttach:
		return with(device, input), func(ctx context.Context) error { _, err := d.WaitForAttach(ctx, device, v); return err }
	case flexvolume.OpIsAttached:
		return with(input, node), func(ctx context.Context) error { _, err := d.IsAttached(ctx, v, node); return err }
	case flexvolume.OpMountDevice:
		return with(dir, device, input), func(ctx context.Context) error { return d.MountDevice(ctx, dir, device, v) }
	case flexvolume.OpMount:
		return with(dir, input), func(ctx context.Context) error { return d.Mount(ctx, dir, flexvolume.MountRequest{Volume: v}) }
	case flexvolume.OpExpandVolume:
		return with(input, dir, "2", "1"), func(ctx context.Context) error { _, err := d.ExpandVolume(ctx, v, dir, 2, 1); return err }
	case flexvolume.OpExpandFS:
		return with(input, device, dir, "2", "1"), func(ctx context.Context) error { return d.ExpandFS(ctx, v, device, dir, 2, 1) }
	case flexvolume.OpUnmount:
		return with(dir), func(ctx context.Context) error { return d.Unmount(ctx, dir) }
	case flexvolume.OpUnmountDevice:
		return with(dir), func(ctx context.Context) error { return d.UnmountDevice(ctx, dir) }
	default:
		return with("pv1", node), func(ctx context.Context) error { return d.Detach(ctx, "pv1", node) }
	}
}
