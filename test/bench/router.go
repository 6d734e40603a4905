package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/test/bench/host"
)

// routerResult contains all measurements of the router.
type routerResult struct {
	machine string
	started time.Time
	rounds  int
	load    time.Duration
	loads   []routerLoads
	scales  []routerScale
}

// runRouter measures the router next to HAProxy alone, and with many routes, and reports the
// result.
func runRouter(ctx context.Context, o options) error {
	var sizes []int
	for word := range strings.SplitSeq(o.routes, ",") {
		size, err := strconv.Atoi(word)
		if err != nil || size < 1 {
			return fmt.Errorf("-routes %q: it is numbers of routes, such as 10,1000", o.routes)
		}
		sizes = append(sizes, size)
	}
	program, err := filepath.Abs(o.slipway)
	if err != nil {
		return err
	}
	result := routerResult{machine: host.Describe(), started: time.Now(), rounds: o.rounds, load: o.load}
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
	if o.markdown == "" {
		return nil
	}
	return routerSection.Write(o.markdown, result.markdown())
}
