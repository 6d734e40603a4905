package engine

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/moby/buildkit/client"
	"github.com/moby/buildkit/exporter/containerimage/exptypes"
	gateway "github.com/moby/buildkit/frontend/gateway/client"
	"github.com/moby/buildkit/session"
	"github.com/moby/buildkit/session/secrets/secretsprovider"
	"github.com/tonistiigi/fsutil"
)

// Job is one image to build.
type Job struct {
	// Build makes the image, by solves that it asks the client for.
	Build gateway.BuildFunc
	// Folders are directories of this machine that Build may read, by the name that it reads them by.
	Folders map[string]string
	// Push is the reference that the image gets in a registry; empty: it is not pushed.
	Push string
	// Archive gets the files of the image as a tar archive, if it is set, and is closed then.
	Archive io.WriteCloser
	// Secrets are contents that steps may mount as files, by their names. They are in no layer.
	Secrets map[string][]byte
	// Remember stores with the pushed image what the next build needs to take its layers over.
	Remember bool
	// Credentials gives the user and the password for a registry; empty: none. push is set once the image is made. The default registry is asked
	// for by the name of its server.
	Credentials func(host string, push bool) (user, password string)
	// Out is where progress is written to.
	Out io.Writer
	// Verbose shows the engine's own steps too.
	Verbose bool
}

// PushError says that the image was made and not pushed.
type PushError struct{ Cause error }

// Error says why.
func (e *PushError) Error() string { return fmt.Sprintf("push image: %v", e.Cause) }

// Unwrap returns the cause.
func (e *PushError) Unwrap() error { return e.Cause }

// Run builds the image and returns the digest of what was pushed. Errors are those of Build, as they are, and PushError.
func (e *Engine) Run(ctx context.Context, job Job) (digest string, err error) {
	options := client.SolveOpt{LocalMounts: map[string]fsutil.FS{}}
	for name, dir := range job.Folders {
		if options.LocalMounts[name], err = fsutil.NewFS(dir); err != nil {
			return "", fmt.Errorf("read directory: %w", err)
		}
	}
	var built atomic.Bool
	options.Session = []session.Attachable{
		&credentials{of: func(host string) (string, string) { return job.Credentials(host, built.Load()) }},
		secretsprovider.FromMap(job.Secrets),
	}
	if job.Push != "" {
		options.Exports = []client.ExportEntry{{Type: client.ExporterImage, Attrs: map[string]string{
			string(exptypes.OptKeyName): job.Push, string(exptypes.OptKeyPush): "true", string(exptypes.OptKeyUnpack): "false",
		}}}
	}
	if job.Archive != nil {
		options.Exports = append(options.Exports, client.ExportEntry{
			Type: client.ExporterTar, Output: func(map[string]string) (io.WriteCloser, error) { return job.Archive, nil },
		})
	}
	if job.Push != "" && job.Remember {
		options.CacheExports = []client.CacheOptionsEntry{{Type: "inline"}}
	}
	var failed error
	build := func(ctx context.Context, c gateway.Client) (*gateway.Result, error) {
		result, err := job.Build(ctx, c)
		failed = err
		built.Store(err == nil)
		return result, err
	}
	status, printed := make(chan *client.SolveStatus), make(chan struct{})
	go func() {
		defer close(printed)
		printer{out: job.Out, verbose: job.Verbose}.print(status)
	}()
	response, err := e.client.Build(ctx, options, "", build, status)
	<-printed
	switch {
	case failed != nil:
		return "", failed
	case err != nil && built.Load():
		return "", &PushError{err}
	case err != nil:
		return "", err
	}
	return response.ExporterResponse[exptypes.ExporterImageDigestKey], nil
}
