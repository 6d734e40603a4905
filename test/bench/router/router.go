// Package router compares the router with HAProxy alone, and measures the router with many routes.
package router

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/internal/markdown"
	"github.com/slipway-platform/slipway/test/bench/host"
)

// Options contains the settings for the measurement.
type Options struct {
	Slipway  string        // path of the program slipway
	Rounds   int           // number of measurements of each side
	Load     time.Duration // duration of each load of requests, in whole seconds
	Routes   string        // numbers of routes, separated by commas
	Markdown string        // file that the tables are written into, or ""
}

// section delimits the report in a document.
var section = markdown.Section{Begin: "<!-- router:begin -->", End: "<!-- router:end -->"}

// results contains all of the router's measurements.
type results struct {
	machine string
	started time.Time
	rounds  int
	load    time.Duration
	loads   []loadResult
	scales  []scaleResult
}

// Run compares the router with HAProxy alone, measures the router with many routes, and reports the
// result.
func Run(ctx context.Context, o Options) error {
	var sizes []int
	for word := range strings.SplitSeq(o.Routes, ",") {
		size, err := strconv.Atoi(word)
		if err != nil || size < 1 {
			return fmt.Errorf("-routes %q: must be numbers of routes, such as 10,1000", o.Routes)
		}
		sizes = append(sizes, size)
	}
	program, err := filepath.Abs(o.Slipway)
	if err != nil {
		return err
	}
	result := results{machine: host.Describe(), started: time.Now(), rounds: o.Rounds, load: o.Load}
	fmt.Fprint(os.Stderr, "router:")
	defer fmt.Fprintln(os.Stderr)
	if result.loads, err = measureLoads(ctx, program, o); err != nil {
		return fmt.Errorf("measure requests through the router: %w", err)
	}
	for _, size := range sizes {
		scale, err := measureScale(ctx, program, size)
		if err != nil {
			return fmt.Errorf("measure a router of %d routes: %w", size, err)
		}
		result.scales = append(result.scales, scale)
		fmt.Fprintf(os.Stderr, " %d routes", size)
	}
	fmt.Print(result.text())
	if o.Markdown == "" {
		return nil
	}
	return section.Write(o.Markdown, result.markdown())
}
