// Package content implements `oc image` with the subcommands info, mirror, append and extract. They
// connect directly to registries and do not require a cluster.
//
// The flags and output follow OpenShift Container Platform 3.11's client. The commands stream
// layers directly between registries, or from registries to files.
package content

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"

	"github.com/slipway-platform/slipway/internal/registryclient"
)

// New returns the `oc image` command.
func New(streams genericiooptions.IOStreams) *cobra.Command {
	command := &cobra.Command{
		Use: "image", Short: "Useful commands for managing images",
		Long: `Inspect images in registries, copy them, add layers to them and extract files from them.

These commands connect to registries directly and need no cluster. They use the credentials of docker, podman and oc registry login.`,
		Run: util.DefaultSubCommandRun(streams.ErrOut),
	}
	command.AddCommand(newInfo(streams), newMirror(streams), newAppend(streams), newExtract(streams))
	return command
}

// access contains the flags for registry connections.
type access struct {
	credentials string
	insecure    bool
	jobs        int
	// force means that content is uploaded even if the registry already contains it. alone means
	// that layers are not mounted from other repositories.
	force, alone bool
}

func (a *access) addFlags(flags *pflag.FlagSet) {
	flags.StringVarP(&a.credentials, "registry-config", "a", "", "File with registry credentials, instead of the credentials of docker and podman.")
	flags.BoolVar(&a.insecure, "insecure", false, "Accept any registry certificate, and plain HTTP.")
	flags.IntVar(&a.jobs, "max-per-registry", 6, "Maximum number of concurrent requests to a registry.")
}

func (a *access) client() registryclient.Client { return registryclient.Client{Insecure: a.insecure} }

// registries reads images from registries and writes images to them.
type registries struct {
	names   []name.Option
	options []remote.Option
	// progress reports the progress of uploads.
	progress *progress
}

// open validates the flags and returns a client that reports uploads to out.
func (a *access) open(ctx context.Context, out io.Writer) (*registries, error) {
	if a.jobs < 1 {
		return nil, fmt.Errorf("--max-per-registry %d: must be at least 1", a.jobs)
	}
	client := a.client()
	var keychain authn.Keychain = authn.DefaultKeychain
	if a.credentials != "" {
		chain, err := registryclient.KeychainOfFile(a.credentials)
		if err != nil {
			return nil, err
		}
		keychain = chain
	}
	progress := newProgress(out)
	return &registries{names: client.Names(), progress: progress, options: []remote.Option{
		remote.WithContext(ctx), remote.WithAuthFromKeychain(keychain), remote.WithJobs(a.jobs),
		remote.WithTransport(&forceTransport{progressTransport{client.Carrier(), progress}, a.force, a.alone}),
	}}, nil
}

// get fetches the manifest for a reference.
func (r *registries) get(reference string) (*remote.Descriptor, name.Reference, error) {
	parsed, err := name.ParseReference(reference, r.names...)
	if err != nil {
		return nil, nil, err
	}
	desc, err := remote.Get(parsed, r.options...)
	if err != nil {
		return nil, nil, explain("read image", reference, err)
	}
	return desc, parsed, nil
}

// explain adds the failed operation (verb and subject) and a remedy to an error from a registry.
func explain(verb, subject string, err error) error {
	switch registryclient.Status(err) {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("%s %q: access might be denied: log in to the registry (oc registry login, docker login), or set --registry-config: %w", verb, subject, err)
	case http.StatusNotFound:
		return fmt.Errorf("%s %q: the registry does not have the image: %w", verb, subject, err)
	}
	return fmt.Errorf("%s %q: %w", verb, subject, err)
}

// forceTransport is a transport for registries. If force is true, it responds with 404 Not Found to
// every HEAD request for a blob or manifest. If alone or force is true, it replaces requests that
// mount a layer with uploads.
type forceTransport struct {
	http.RoundTripper
	force, alone bool
}

// RoundTrip sends the request, or responds to it as described for forceTransport.
func (i *forceTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if i.force && request.Method == http.MethodHead {
		return &http.Response{
			Status: "404 Not Found", StatusCode: http.StatusNotFound, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{}, Body: http.NoBody, Request: request,
		}, nil
	}
	query := request.URL.Query()
	if (i.force || i.alone) && request.Method == http.MethodPost && query.Has("mount") {
		request = request.Clone(request.Context())
		query.Del("mount")
		query.Del("from")
		request.URL.RawQuery = query.Encode()
	}
	return i.RoundTripper.RoundTrip(request)
}
