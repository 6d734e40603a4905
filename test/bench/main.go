// Command bench compares Slipway with the same upstream components as separate stock programs,
// built from the same go.mod. The stock programs are etcd, kube-apiserver, kube-controller-manager,
// kube-scheduler, kubelet, kube-proxy and containerd. `make bench` runs this command in the
// repository's root folder. The command requires root and takes a few minutes:
//
//	go run ./test/bench [-rounds 3] [-only cluster] [-slipway bin/slipway] [-markdown FILE]
//
// With -base, it compares two builds of Slipway, as `make bench-compare` does.
//
// The two sides alternate on an otherwise idle machine. Each side has a separate network namespace,
// directory and cgroup, which the benchmark removes even if it is interrupted.
// docs/benchmark-method.md describes the measurements and the setup of the stock side. The report
// marks a missed target as missed; the exit code only reports whether the measurement succeeded.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/slipway-platform/slipway/internal/markdown"
	"github.com/slipway-platform/slipway/test/bench/csi"
	"github.com/slipway-platform/slipway/test/bench/host"
	"github.com/slipway-platform/slipway/test/bench/router"
)

// These markers delimit a document's sections with the reports about clusters, users and projects,
// applications, the registry, builds, the web console, and imports. The packages csi and router
// have separate markers.
var (
	section         = markdown.Section{Begin: "<!-- bench:begin -->", End: "<!-- bench:end -->"}
	tenantsSection  = markdown.Section{Begin: "<!-- tenants:begin -->", End: "<!-- tenants:end -->"}
	appsSection     = markdown.Section{Begin: "<!-- apps:begin -->", End: "<!-- apps:end -->"}
	registrySection = markdown.Section{Begin: "<!-- registry:begin -->", End: "<!-- registry:end -->"}
	buildsSection   = markdown.Section{Begin: "<!-- builds:begin -->", End: "<!-- builds:end -->"}
	consoleSection  = markdown.Section{Begin: "<!-- console:begin -->", End: "<!-- console:end -->"}
	importsSection  = markdown.Section{Begin: "<!-- imports:begin -->", End: "<!-- imports:end -->"}
)

// options contains the values of the flags.
type options struct {
	slipway  string
	stock    string
	rounds   int
	pods     int
	volumes  int
	together int
	idle     time.Duration
	markdown string
	only     string
	base     string
	load     time.Duration
	routes   string
}

