// Package builder implements the program that runs in build pods. It fetches the source, builds an
// image according to the strategy, pushes the image to a registry, and reports the result.
//
// Its inputs are the BUILD environment variable and mounted secrets and config maps. It has the
// permissions of the pod's service account. All its files are in the pod, except for cached layers.
//
// Source: OpenShift Container Platform 3.9 Architecture, Builds; the environment variables and
// directories are the same as for OpenShift 3.11's custom builders.
package builder

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	buildv1 "github.com/openshift/api/build/v1"

	"github.com/slipway-platform/slipway/builder/engine"
	"github.com/slipway-platform/slipway/builder/source"
	"github.com/slipway-platform/slipway/internal/buildpod"
	"github.com/slipway-platform/slipway/registry/registryname"
)

// Builder runs one build.
type Builder struct {
	Build *buildv1.Build
	// Report stores the build's details in the Build. The builder calls it when the details change.
	Report func(context.Context, *buildv1.Build) error
	// Work is the working directory for this build. Secrets and ConfigMaps are the directories that
	// contain the mounted secrets and config maps.
	Work, Secrets, ConfigMaps string
	// Cache is a directory that the node keeps for the builds of one build configuration. Cache is
	// optional. The directory can be missing or empty.
	Cache string
	// Runc is the path of runc. Authority is the file with the CA bundle of the cluster's registry.
	Runc, Authority string
	// Limit caps the size of the source, and the memory and time used to fetch it.
	Limit *source.Limit
	// Git contains the clone settings that are not in the Build.
	Git source.Git
	// Variable returns the value of an environment variable.
	Variable func(name string) string
	// In is the uploaded source. Out is the build log.
	In  io.Reader
	Out io.Writer
}

// Run builds the image. If the build fails, Run also writes the failure to the log and to the
// Build.
func (b *Builder) Run(ctx context.Context) error {
	r := &run{Builder: b}
	// Close after the report, because clients wait for the report.
	defer r.close(context.WithoutCancel(ctx))
	err := r.build(ctx)
	if err != nil {
		fmt.Fprintf(b.Out, "error: %v\n", err)
		r.setFailed(err)
	}
	// Also report the details of a canceled build.
	if reportErr := b.Report(context.WithoutCancel(ctx), b.Build); reportErr != nil {
		fmt.Fprintf(b.Out, "warning: cannot store the details of the build: %v\n", reportErr)
	}
	return err
}

// Fetch only fetches the source and the libraries of a pipeline. It replaces files left by an
// earlier fetch that was interrupted. If the fetch fails, the build has failed: Fetch stores the
// reason in the Build, because a retry would not help.
func (b *Builder) Fetch(ctx context.Context) error {
	r := &run{Builder: b}
	if err := os.RemoveAll(filepath.Join(b.Work, "source")); err != nil {
		return fmt.Errorf("remove earlier source: %w", err)
	}
	err := r.fetch(ctx)
	if err == nil {
		err = r.fetchLibraries(ctx)
	}
	if err != nil {
		fmt.Fprintf(b.Out, "error: %v\n", err)
		r.setFailed(err)
		if reportErr := b.Report(context.WithoutCancel(ctx), b.Build); reportErr != nil {
			fmt.Fprintf(b.Out, "warning: cannot store the details of the build: %v\n", reportErr)
		}
	}
	return err
}

// run is the state of a build.
type run struct {
	*Builder
	pull, push credentials
	images     []credentials // for images whose files are copied into the source
	store      *store
	engine     *engine.Engine // nil until it has started
	// context is the build context directory.
	context string
	// user is the user that runs the scripts and the hook of a Source build, as uid:gid. It is "" for
	// other builds, whose hook runs as the image's user.
	user string
}

func (r *run) build(ctx context.Context) error {
	var err error
	if r.pull, err = readCredentials(filepath.Join(r.Secrets, buildpod.PullSecret)); err != nil {
		return err
	}
	if r.push, err = readCredentials(filepath.Join(r.Secrets, buildpod.PushSecret)); err != nil {
		return err
	}
	if err := r.prepare(ctx); err != nil {
		return err
	}
	if err := r.addImages(ctx, r.engine); err != nil {
		return err
	}
	switch strategy := r.Build.Spec.Strategy; {
	case strategy.DockerStrategy != nil:
		return r.docker(ctx, r.engine, strategy.DockerStrategy)
	case strategy.SourceStrategy != nil:
		return r.sourceToImage(ctx, r.engine, strategy.SourceStrategy)
	default:
		return fmt.Errorf("build with strategy %q: the builder supports only Docker and Source", strategy.Type)
	}
}

// prepare fetches the source and, at the same time, starts the engine.
func (r *run) prepare(ctx context.Context) error {
	engineErr := make(chan error, 1)
	go func() {
		engineErr <- r.startEngine(ctx)
	}()
	fetchErr := r.fetch(ctx)
	if err := <-engineErr; fetchErr == nil {
		return err
	}
	return fetchErr // this error takes precedence, because the user can correct the source
}

// startEngine starts the engine with the layers of earlier builds. If the layers are damaged, it
// starts the engine with an empty store, and the next build deletes the damaged layers.
func (r *run) startEngine(ctx context.Context) (err error) {
	r.store = r.openStore(ctx)
	if r.engine, err = r.newEngine(ctx, r.store); err == nil || r.store.lock == nil {
		return err
	}
	fmt.Fprintf(r.Out, "warning: cannot use layers of earlier builds: %v\n", err)
	_ = r.store.lock.Close() // the store has no other resources that must be closed
	r.store = &store{dir: r.Work}
	r.engine, err = r.newEngine(ctx, r.store)
	return err
}

func (r *run) newEngine(ctx context.Context, s *store) (*engine.Engine, error) {
	return engine.Start(ctx, engine.Config{Root: s.root(), Runc: r.Runc, Authorities: map[string][]string{registryname.Address: {r.Authority}}})
}

// close stops the engine and releases its store.
func (r *run) close(ctx context.Context) {
	if r.engine == nil {
		return
	}
	if err := r.store.release(ctx, r.engine, r.Variable(buildpod.VersionVariable), len(r.materials()) > 0); err != nil {
		fmt.Fprintf(r.Out, "warning: cannot keep layers for the next build: %v\n", err)
	}
}

// directory creates a directory in Work.
func (r *run) directory(name string) (string, error) {
	path := filepath.Join(r.Work, name)
	if err := os.MkdirAll(path, 0o700); err != nil {
		return "", fmt.Errorf("create build directory: %w", err)
	}
	return path, nil
}
