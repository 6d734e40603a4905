// Command console builds the web console in console/web and writes its compressed files to
// console/dist. slipway embeds these files. `make build` runs the command in the repository's root
// folder:
//
//	go run ./hack/console
//
// If no source has changed since the last run, it does nothing. npm installs packages only if the
// lock file has changed, so later builds require no network.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/slipway-platform/slipway/internal/atomicfile"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root, err := os.Getwd()
	if err == nil {
		err = newBuild(root).run(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "console:", err)
		os.Exit(1)
	}
}

// build contains the settings of a console build.
type build struct {
	// web is the folder that contains the sources, and output is the folder to which npm's build
	// script writes the compressed files. slipway embeds the files in dist.
	web, output, dist string
	// cache is npm's cache directory.
	cache string
	// npm runs an npm command in web.
	npm func(ctx context.Context, args ...string) error
}

func newBuild(root string) *build {
	b := &build{
		web: filepath.Join(root, "console", "web"), dist: filepath.Join(root, "console", "dist"), cache: filepath.Join(root, "bin", "npm"),
	}
	b.output = filepath.Join(b.web, "build")
	b.npm = b.runNPM
	return b
}

// run builds the console if a source has changed since dist was built.
func (b *build) run(ctx context.Context) error {
	sources, err := b.sources()
	if err != nil {
		return fmt.Errorf("read web console sources: %w", err)
	}
	if current(filepath.Join(b.dist, inputsFile), sources) {
		return nil
	}
	start := time.Now()
	if err := b.install(ctx); err != nil {
		return err
	}
	if err := b.npm(ctx, "run", "--silent", "build"); err != nil {
		return fmt.Errorf("build web console: %w", err)
	}
	size, err := b.publish()
	if err != nil {
		return fmt.Errorf("write web console files: %w", err)
	}
	if err := atomicfile.Write(filepath.Join(b.dist, inputsFile), []byte(sources), 0o644); err != nil {
		return err
	}
	slog.Info("built web console", "compressed", size, "duration", time.Since(start).Round(time.Second/10))
	return nil
}

// install installs the packages from the lock file, unless the last install used the same lock
// file.
func (b *build) install(ctx context.Context) error {
	lock, err := digest(filepath.Join(b.web, "package-lock.json"))
	if err != nil {
		return fmt.Errorf("install packages of the web console: %w", err)
	}
	stamp := filepath.Join(b.web, "node_modules", ".slipway-lock")
	if current(stamp, lock) {
		return nil
	}
	if err := b.npm(ctx, "ci", "--silent"); err != nil {
		return fmt.Errorf("install packages of the web console: %w; the first build needs a package registry that npm can reach", err)
	}
	return atomicfile.Write(stamp, []byte(lock), 0o644)
}

// publish replaces the files in dist with the built files, and returns their total size in bytes.
// It removes the inputs file first, so that the next run repeats an interrupted publish.
func (b *build) publish() (size int64, err error) {
	entries, err := os.ReadDir(b.dist)
	if err != nil {
		return 0, err
	}
	if err := os.RemoveAll(filepath.Join(b.dist, inputsFile)); err != nil {
		return 0, err
	}
	for _, entry := range entries {
		if name := entry.Name(); name != "README" && !strings.HasPrefix(name, ".") {
			if err := os.RemoveAll(filepath.Join(b.dist, name)); err != nil {
				return 0, err
			}
		}
	}
	return size, filepath.WalkDir(b.output, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(b.output, path)
		if err != nil {
			return err
		}
		target := filepath.Join(b.dist, relative)
		if entry.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		n, err := copyFile(path, target)
		size += n
		return err
	})
}

func copyFile(source, target string) (int64, error) {
	input, err := os.Open(source)
	if err != nil {
		return 0, err
	}
	defer input.Close()
	output, err := os.Create(target)
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(output, input)
	if closeErr := output.Close(); err == nil {
		err = closeErr
	}
	return n, err
}

// runNPM runs npm in web. npm's cache is in the repository's folder for build artifacts.
func (b *build) runNPM(ctx context.Context, args ...string) error {
	command := exec.CommandContext(ctx, "npm", args...)
	command.Dir, command.Stdout, command.Stderr = b.web, os.Stderr, os.Stderr
	command.Env = append(os.Environ(), "npm_config_cache="+b.cache, "NODE_ENV=")
	return command.Run()
}
