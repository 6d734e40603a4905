// Package detect determines what a Git repository contains, so that the web console can offer a
// suitable builder image. It reads the repository on behalf of a user, so the rules for connections
// to user-specified servers apply.
package detect

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	buildv1 "github.com/openshift/api/build/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/slipway-platform/slipway/apiserver"
	"github.com/slipway-platform/slipway/internal/gitfiles"
	"github.com/slipway-platform/slipway/internal/language"
	"github.com/slipway-platform/slipway/internal/outbound"
)

// Path is the API server's path for a Source. Query parameters: namespace (the project in which the
// user wants to build), uri, ref and dir.
const Path = "/slipway/source"

const (
	// timeout is the maximum time for reading a repository.
	timeout = 20 * time.Second
	// maxReads is the maximum number of repositories that are read at the same time. Each user can
	// read one repository at a time.
	maxReads = 4
	// retrySeconds is the delay in seconds after which a client can retry a request.
	retrySeconds = 1
)

// Source describes the content of a directory in a repository.
type Source struct {
	// Language is the programming language, or "". It has the same spelling as in the annotation
	// "supports" of builder images.
	Language string `json:"language"`
	// Dockerfile reports whether the directory contains a file named Dockerfile.
	Dockerfile bool `json:"dockerfile"`
}

// Feature returns a feature for registration in the API server. It serves a Source at Path, and
// connects to repository servers with dialer.
func Feature(dialer *outbound.Dialer) apiserver.Feature {
	return apiserver.Feature{Hooks: func(deps apiserver.Deps) (apiserver.Hooks, error) {
		v := &view{authorizer: deps.Authorizer, transport: dialer.Transport(false), reading: map[string]bool{}}
		return apiserver.Hooks{Handlers: []apiserver.Handler{apiserver.View(Path, timeout, http.StatusBadGateway, v.read)}}, nil
	}}
}

type view struct {
	authorizer authorizer.Authorizer
	transport  http.RoundTripper

	mu sync.Mutex
	// reading contains the users with a read in progress. It enforces one read per user.
	reading map[string]bool
}

// read reads the directory that a request specifies.
func (v *view) read(ctx context.Context, r *http.Request) (any, error) {
	query := r.URL.Query()
	who, ok := request.UserFrom(ctx)
	if !ok {
		return nil, errors.New("the request has no user")
	}
	if err := v.authorize(ctx, who, query.Get("namespace")); err != nil {
		return nil, err
	}
	done, err := v.begin(who.GetName())
	if err != nil {
		return nil, err
	}
	defer done()
	names, err := gitfiles.List(ctx, v.transport, gitfiles.Place{URL: query.Get("uri"), Ref: query.Get("ref"), Dir: query.Get("dir")})
	if err != nil {
		return nil, fmt.Errorf("read the repository: %w", err)
	}
	return Source{Language: language.Of(names), Dockerfile: slices.Contains(names, "Dockerfile")}, nil
}

// authorize checks that a user is allowed to create a build configuration, because the resulting
// builds could read the same content.
func (v *view) authorize(ctx context.Context, who user.Info, namespace string) error {
	const resource = "buildconfigs"
	decision, _, err := v.authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: who, Verb: "create", Namespace: namespace, APIGroup: buildv1.GroupName, APIVersion: buildv1.GroupVersion.Version, Resource: resource, ResourceRequest: true,
	})
	if err != nil && decision != authorizer.DecisionAllow {
		return fmt.Errorf("check rights: %w", err)
	}
	if decision != authorizer.DecisionAllow {
		return apierrors.NewForbidden(buildv1.Resource(resource), "", fmt.Errorf("user %q cannot create build configurations in project %q", who.GetName(), namespace))
	}
	return nil
}

// begin registers a read for a user. The caller must call done when the read has finished.
func (v *view) begin(name string) (done func(), err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.reading[name] || len(v.reading) >= maxReads {
		return nil, apierrors.NewTooManyRequests("other repositories are being read; try again later", retrySeconds)
	}
	v.reading[name] = true
	return func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		delete(v.reading, name)
	}, nil
}
