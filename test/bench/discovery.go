package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/storage/flexvolume"
	"github.com/slipway-platform/slipway/test/bench/host"
)

const (
	// manyDrivers is the number of installed drivers. idleDiscovery is the time for which they are
	// watched without a change.
	manyDrivers   = 500
	idleDiscovery = 10 * time.Second
	// singleChanges is the number of changes that each start after the previous change has taken
	// effect. burstChanges is the number of changes that follow each other as fast as possible.
	singleChanges = 10
	burstChanges  = 10_000
)

// discovery contains the costs and delays of driver discovery.
type discovery struct {
	// idle is the CPU time per second, in seconds, of a process that watches unchanged drivers.
	idle float64
	// changes contains the times from a driver change until the new version is usable.
	changes []time.Duration
	// burst is the duration of burstChanges consecutive writes of a driver. apart is the minimum
	// time between the starts of two scans.
	burst, apart time.Duration
}

// scanTimes records the start time of each directory scan.
type scanTimes struct {
	mu     sync.Mutex
	begins []time.Time
}

func (s *scanTimes) CallBegins(string, flexvolume.Operation) {}
func (s *scanTimes) CallEnds(flexvolume.Call)                {}

func (s *scanTimes) ScanEnds(scan flexvolume.Scan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begins = append(s.begins, time.Now().Add(-scan.Duration))
}

// apart returns the minimum time between the starts of two consecutive scans.
func (s *scanTimes) apart() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	shortest := time.Duration(0)
	for i := range s.begins[1:] {
		if between := s.begins[i+1].Sub(s.begins[i]); shortest == 0 || between < shortest {
			shortest = between
		}
	}
	return shortest
}

// measureDiscovery runs a registry with many drivers in this process, which is otherwise idle.
func measureDiscovery(ctx context.Context, dir string) (result discovery, err error) {
	scans := &scanTimes{}
	r := &flexvolume.Registry{Dir: filepath.Join(dir, "drivers"), KeepDir: filepath.Join(dir, "kept"), Observer: scans}
	for number := range manyDrivers {
		if _, err := installDriver(r.Dir, fmt.Sprintf("example.com/driver%d", number), "quick"); err != nil {
			return result, err
		}
	}
	err = whileRunning(ctx, r, func(ctx context.Context) error {
		for _, entry := range r.List() {
			if _, err := r.Ready(ctx, entry.Name); err != nil {
				return err
			}
		}
		if result.idle, err = processorTime(ctx, idleDiscovery); err != nil {
			return err
		}
		for number := range singleChanges {
			took, err := change(ctx, r, number)
			if err != nil {
				return err
			}
			result.changes = append(result.changes, took)
		}
		start := time.Now()
		for number := range burstChanges {
			if err := writeVersion(r.Dir, singleChanges+number); err != nil {
				return err
			}
		}
		result.burst = time.Since(start)
		_, err := change(ctx, r, singleChanges+burstChanges)
		result.apart = scans.apart()
		return err
	})
	return result, err
}

// processorTime returns this process's CPU time per second, measured while it waits.
func processorTime(ctx context.Context, long time.Duration) (float64, error) {
	usage := func() (float64, error) {
		var usage unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
			return 0, fmt.Errorf("read CPU time: %w", err)
		}
		return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds(), nil
	}
	if err := host.Pause(ctx, long/5); err != nil { // wait until the last init call has ended
		return 0, err
	}
	before, err := usage()
	if err != nil {
		return 0, err
	}
	if err := host.Pause(ctx, long); err != nil {
		return 0, err
	}
	after, err := usage()
	return (after - before) / long.Seconds(), err
}

// changed is the name of the driver that the benchmark changes.
const changed = "example.com/driver0"

// change writes another version of the driver and waits until the new version is usable.
func change(ctx context.Context, r *flexvolume.Registry, number int) (time.Duration, error) {
	start := time.Now()
	if err := writeVersion(r.Dir, number); err != nil {
		return 0, err
	}
	want, err := flexvolume.Find(r.Dir, changed)
	if err != nil {
		return 0, err
	}
	for {
		next := r.Changed()
		if entry, _ := r.Lookup(changed); entry.State == flexvolume.StateReady && entry.Version == want.Version {
			return time.Since(start), nil
		}
		select {
		case <-next:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

// writeVersion writes another version of the driver. Unlike an installation, it does not sync the
// file to disk.
func writeVersion(pluginDir string, number int) error {
	content, err := drivers.ReadFile("drivers/quick")
	if err != nil {
		return err
	}
	dir := filepath.Join(pluginDir, flexvolume.EscapeName(changed))
	partial := filepath.Join(dir, ".new")
	if err := os.WriteFile(partial, fmt.Appendf(content, "# %d\n", number), 0o755); err != nil {
		return fmt.Errorf("write driver: %w", err)
	}
	if err := os.Rename(partial, filepath.Join(dir, "driver0")); err != nil {
		return fmt.Errorf("write driver: %w", err)
	}
	return nil
}
