package image

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/containerd/containerd/v2/core/remotes/docker"
	"github.com/distribution/reference"
	"google.golang.org/grpc/codes"

	"github.com/slipway-platform/slipway/internal/signaturestore"
	"github.com/slipway-platform/slipway/node/image/policy"
)

// maxSignatures is the maximum total size of an image's signatures, in bytes.
const maxSignatures = 4 << 20

// checkPolicy returns an error unless the node's signature policy allows an image. It reads the
// policy file on each pull.
func (p *puller) checkPolicy(ctx context.Context, ref reference.Named, digest string, credentials credentialsFunc) error {
	rules, err := policy.Read(p.policyFile)
	if err == nil {
		err = rules.Allow(ref, digest, func() ([][]byte, error) { return p.signatures(ctx, ref, digest, credentials) })
	}
	if err == nil {
		return nil
	}
	slog.WarnContext(ctx, "signature policy rejects image", "image", ref.String(), "digest", digest, "policy", p.policyFile, "error", err)
	return &rejection{codes.PermissionDenied, "the signature policy of the node rejects the image; to see the reason, run `slipway logs node` on the node"}
}

// signatures reads an image's signatures from its signature store or, if no store is configured,
// from its registry.
func (p *puller) signatures(ctx context.Context, ref reference.Named, digest string, credentials credentialsFunc) ([][]byte, error) {
	stores, err := signaturestore.Read(p.storeDir)
	if err != nil {
		return nil, err
	}
	address := stores.Address(reference.Domain(ref), reference.Path(ref), digest)
	all, err := signaturestore.Fetch(ctx, p.hosts.dialer, address)
	if err != nil || len(all) > 0 {
		return all, err
	}
	return p.registrySignatures(ctx, ref, digest, credentials)
}

// registrySignatures reads an image's signatures from its registry, or from a mirror that has
// signatures. A registry without OpenShift 3's signature API provides none.
func (p *puller) registrySignatures(ctx context.Context, ref reference.Named, digest string, credentials credentialsFunc) ([][]byte, error) {
	servers, err := p.hosts.of(ctx, credentials)(reference.Domain(ref))
	if err != nil {
		return nil, err
	}
	ctx = docker.ContextWithAppendPullRepositoryScope(withBodyLimit(ctx, maxSignatures), reference.Path(ref))
	for _, server := range servers {
		all, readErr := readSignatures(ctx, server, reference.Path(ref), digest)
		if len(all) > 0 {
			return all, nil
		}
		err = readErr
	}
	return nil, err
}

// readSignatures reads signatures from one server.
func readSignatures(ctx context.Context, server docker.RegistryHost, repository, digest string) (all [][]byte, err error) {
	address := fmt.Sprintf("%s://%s/extensions/v2/%s/signatures/%s", server.Scheme, server.Host, repository, digest)
	response, err := get(ctx, server, address)
	if err != nil {
		return nil, fmt.Errorf("read signatures: %w", err)
	}
	defer func() { _ = response.Body.Close() }() // a close error is harmless after reading
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return nil, nil
	default:
		return nil, fmt.Errorf("read signatures: the server responds with status %d", response.StatusCode)
	}
	var list struct {
		Signatures []struct {
			Version int    `json:"schemaVersion"`
			Type    string `json:"type"`
			Content []byte `json:"content"`
		} `json:"signatures"`
	}
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		return nil, fmt.Errorf("decode signatures: %w", err)
	}
	for _, signature := range list.Signatures {
		if signature.Version == 2 && signature.Type == "atomic" {
			all = append(all, signature.Content)
		}
	}
	return all, nil
}

// get sends a request. If the server requires credentials, get retries the request with them.
func get(ctx context.Context, server docker.RegistryHost, address string) (*http.Response, error) {
	client := server.Client
	if client == nil {
		client = http.DefaultClient
	}
	var previous []*http.Response
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return nil, err
		}
		if err := server.Authorizer.Authorize(ctx, request); err != nil {
			return nil, err
		}
		response, err := client.Do(request)
		if err != nil || response.StatusCode != http.StatusUnauthorized || len(previous) > 0 {
			return response, err
		}
		_ = response.Body.Close() // a close error is harmless after reading
		previous = append(previous, response)
		if err := server.Authorizer.AddResponses(ctx, previous); err != nil {
			return nil, err
		}
	}
}
