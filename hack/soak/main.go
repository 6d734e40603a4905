// Command soak fuzzes every parser of untrusted input and prints a table of results. It fails if a
// target finds a failing input. Go writes the failing input to testdata/fuzz in the target's
// folder. Fix the cause and commit the file, so that it serves as a unit test.
//
//	go run ./hack/soak -time 1h                     all targets share an hour
//	go run ./hack/soak -each 1m -only 'FuzzQuery'   a minute for each target that matches
//	go run ./hack/soak -time 38h -markdown          write the table to docs/soak.md, too
//
// Go caches inputs that reach new code, and the next run continues with them. `go clean -fuzzcache`
// removes them. The first run recompiles the targets' dependencies, because Go instruments them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"
)

// options contains the values of the command's flags.
type options struct {
	total, each time.Duration
	only        string
	markdown    bool
}

func main() {
	var o options
	flag.DurationVar(&o.total, "time", time.Hour, "time that the targets share")
	flag.DurationVar(&o.each, "each", 0, "time for each target, instead of a share")
	flag.StringVar(&o.only, "only", "", "regular expression that selects targets by directory and name, such as oauth/scope.FuzzScopes")
	flag.BoolVar(&o.markdown, "markdown", false, "write the table to docs/soak.md")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run fuzzes the targets in the working directory, which must be the repository's root folder.
func run(ctx context.Context, o options) error {
	only, err := regexp.Compile(o.only)
	if err != nil {
		return fmt.Errorf("parse flag -only: %w", err)
	}
	targets, err := find(".", only)
	if err != nil {
		return err
	}
	if len(targets) == 0 {
		return fmt.Errorf("flag -only %q selects no target", o.only)
	}
	share := o.each
	if share == 0 {
		share = o.total / time.Duration(len(targets))
	}
	var results []result
	for _, t := range targets {
		r := t.fuzz(ctx, share)
		if ctx.Err() != nil {
			break
		}
		fmt.Println(r)
		results = append(results, r)
	}
	if o.markdown {
		err = write("docs/soak.md", results)
	}
	for _, r := range results {
		if r.finding != "" {
			err = errors.Join(err, fmt.Errorf("%s: %s", r.target, r.finding))
		}
	}
	return errors.Join(err, ctx.Err())
}
