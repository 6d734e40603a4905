// Package conformance checks whether a FlexVolume driver does what the interface asks for. It calls the driver the way kubelet and the
// attach-detach controller do, with the same paths in a directory of its own, and looks into the kernel's mount table for what the
// driver really did: every documented sequence, each operation twice, several volumes at the same time, strange option values, operations
// that the driver lacks, and calls that are killed half way.
//
// `slipway flexvolume check` prints its report. An author's test asks for the same in Go:
//
//	report, err := conformance.Run(ctx, conformance.Config{Driver: "example.com/mine", File: "./mine"})
//	if err != nil || report.Count(conformance.Wrong) > 0 {
//		report.Print(os.Stderr)
//		t.Fatal(err)
//	}
package conformance

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/slipway-platform/slipway/storage/flexvolume"
)

// Config says which driver is checked, and with which volumes.
type Config struct {
	// Driver is its name, "vendor/driver".
	Driver string
	// File is the driver's executable, which is installed in the check's own directory. Empty: the driver is called where it is installed
	// in PluginDir.
	File, PluginDir string
	// Options are those of every volume. In their values, {dir} stands for a directory of the check's own, {volume} for the
	// name of the volume and {size} for Size.
	Options map[string]string
	FSType  string
	// Secrets are given on mount, beside one of the check's own.
	Secrets map[string][]byte
	// Node is the name of this machine; empty is its host name.
	Node string
	// Size of the volumes in bytes, which are expanded to twice of it; 0 is 100 MiB.
	Size int64
	// Timeout is the deadline of each call; 0 is a minute.
	Timeout time.Duration
	// Kills is how many volumes lead a life in which every operation is killed once; 0 is 10.
	Kills int
	// Only are the names of the groups of checks that are run; empty is all. Init is always run.
	Only []string
	// Seed determines the moments at which calls are killed; 0 is a random one, which the report has.
	Seed uint64
	// Done is told of each result as it comes. It may be nil.
	Done func(Result)
}

// Groups are the names that Only takes.
func Groups() []string {
	var names []string
	for _, g := range groups() {
		names = append(names, g.name)
	}
	return names
}

// group is a set of checks that are run together.
type group struct {
	name string
	// always: the group is run also where Only does not name it.
	always bool
	run    func(*checker, context.Context)
}

func groups() []group {
	return []group{
		{"init", true, (*checker).initialize},
		{"lacks", false, (*checker).lacking},
		{"sequence", false, (*checker).sequence},
		{"read-only", false, (*checker).readOnly},
		{"pods", false, (*checker).twoPods},
		{"undone", false, (*checker).undone},
		{"failure", false, (*checker).failing},
		{"options", false, (*checker).options},
		{"secrets", false, (*checker).secrets},
		{"parallel", false, (*checker).parallel},
		{"expand", false, (*checker).expand},
		{"killed", false, (*checker).killing},
		{"output", true, (*checker).output},
		{"time", true, (*checker).time},
		{"leftovers", true, (*checker).leftovers},
	}
}

// checker is one run.
type checker struct {
	Config
	driver *flexvolume.Driver
	box    *sandbox
	report Report
	caps   flexvolume.Capabilities
	usable bool // init has succeeded

	mu      sync.Mutex
	random  *rand.Rand
	calls   []flexvolume.Outcome
	volumes int
}

// Run checks the driver. It needs root, works in a temporary directory, and leaves nothing behind: what the driver leaves is
// a result, and is then removed as far as it can be found. The error says why there is no report, or no whole one.
func Run(ctx context.Context, config Config) (Report, error) {
	if os.Geteuid() != 0 {
		return Report{}, errors.New("check FlexVolume driver: only root may mount; run it as root")
	}
	for _, name := range config.Only {
		if !slices.Contains(Groups(), name) {
			return Report{}, fmt.Errorf("check FlexVolume driver: there is no group of checks %q; use %s", name, strings.Join(Groups(), ", "))
		}
	}
	if err := config.complete(); err != nil {
		return Report{}, err
	}
	box, err := newSandbox()
	if err != nil {
		return Report{}, err
	}
	defer box.remove()
	if config.File != "" {
		config.PluginDir = box.pluginDir()
		if _, err := flexvolume.Install(config.PluginDir, config.Driver, config.File); err != nil {
			return Report{}, err
		}
	}
	found, err := flexvolume.Find(config.PluginDir, config.Driver)
	if err != nil {
		return Report{}, err
	}
	if err := flexvolume.CheckExecutable(found.Path); err != nil {
		return Report{}, err
	}
	c := &checker{
		Config: config, box: box,
		driver: flexvolume.NewDriver(config.Driver, found.Path, config.settings()),
		random: rand.New(rand.NewPCG(config.Seed, 0)),
		report: Report{Driver: config.Driver, Version: found.Version, Seed: config.Seed},
	}
	began := time.Now()
	for _, g := range groups() {
		if len(config.Only) == 0 || g.always || slices.Contains(config.Only, g.name) {
			c.run(ctx, g)
		}
	}
	c.report.Duration = time.Since(began)
	if ctx.Err() != nil {
		return c.report, fmt.Errorf("check FlexVolume driver: %w", context.Cause(ctx))
	}
	return c.report, nil
}

// run does one group. Without a successful init only the groups that judge the calls so far are of use.
func (c *checker) run(ctx context.Context, g group) {
	if ctx.Err() != nil && g.name != "leftovers" {
		return
	}
	if !c.usable && !g.always {
		c.result(g.name, NotTried, "init did not succeed", "")
		return
	}
	g.run(c, ctx)
}

// complete fills in defaults.
func (c *Config) complete() error {
	if err := flexvolume.CheckName(c.Driver); err != nil {
		return err
	}
	if c.Node == "" {
		name, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("find name of this machine: %w", err)
		}
		c.Node = name
	}
	if c.Size == 0 {
		c.Size = 100 << 20
	}
	if c.Timeout == 0 {
		c.Timeout = time.Minute
	}
	if c.Kills == 0 {
		c.Kills = 10
	}
	if c.Seed == 0 {
		c.Seed = rand.Uint64()
	}
	return nil
}

// settings give every operation the same deadline.
func (c *Config) settings() flexvolume.Settings {
	timeouts := map[flexvolume.Operation]time.Duration{}
	for _, op := range flexvolume.Operations() {
		timeouts[op] = c.Timeout
	}
	return flexvolume.Settings{Timeouts: timeouts}
}

// try calls the driver and notes the call.
func (c *checker) try(ctx context.Context, trial flexvolume.Trial) flexvolume.Outcome {
	trial.Mark = c.box.mark()
	outcome := c.driver.Try(ctx, trial)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, outcome)
	return outcome
}
