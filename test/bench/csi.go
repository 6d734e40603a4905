package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/slipway-platform/slipway/test/bench/host"
)

const (
	csiVolumes = 500                   // volumes that are created, attached and detached
	csiWarm    = 50                    // volumes of the warm-up
	csiLatency = 10 * time.Millisecond // of each call of the driver
	// of each write of the API server, about the time of a write with etcd
	csiWrite = 4 * time.Millisecond
	// Concurrent calls of the driver: few enough that two cores do not limit the comparison.
	csiWorkers   = 5
	csiDrivers   = 10               // volumes of one process in the larger memory measurement
	csiMany      = 5000             // volumes of these drivers
	csiIdle      = 20 * time.Second // until memory is read
	attacherFrom = "test/bench/attacher"
	attacherMain = "github.com/kubernetes-csi/external-attacher/v4/cmd/csi-attacher"
)

// csiRates are the rates of one side.
type csiRates struct {
	provision, attach, detach float64 // volumes per second; 0 means not measured
	// API requests to attach and detach one volume, without events.
	requests float64
	// API requests from the claim to the deletion; 0 means not measured.
	life      float64
	processor float64 // seconds of processor time to attach and detach one volume
}

// csiResult contains all measurements of programs that serve CSI drivers.
type csiResult struct {
	machine           string
	started           time.Time
	slipway, attacher []csiRates // of each round
	byHand            csiRates   // slipway with manually created volumes
	// slipway and the attacher with one driver, after all volumes are detached.
	idle      [2]host.Usage
	many      host.Usage // slipway with csiDrivers drivers and csiMany volumes
	stockMany host.Usage // one attacher with one driver and csiMany volumes
}

// runCSI measures the programs that serve CSI drivers and reports the result.
func runCSI(ctx context.Context, o options) error {
	attacher := filepath.Join(o.stock, "csi-attacher")
	if err := buildAttacher(ctx, attacher); err != nil {
		return err
	}
	result := csiResult{machine: host.Describe(), started: time.Now()}
	slipway, stock := csiProgram{o.slipway, ownArguments}, csiProgram{attacher, attacherArguments}
	fmt.Fprint(os.Stderr, "CSI drivers:")
	defer fmt.Fprintln(os.Stderr)
	for range o.rounds {
		if err := result.round(ctx, slipway, stock); err != nil {
			return fmt.Errorf("measure CSI drivers: %w", err)
		}
		fmt.Fprint(os.Stderr, " .")
	}
	for _, measure := range []func() error{
		func() (err error) {
			result.byHand, result.idle[0], err = slipway.rates(ctx, false, csiIdle)
			return err
		},
		func() (err error) { _, result.idle[1], err = stock.rates(ctx, false, csiIdle); return err },
		func() (err error) { result.many, err = slipway.memory(ctx, csiDrivers); return err },
		func() (err error) { result.stockMany, err = stock.memory(ctx, 1); return err },
	} {
		if err := measure(); err != nil {
			return fmt.Errorf("measure CSI drivers: %w", err)
		}
		fmt.Fprint(os.Stderr, " .")
	}
	fmt.Print(result.text())
	if o.markdown == "" {
		return nil
	}
	return csiSection.Write(o.markdown, result.markdown())
}

// round runs the volume operations of both sides, one side after the other.
func (r *csiResult) round(ctx context.Context, slipway, stock csiProgram) error {
	rates, _, err := slipway.rates(ctx, true, 0)
	if err != nil {
		return err
	}
	r.slipway = append(r.slipway, rates)
	if rates, _, err = stock.rates(ctx, false, 0); err != nil {
		return err
	}
	r.attacher = append(r.attacher, rates)
	return nil
}

func ownArguments(kubeconfig string, sockets []string) []string {
	arguments := []string{"csi", "controller", "--kubeconfig", kubeconfig, "--attach-workers", fmt.Sprint(csiWorkers), "--provision-workers", fmt.Sprint(csiWorkers)}
	for _, socket := range sockets {
		arguments = append(arguments, "--csi-address", "unix://"+socket)
	}
	return arguments
}

// attacherArguments raise the attacher's limit of five requests per second. The comparison is about
// the work, not the limit.
func attacherArguments(kubeconfig string, sockets []string) []string {
	return []string{"--kubeconfig", kubeconfig, "--csi-address", sockets[0], "--worker-threads", fmt.Sprint(csiWorkers), "--kube-api-qps", "10000", "--kube-api-burst", "10000"}
}

// buildAttacher builds the attacher from a separate module.
func buildAttacher(ctx context.Context, path string) error {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, "nice", "go", "build", "-ldflags", "-s -w", "-o", absolute, attacherMain)
	command.Dir, command.Stderr = attacherFrom, os.Stderr
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if err := command.Run(); err != nil {
		return fmt.Errorf("build external-attacher: %w", err)
	}
	return nil
}
