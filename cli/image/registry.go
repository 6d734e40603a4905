package image

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/apigroup/image/record"
)

// place specifies the registry's URL and how the client verifies its certificate.
type place struct {
	url, authority string
	insecure       bool
}

func (p *place) flags(flags *pflag.FlagSet) {
	flags.StringVar(&p.url, "registry-url", "", "Address of the cluster's registry, instead of the address in image streams.")
	flags.StringVar(&p.authority, "certificate-authority", "", "File with the certificate authority of the registry. The default is the authority of the API server.")
	flags.BoolVar(&p.insecure, "force-insecure", false, "Accept any certificate of the registry, and plain HTTP in --registry-url.")
}

// maxGarbage is the maximum size of the registry's response, in bytes.
const maxGarbage = 256 << 20

// requestFunc sends a garbage collection request to the registry at address. If --registry-url is
// set, it sends the request to that URL instead.
type requestFunc func(ctx context.Context, address string, request record.GarbageRequest) (record.Garbage, error)

// connect returns a function that sends garbage collection requests with the user's token.
func (p place) connect(config *rest.Config) (requestFunc, error) {
	unusable := func(err error) (requestFunc, error) {
		return func(context.Context, string, record.GarbageRequest) (record.Garbage, error) {
			return record.Garbage{}, err
		}, err
	}
	if config.BearerToken == "" && config.BearerTokenFile == "" {
		return unusable(errors.New("you must use a client config with a token: log in with oc login, or pass --token"))
	}
	toRegistry := rest.AnonymousClientConfig(config)
	toRegistry.BearerToken, toRegistry.BearerTokenFile = config.BearerToken, config.BearerTokenFile
	toRegistry.ServerName, toRegistry.Timeout = "", 0
	switch {
	case p.insecure:
		toRegistry.TLSClientConfig = rest.TLSClientConfig{Insecure: true}
	case p.authority != "":
		data, err := os.ReadFile(p.authority)
		if err != nil {
			return unusable(fmt.Errorf("read certificate authority: %w", err))
		}
		toRegistry.TLSClientConfig = rest.TLSClientConfig{CAData: data}
	}
	client, err := rest.HTTPClientFor(toRegistry)
	if err != nil {
		return unusable(err)
	}
	return func(ctx context.Context, address string, request record.GarbageRequest) (record.Garbage, error) {
		target, err := p.target(address)
		if err != nil {
			return record.Garbage{}, err
		}
		return ask(ctx, client, target, request)
	}, nil
}

// target returns the URL for garbage collection requests. If --force-insecure is not set, the URL
// must use TLS.
func (p place) target(address string) (string, error) {
	if p.url != "" {
		address = p.url
	}
	if address == "" {
		return "", errors.New("no image stream contains the address of the cluster's registry: set --registry-url")
	}
	if !strings.Contains(address, "://") {
		address = "https://" + address
	}
	parsed, err := url.Parse(address)
	if err != nil || parsed.Host == "" || parsed.Scheme != "https" && parsed.Scheme != "http" {
		return "", fmt.Errorf("--registry-url %q must be the address of a registry, such as https://registry.example.com", address)
	}
	if parsed.Scheme == "http" && !p.insecure {
		return "", fmt.Errorf("--registry-url %q is not encrypted; to send your token there anyway, use --force-insecure", address)
	}
	return parsed.Scheme + "://" + parsed.Host + record.GarbagePath, nil
}

func ask(ctx context.Context, client *http.Client, target string, desired record.GarbageRequest) (removed record.Garbage, err error) {
	body, err := json.Marshal(desired)
	if err != nil {
		return removed, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		return removed, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return removed, fmt.Errorf("connect to the registry: %w; to use another address, set --registry-url", err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, maxGarbage))
	if err != nil {
		return removed, fmt.Errorf("read the registry's response: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return removed, fmt.Errorf("prune the registry: %s: %s", response.Status, bytes.TrimSpace(content[:min(len(content), 1000)]))
	}
	if err := json.Unmarshal(content, &removed); err != nil {
		return removed, fmt.Errorf("read the registry's response: %w", err)
	}
	return removed, nil
}
