package builder

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/slipway-platform/slipway/builder/source"
	"github.com/slipway-platform/slipway/internal/buildpod"
)

// libraryVariable matches the names of environment variables that contain the repository URLs of
// Jenkins shared libraries.
var libraryVariable = regexp.MustCompile(`^LIBRARY_[A-Z0-9_]+$`)

// fetchLibraries fetches a pipeline's shared libraries with the source's credentials, because the
// Jenkinsfile has no access to these credentials. It sends the credentials only to the source
// server, because even users who can only start builds can set environment variables, and therefore
// the libraries' URLs. If a library cannot be fetched, a Jenkinsfile that loads it fails.
func (r *run) fetchLibraries(ctx context.Context) error {
	spec := r.Build.Spec.Source
	if spec.Git == nil || spec.SourceSecret == nil {
		return nil
	}
	dir := filepath.Join(r.Work, buildpod.LibrariesDir)
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove earlier libraries: %w", err)
	}
	g, err := r.repository(spec.Git)
	if err != nil {
		return err
	}
	for _, variable := range r.Build.Spec.Strategy.JenkinsPipelineStrategy.Env {
		address := r.Variable(variable.Name)
		if !libraryVariable.MatchString(variable.Name) || !source.SameServer(spec.Git.URI, address) {
			continue
		}
		g.URL = address
		fmt.Fprintf(r.Out, "Fetching library %q ...\n", source.Anonymous(address))
		if err := g.Mirror(ctx, filepath.Join(dir, variable.Name)); err != nil {
			fmt.Fprintf(r.Out, "warning: cannot fetch library: %v\n", err)
			if err := os.RemoveAll(filepath.Join(dir, variable.Name)); err != nil {
				return fmt.Errorf("remove incomplete library: %w", err)
			}
		}
	}
	return nil
}
