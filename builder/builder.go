// Package builder is the program that runs in the pod of a build: it fetches the source, makes an image of it as the strategy says, pushes the image
// to a registry and reports what became of it.
//
// It is given the Build in the variable BUILD and secrets as mounted directories, and has the rights of the pod's service account alone. It keeps its work in
// a directory of the pod, so that a build leaves nothing behind but its image.
//
// Source: OpenShift Container Platform 3.9 Architecture, Builds; the variables and directories are those of OpenShift 3.11's custom builders.
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
)

// Builder is one run of a build.
type Builder struct {
	Build *buildv1.Build
	// Report stores the details of the build. The builder changes them, and calls it when people will want to see them.
	Report func(context.Context, *buildv1.Build) error
	// Work is a directory of the build's own, and Secrets and ConfigMaps are where those of the build are mounted.
	Work, Secrets, ConfigMaps string
	// Cache is a directory that the node keeps for the builds of one configuration; it need not exist, and may be empty.
	Cache string
	// Runc is the program that starts steps, and Authority a file of the authority by which the cluster's registry is trusted.
	Runc, Authority string
	// Limit bounds the source.
	Limit *source.Limit
	// Git is how repositories are fetched: the fields that the build does not say.
	Git source.Git
	// Variable is the value of one of the pod's variables.
	Variable func(name string) string
	// In is what is uploaded to the build, Out the log that people read.
	In  io.Reader
	Out io.Writer
}

// Run builds. It returns what people read of a failure; why stands in the log and in the Build too.
func (b *Builder) Run(ctx context.Context) error {
	r := &run{Builder: b}
	defer r.close(context.WithoutCancel(ctx)) // after the report, for which people wait
	err := r.build(ctx)
	if err != nil {
		fmt.Fprintf(b.Out, "error: %v\n", err)
		r.failed(err)
	}
	// A build that is cancelled says so too.
	if reportErr := b.Report(context.WithoutCancel(ctx), b.Build); reportErr != nil {
		fmt.Fprintf(b.Out, "warning: the details of the build are not stored: %v\n", reportErr)
	}
	return err
}

// run is a build under way.
type run struct {
	*Builder
	pull, push credentials
	images     []credentials // of images that files are taken from
	store      *store
	engine     *engine.Engine // nil until it has started
	// context is the directory that the image is made of.
	context string
}

func (r *run) build(ctx context.Context) error {
	var err error
	if r.pull, err = readCredentials(filepath.Join(r.Secrets, "pull")); err != nil {
		return err
	}
	if r.push, err = readCredentials(filepath.Join(r.Secrets, "push")); err != nil {
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
		return fmt.Errorf("build with strategy %q: this builder knows the strategies Docker and Source", strategy.Type)
	}
}

// prepare starts the engine while the source comes in.
func (r *run) prepare(ctx context.Context) error {
	started := make(chan error, 1)
	go func() {
		started <- r.startEngine(ctx)
	}()
	fetched := r.fetch(ctx)
	if err := <-started; fetched == nil {
		return err
	}
	return fetched // what the source lacks is what people can change
}

// startEngine starts the engine with what earlier builds have left, or without if it cannot be used: the next build throws that away.
func (r *run) startEngine(ctx context.Context) (err error) {
	r.store = r.openStore(ctx)
	if r.engine, err = r.engineIn(ctx, r.store); err == nil || r.store.lock == nil {
		return err
	}
	fmt.Fprintf(r.Out, "warning: layers of earlier builds are not used: %v\n", err)
	_ = r.store.lock.Close() // it was only read
	r.store = &store{dir: r.Work}
	r.engine, err = r.engineIn(ctx, r.store)
	return err
}

func (r *run) engineIn(ctx context.Context, s *store) (*engine.Engine, error) {
	return engine.Start(ctx, engine.Config{Root: s.root(), Runc: r.Runc, Authorities: map[string][]string{registryHost: {r.Authority}}})
}

// close ends what has been started.
func (r *run) close(ctx context.Context) {
	if r.engine == nil {
		return
	}
	if err := r.store.leave(ctx, r.engine, r.Variable("ORIGIN_VERSION"), len(r.materials()) > 0); err != nil {
		fmt.Fprintf(r.Out, "warning: layers are not kept for the next build: %v\n", err)
	}
}

// registryHost is where the cluster's own registry is.
const registryHost = "docker-registry.default.svc:5000"

// directory makes a directory of the work.
func (r *run) directory(name string) (string, error) {
	path := filepath.Join(r.Work, name)
	if err := os.MkdirAll(path, 0o700); err != nil {
		return "", fmt.Errorf("make directory of the build: %w", err)
	}
	return path, nil
}
