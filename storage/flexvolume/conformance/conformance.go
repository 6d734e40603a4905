// Package conformance checks whether a FlexVolume driver implements the interface correctly. It
// calls the driver as the kubelet and the attach-detach controller do, with the same paths in a
// temporary directory. It verifies the driver's actions with the kernel's mount table. It checks
// each documented sequence, repeated operations, concurrent volumes, unusual option values,
// unsupported operations, and calls that are killed while they run.
//
// `slipway flexvolume check` prints the report. A driver's Go tests can run the same checks:
//
//	config := conformance.Config{Driver: "example.com/mine", File: "./mine"}
//	report, err := conformance.Run(ctx, config)
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

// Config specifies the driver to check and the volumes to use.
type Config struct {
	// Driver is the driver's name, in the form "vendor/driver".
	Driver string
	// File is the driver's executable, which Run installs in a temporary directory. If File is
	// empty, Run calls the driver that is installed in PluginDir.
	File, PluginDir string
	// Options contains the options of every volume. In values, {dir} is replaced with a temporary
	// directory, {volume} with the volume's name and {size} with Size.
	Options map[string]string
	FSType  string
	// Secrets contains the secrets that are passed on mount, in addition to a generated secret.
	Secrets map[string][]byte
	// Node is the name of this node. It defaults to the host name.
	Node string
	// Size is the size of the volumes, in bytes. Volumes are expanded to twice this size. The
	// default is 100 MiB.
	Size int64
	// Timeout is the timeout of each call. The default is 1 minute.
	Timeout time.Duration
	// Kills is the number of volumes for which every operation is killed once. The default is 10.
	Kills int
	// Only lists the groups of checks to run. If Only is empty, all groups run. Some groups, such
	// as init, always run.
	Only []string
	// Seed determines when calls are killed. If it is 0, Run generates a random seed. The report
	// contains the seed.
	Seed uint64
	// Done, if not nil, is called with each result as soon as the check is complete.
	Done func(Result)
}

// Groups returns the valid values of Only.
func Groups() []string {
	var names []string
	for _, g := range groups() {
		names = append(names, g.name)
	}
	return names
}

// group is a set of checks that run together.
type group struct {
	name string
	// always is set if the group runs even if Only does not list it.
	always bool
	run    func(*checker, context.Context)
}

func groups() []group {
	return []group{
		{"init", true, (*checker).initialize},
		{"lacks", false, (*checker).unsupported},
		{"sequence", false, (*checker).sequence},
		{"read-only", false, (*checker).readOnly},
		{"pods", false, (*checker).twoPods},
		{"undone", false, (*checker).nothingToUndo},
		{"failure", false, (*checker).failingMountIsReported},
		{"options", false, (*checker).options},
		{"secrets", false, (*checker).secrets},
		{"parallel", false, (*checker).parallel},
		{"expand", false, (*checker).expand},
		{"killed", false, (*checker).killed},
		{"output", true, (*checker).output},
		{"time", true, (*checker).time},
		{"leftovers", true, (*checker).leftovers},
	}
}

// checker is the state of one run.
type checker struct {
	Config
	driver  *flexvolume.Driver
	sandbox *sandbox
	report  Report
	caps    flexvolume.Capabilities
	usable  bool // init has succeeded

	mu      sync.Mutex
	random  *rand.Rand
	calls   []flexvolume.TrialResult
	volumes int
}

// Run checks the driver. It requires root and works in a temporary directory. It reports everything
// that the driver did not clean up, and removes it if possible. If Run returns an error, the report
// is missing or incomplete.
func Run(ctx context.Context, config Config) (Report, error) {
	if os.Geteuid() != 0 {
		return Report{}, errors.New("check FlexVolume driver: mounting requires root; run it as root")
	}
	for _, name := range config.Only {
		if !slices.Contains(Groups(), name) {
			return Report{}, fmt.Errorf("check FlexVolume driver: unknown group of checks %q; use %s", name, strings.Join(Groups(), ", "))
		}
	}
	if err := config.setDefaults(); err != nil {
		return Report{}, err
	}
	sandbox, err := newSandbox()
	if err != nil {
		return Report{}, err
	}
	defer sandbox.remove()
	if config.File != "" {
		config.PluginDir = sandbox.pluginDir()
		if _, err := flexvolume.Install(config.PluginDir, config.Driver, config.File); err != nil {
			return Report{}, err
		}
	}
	installation, err := flexvolume.Find(config.PluginDir, config.Driver)
	if err != nil {
		return Report{}, err
	}
	if err := flexvolume.CheckExecutable(installation.Path); err != nil {
		return Report{}, err
	}
	c := &checker{
		Config: config, sandbox: sandbox,
		driver: flexvolume.NewDriver(config.Driver, installation.Path, config.settings()),
		random: rand.New(rand.NewPCG(config.Seed, 0)),
		report: Report{Driver: config.Driver, Version: installation.Version, Seed: config.Seed},
	}
	start := time.Now()
	for _, g := range groups() {
		if len(config.Only) == 0 || g.always || slices.Contains(config.Only, g.name) {
			c.run(ctx, g)
		}
	}
	c.report.Duration = time.Since(start)
	if ctx.Err() != nil {
		return c.report, fmt.Errorf("check FlexVolume driver: %w", context.Cause(ctx))
	}
	return c.report, nil
}

// run runs one group. If init has failed, it runs only the groups that always run.
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

// setDefaults validates the driver's name and sets defaults.
func (c *Config) setDefaults() error {
	if err := flexvolume.CheckName(c.Driver); err != nil {
		return err
	}
	if c.Node == "" {
		name, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("get host name: %w", err)
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

// settings returns the engine settings, with the same timeout for all operations.
func (c *Config) settings() flexvolume.Settings {
	timeouts := map[flexvolume.Operation]time.Duration{}
	for _, op := range flexvolume.Operations() {
		timeouts[op] = c.Timeout
	}
	return flexvolume.Settings{Timeouts: timeouts}
}

// call calls the driver and records the call.
func (c *checker) call(ctx context.Context, trial flexvolume.Trial) flexvolume.TrialResult {
	trial.Env, trial.Dir = c.sandbox.env(), c.sandbox.workingDir()
	outcome := c.driver.Try(ctx, trial)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, outcome)
	return outcome
}
