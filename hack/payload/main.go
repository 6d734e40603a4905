// Command payload builds the programs that slipway embeds, compresses them, and writes them with
// their manifest to internal/payload/files. `make build` runs it in the repository's root folder
// before it builds slipway:
//
//	go run ./hack/payload [-arch arm64] [program...]
//
// go.mod determines the programs' versions. payload builds a program only if one of the program's
// inputs has changed. The inputs are its recipe, the Go version, go.mod, go.sum, and the packages
// in this repository that the program contains. Without arguments, it updates all programs.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/slipway-platform/slipway/internal/payload/manifest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	arch := flag.String("arch", runtime.GOARCH, "processor architecture of the programs: amd64 or arm64")
	flag.Parse()
	if err := run(ctx, "internal/payload/files", *arch, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "payload:", err)
		os.Exit(1)
	}
}

// run updates the named programs in dir for an architecture, or all programs if names is empty.
func run(ctx context.Context, dir, arch string, names []string) error {
	if !slices.Contains(architectures(), arch) {
		return fmt.Errorf("unknown architecture %q: choose one of %q", arch, architectures())
	}
	for _, name := range names {
		if !slices.Contains(manifest.Names(), name) {
			return fmt.Errorf("unknown program %q: choose one of %q", name, manifest.Names())
		}
	}
	recipes, err := recipes(ctx, arch)
	if err != nil {
		return err
	}
	manifest := previous(dir)
	for _, recipe := range recipes {
		if len(names) > 0 && !slices.Contains(names, recipe.Name) {
			continue
		}
		inputs, err := recipe.inputs(ctx)
		if err != nil {
			return fmt.Errorf("build %s: %w", recipe.Name, err)
		}
		if old, ok := manifest.Find(recipe.Name); ok && old.Inputs == inputs && exists(dir, old) {
			continue
		}
		start := time.Now()
		program, compressed, err := recipe.build(ctx, dir)
		if err != nil {
			return fmt.Errorf("build %s: %w", recipe.Name, err)
		}
		program.Inputs = inputs
		manifest = with(manifest, program)
		if err := save(dir, manifest); err != nil {
			return err
		}
		slog.Info("built program", "program", program.Name, "bytes", program.Size, "compressed", compressed,
			"duration", time.Since(start).Round(time.Second/10))
	}
	return nil
}
