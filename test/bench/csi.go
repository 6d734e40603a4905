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
	csiVolumes = 500                   // that are made, attached and detached
	csiWarm    = 50                    // that are taken through the same before
	csiLatency = 10 * time.Millisecond // of each call of the driver
	// Of each write of the API server, about what one with etcd takes.
	csiWrite = 4 * time.Millisecond
	// Calls of the driver at once: few enough that two cores are no limit for what is compared.
	csiWorkers   = 5
	csiDrivers   = 10               // that one process serves for the larger measure of memory
	csiMany      = 5000             // volumes of these drivers
	csiIdle      = 20 * time.Second // until memory is read
	attacherFrom = "test/bench/attacher"
	attacherMain = "github.com/kubernetes-csi/external-attacher/v4/cmd/csi-attacher"
)

// csiRates is what one side did with the volumes.
type csiRates struct {
	provision, attach, detach float64 // volumes in a second; 0 is not measured
	// Of the API server to attach and detach one volume, events left out.
	requests float64
	// Such requests from the claim to the deletion; 0 is not measured.
	life      float64
	processor float64 // seconds of processor time to attach and detach one volume
}

// csiResult is everything that was measured of what serves CSI drivers.
type csiResult struct {
	machine       string
	started       time.Time
	own, attacher []csiRates // of each round
	byHand        csiRates   // ours, of volumes that somebody else has made
	// Ours and the attacher's with one driver, after all volumes were detached.
	idle      [2]host.Usage
	many      host.Usage // of our process with csiDrivers drivers and csiMany volumes
	stockMany host.Usage // of one attacher with one driver and csiMany volumes
}

// runCSI measures, prints and writes what serves CSI drivers.
func runCSI(ctx context.Context, o options) error {
	attacher := filepath.Join(o.stock, "csi-attacher")
	if err := buildAttacher(ctx, attacher); err != nil {
		return err
	}
	result := csiResult{machine: host.Describe(), started: time.Now()}
	own, stock := csiProgram{o.slipway, ownArguments}, csiProgram{attacher, attacherArguments}
	fmt.Fprint(os.Stderr, "CSI drivers:")
	defer fmt.Fprintln(os.Stderr)
	for range o.rounds {
		if err := result.round(ctx, own, stock); err != nil {
			return fmt.Errorf("measure CSI drivers: %w", err)
		}
		fmt.Fprint(os.Stderr, " .")
	}
	for _, measure := range []func() error{
		func() (err error) { result.byHand, result.idle[0], err = own.rates(ctx, false, csiIdle); return err },
		func() (err error) { _, result.idle[1], err = stock.rates(ctx, false, csiIdle); return err },
		func() (err error) { result.many, err = own.memory(ctx, csiDrivers); return err },
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
func (r *csiResult) round(ctx context.Context, own, stock csiProgram) error {
	rates, _, err := own.rates(ctx, true, 0)
	if err != nil {
		return err
	}
	r.own = append(r.own, rates)
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

// attacherArguments lift the attacher's own limit of five requests a second: the work is compared,
// not the limit.
func attacherArguments(kubeconfig string, sockets []string) []string {
	return []string{"--kubeconfig", kubeconfig, "--csi-address", sockets[0], "--worker-threads", fmt.Sprint(csiWorkers), "--kube-api-qps", "10000", "--kube-api-burst", "10000"}
}

// buildAttacher builds the program that attaching is compared with, from a module of its own.
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