func main() {
	var o options
	flag.StringVar(&o.slipway, "slipway", "bin/slipway", "the slipway `program` to measure")
	flag.StringVar(&o.stock, "stock", "bin/stock", "`directory` for the stock programs that are built")
	flag.IntVar(&o.rounds, "rounds", 3, "number of measurements of each side")
	flag.IntVar(&o.pods, "pods", 10, "pods that are started one after the other in each round")
	flag.IntVar(&o.volumes, "volumes", 3, "pods with an attachable FlexVolume that are started one after the other in each round")
	flag.IntVar(&o.together, "together", 100, "pods with an attachable FlexVolume that are started together in each round")
	flag.DurationVar(&o.idle, "idle", 45*time.Second, "how long a cluster is idle before its memory is read")
	flag.StringVar(&o.markdown, "markdown", "", "also write the tables into this `file`, between its markers")
	flag.StringVar(&o.only, "only", "", "measure only this `part`: csi, tenants, apps, router, builds, cluster, registry, imports or console")
	flag.StringVar(&o.base, "base", "", "compare clusters with this other slipway `program` instead of the stock programs, and measure nothing else")
	flag.DurationVar(&o.load, "load", 3*time.Second, "how long each load of requests to the router lasts, in whole seconds")
	flag.StringVar(&o.routes, "routes", "10,1000,10000", "`numbers` of routes for the measurements of a router")
	flag.Parse()

	// Hide the messages of packages that this program shares with the components.
	slog.SetLogLoggerLevel(slog.LevelWarn)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run runs the selected measurements.
func run(ctx context.Context, o options) error {
	if os.Geteuid() != 0 {
		return errors.New("clusters need root: run it with sudo")
	}
	if min(o.rounds, o.pods, o.volumes, o.together, int(o.load.Seconds())) < 1 {
		return errors.New("-rounds, -pods, -volumes, -together and -load, in seconds, must be at least 1")
	}
	if o.base != "" {
		return runBase(ctx, o)
	}
	parts := []struct {
		name string
		run  func(context.Context, options) error
	}{{"csi", runCSI}, {"tenants", runTenants}, {"apps", runApps}, {"router", runRouter}, {"builds", runBuilds}, {"cluster", runClusters}, {"registry", runRegistry}, {"imports", runImports}, {"console", runConsole}}
	ran := o.only == ""
	for _, part := range parts {
		if o.only == "" || o.only == part.name {
			ran = true
			if err := part.run(ctx, o); err != nil {
				return err
			}
		}
	}
	if !ran {
		return fmt.Errorf("-only %q: must be csi, tenants, apps, router, builds, cluster, registry, imports or console", o.only)
	}
	return nil
}

func runCSI(ctx context.Context, o options) error {
	return csi.Run(ctx, csi.Options{Slipway: o.slipway, Stock: o.stock, Rounds: o.rounds, Markdown: o.markdown})
}

func runRouter(ctx context.Context, o options) error {
	return router.Run(ctx, router.Options{Slipway: o.slipway, Rounds: o.rounds, Load: o.load, Routes: o.routes, Markdown: o.markdown})
}

// runClusters measures whole clusters, alternating between slipway and stock, and reports the
// result.
func runClusters(ctx context.Context, o options) error {
	if err := buildStock(ctx, o.stock); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "slipway-bench-")
	if err != nil {
		return fmt.Errorf("create working directory: %w", err)
	}
	defer os.RemoveAll(work)
	report := &report{Machine: host.Describe(), Rounds: o.rounds, Idle: o.idle, Started: time.Now()}
	if err := report.measureEngine(ctx, work); err != nil {
		return fmt.Errorf("measure FlexVolume engine: %w", err)
	}
	programs := filepath.Join(work, "bin")
	if err := copyPrograms(programs, o); err != nil {
		return err
	}
	report.Sides, err = measureSides(ctx, work, [2]contender{
		{sideNames[0], func(h *host.Host) (side, error) { return newSlipway(h, filepath.Join(programs, "slipway")) }},
		{sideNames[1], func(h *host.Host) (side, error) { return newStock(h, programs) }},
	}, o)
	if err != nil {
		return err
	}
	fmt.Print(report.text())
	if o.markdown == "" {
		return nil
	}
	return section.Write(o.markdown, report.markdown())
}

// contender is one of the two sides that runClusters or runBase compares.
type contender struct {
	name string
	open func(*host.Host) (side, error)
}

// measureSides measures rounds of both contenders, alternately. It returns each contender's rounds.
// Unless both contenders are builds of Slipway, the last round includes a loaded cluster. For two
// builds, this single measurement would have no range to compare.
func measureSides(ctx context.Context, work string, compared [2]contender, o options) (sides [2][]round, err error) {
	for number := range o.rounds {
		for i, contender := range compared {
			h, err := host.New(filepath.Join(work, contender.name), "/slipway-bench-"+contender.name)
			if err != nil {
				return sides, err
			}
			fmt.Fprintf(os.Stderr, "round %d of %d, %s:", number+1, o.rounds, contender.name)
			result, err := measure(ctx, h, contender.open, o, o.base == "" && number == o.rounds-1)
			fmt.Fprintln(os.Stderr)
			if err != nil {
				return sides, fmt.Errorf("measure %s: %w", contender.name, err)
			}
			sides[i] = append(sides[i], result)
		}
	}
	return sides, nil
}
