// Package csi compares Slipway's CSI driver controllers with Kubernetes' external attacher sidecar,
// using the same driver and the same API server.
package csi

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/slipway-platform/slipway/internal/markdown"
	"github.com/slipway-platform/slipway/test/bench/host"
)

const (
	volumeCount = 500                   // number of volumes that are created, attached and detached
	warmUpCount = 50                    // number of volumes in the warm-up before the measurement
	callLatency = 10 * time.Millisecond // duration of each call to the driver
	// writeLatency is the duration of each write in the API server. It is similar to the duration
	// of a write to etcd.
	writeLatency = 4 * time.Millisecond
	// maxCalls is the number of concurrent driver calls. It is small, so that two cores do not
	// limit the comparison.
	maxCalls = 5
	// manyVolumes is the number of volumes that a process serves in the larger memory measurement.
	// The volumes belong to driverCount drivers.
	driverCount  = 10
	manyVolumes  = 5000
	idleTime     = 20 * time.Second // delay before memory is measured
	attacherFrom = "test/bench/attacher"
	attacherMain = "github.com/kubernetes-csi/external-attacher/v4/cmd/csi-attacher"
)

// Options contains the settings for the measurement.
type Options struct {
	Slipway  string // path of the program slipway
	Stock    string // directory of the stock programs
	Rounds   int    // number of measurements of each side
	Markdown string // file that the tables are written into, or ""
}

// section delimits the report in a document.
var section = markdown.Section{Begin: "<!-- csi:begin -->", End: "<!-- csi:end -->"}

// throughput contains one side's rates.
type throughput struct {
	provision, attach, detach float64 // volumes per second; 0 means not measured
	// requests is the number of API requests to attach and detach one volume, without events.
	requests float64
	// life is the number of API requests from the claim's creation to its deletion; 0 means not
	// measured.
	life      float64
	processor float64 // seconds of CPU time to attach and detach one volume
}

// results contains all measurements of programs that serve CSI drivers.
type results struct {
	machine           string
	started           time.Time
	slipway, attacher []throughput // one element for each round
	byHand            throughput   // measurements with manually created volumes
	// idle is the usage of slipway and of the attacher with one driver, after all volumes have been
	// detached.
	idle      [2]host.Usage
	many      host.Usage // slipway with driverCount drivers and manyVolumes volumes
	stockMany host.Usage // one attacher with one driver and manyVolumes volumes
}

// Run measures the programs that serve CSI drivers and reports the result.
func Run(ctx context.Context, o Options) error {
	attacher := filepath.Join(o.Stock, "csi-attacher")
	if err := buildAttacher(ctx, attacher); err != nil {
		return err
	}
	result := results{machine: host.Describe(), started: time.Now()}
	slipway, stock := program{o.Slipway, ownArguments}, program{attacher, attacherArguments}
	fmt.Fprint(os.Stderr, "CSI drivers:")
	defer fmt.Fprintln(os.Stderr)
	for range o.Rounds {
		if err := result.round(ctx, slipway, stock); err != nil {
			return fmt.Errorf("measure CSI drivers: %w", err)
		}
		fmt.Fprint(os.Stderr, " .")
	}
	for _, measure := range []func() error{
		func() (err error) {
			result.byHand, result.idle[0], err = slipway.rates(ctx, false, idleTime)
			return err
		},
		func() (err error) { _, result.idle[1], err = stock.rates(ctx, false, idleTime); return err },
		func() (err error) { result.many, err = slipway.memory(ctx, driverCount); return err },
		func() (err error) { result.stockMany, err = stock.memory(ctx, 1); return err },
	} {
		if err := measure(); err != nil {
			return fmt.Errorf("measure CSI drivers: %w", err)
		}
		fmt.Fprint(os.Stderr, " .")
	}
	fmt.Print(result.text())
	if o.Markdown == "" {
		return nil
	}
	return section.Write(o.Markdown, result.markdown())
}

// round runs both sides' volume operations, one side after the other.
func (r *results) round(ctx context.Context, slipway, stock program) error {
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
	arguments := []string{"csi", "controller", "--kubeconfig", kubeconfig, "--attach-workers", fmt.Sprint(maxCalls), "--provision-workers", fmt.Sprint(maxCalls)}
	for _, socket := range sockets {
		arguments = append(arguments, "--csi-address", "unix://"+socket)
	}
	return arguments
}

// attacherArguments returns arguments that raise the attacher's limit of five requests per second,
// because the benchmark compares the amount of work, not the limits.
func attacherArguments(kubeconfig string, sockets []string) []string {
	return []string{"--kubeconfig", kubeconfig, "--csi-address", sockets[0], "--worker-threads", fmt.Sprint(maxCalls), "--kube-api-qps", "10000", "--kube-api-burst", "10000"}
}

// buildAttacher builds the attacher, which has its own Go module in the directory attacherFrom.
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
