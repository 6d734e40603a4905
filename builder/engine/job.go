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

// Job describes an image to build.
type Job struct {
	// Build builds the image with solve requests.
	Build gateway.BuildFunc
	// Dirs maps names to the local directories that Build can read.
	Dirs map[string]string
	// Push is the image reference to push to. If it is empty, the image is not pushed.
	Push string
	// Archive, if set, receives the image's files as a tar archive. Run closes it.
	Archive io.WriteCloser
	// Secrets maps secret IDs to the content of the secrets. Steps can mount the secrets, but
	// layers do not contain them.
	Secrets map[string][]byte
	// ExportCache adds cache metadata to the pushed image, so that the next build can reuse its
	// layers.
	ExportCache bool
	// Credentials returns the user name and password for a registry, or empty strings. push is true
	// after the image is built. For the default registry, host is the host name of its server.
	Credentials func(host string, push bool) (user, password string)
	// Out receives the build progress.
	Out io.Writer
	// Verbose includes the engine's internal steps in the progress.
	Verbose bool
}

// PushError means that the image was built, but not pushed.
type PushError struct{ Cause error }

// Error returns the cause.
func (e *PushError) Error() string { return fmt.Sprintf("push image: %v", e.Cause) }

// Unwrap returns the cause.
func (e *PushError) Unwrap() error { return e.Cause }

// Run builds the image and returns the digest of the pushed image. It returns Build's errors
// unchanged. A failed push is a PushError.
func (e *Engine) Run(ctx context.Context, job Job) (digest string, err error) {
	options := client.SolveOpt{LocalMounts: map[string]fsutil.FS{}}
	for name, dir := range job.Dirs {
		if options.LocalMounts[name], err = fsutil.NewFS(dir); err != nil {
			return "", fmt.Errorf("read directory: %w", err)
		}
	}
	var complete atomic.Bool
	options.Session = []session.Attachable{
		&credentials{lookup: func(host string) (string, string) { return job.Credentials(host, complete.Load()) }},
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
	if job.Push != "" && job.ExportCache {
		options.CacheExports = []client.CacheOptionsEntry{{Type: "inline"}}
	}
	var buildErr error
	build := func(ctx context.Context, c gateway.Client) (*gateway.Result, error) {
		result, err := job.Build(ctx, c)
		buildErr = err
		complete.Store(err == nil)
		return result, err
	}
	status, done := make(chan *client.SolveStatus), make(chan struct{})
	go func() {
		defer close(done)
		printer{out: job.Out, verbose: job.Verbose}.print(status)
	}()
	response, err := e.client.Build(ctx, options, "", build, status)
	<-done
	switch {
	case buildErr != nil:
		return "", buildErr
	case err != nil && complete.Load():
		return "", &PushError{err}
	case err != nil:
		return "", err
	}
	return response.ExporterResponse[exptypes.ExporterImageDigestKey], nil
}
