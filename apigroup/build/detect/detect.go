// Package detect determines what a Git repository contains, so that the web console can offer a
// suitable builder image. It reads the repository on behalf of a user, so the rules for connections
// to user-specified servers apply.
package detect

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	buildv1 "github.com/openshift/api/build/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes"

	"github.com/slipway-platform/slipway/apiserver"
	"github.com/slipway-platform/slipway/internal/gitfiles"
	"github.com/slipway-platform/slipway/internal/language"
	"github.com/slipway-platform/slipway/internal/outbound"
)

// Path is the API server's path for a Source. Query parameters: namespace (the project in which the
// user wants to build), uri, ref, dir and secret (the source secret in the project, for a private
// repository).
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
	// Language is the programming language, or "". It is spelled as in the "supports" annotation of
	// builder images.
	Language string `json:"language"`
	// Dockerfile indicates whether the directory contains a file named Dockerfile.
	Dockerfile bool `json:"dockerfile"`
}

// Feature returns a feature that can be registered with the API server. The feature serves a Source
// at Path, and connects to repository servers with dialer.
func Feature(dialer *outbound.Dialer) apiserver.Feature {
	return apiserver.Feature{Hooks: func(deps apiserver.Deps) (apiserver.Hooks, error) {
		v := &view{authorizer: deps.Authorizer, kube: deps.Kube, dialer: dialer, reading: map[string]bool{}}
		return apiserver.Hooks{Handlers: []apiserver.Handler{apiserver.View(Path, timeout, http.StatusBadGateway, v.read)}}, nil
	}}
}

type view struct {
	authorizer authorizer.Authorizer
	kube       kubernetes.Interface
	dialer     *outbound.Dialer

	mu sync.Mutex
	// reading lists the users with a read in progress. It enforces one read per user.
	reading map[string]bool
}

// read returns the Source of the directory that a request specifies.
func (v *view) read(ctx context.Context, r *http.Request) (any, error) {
	query := r.URL.Query()
	who, ok := request.UserFrom(ctx)
	if !ok {
		return nil, errors.New("the request has no user")
	}
	place := gitfiles.Place{URL: query.Get("uri"), Ref: query.Get("ref"), Dir: query.Get("dir")}
	project := query.Get("namespace")
	// A user with this permission can read the same content in a build.
	err := v.authorize(ctx, who, authorizer.AttributesRecord{
		Verb: "create", Namespace: project, APIGroup: buildv1.GroupName, APIVersion: buildv1.GroupVersion.Version, Resource: "buildconfigs",
	})
	if err != nil {
		return nil, err
	}
	trusted := &tls.Config{}
	if name := query.Get("secret"); name != "" {
		if place.Login, trusted.RootCAs, err = v.credentials(ctx, who, project, name); err != nil {
			return nil, err
		}
	}
	done, err := v.begin(who.GetName())
	if err != nil {
		return nil, err
	}
	defer done()
	transport := v.dialer.TransportTLS(trusted)
	defer transport.CloseIdleConnections()
	names, err := gitfiles.List(ctx, transport, place)
	if err != nil {
		return nil, fmt.Errorf("read the repository: %w", err)
	}
	return Source{Language: language.Of(names), Dockerfile: slices.Contains(names, "Dockerfile")}, nil
}

// authorize checks that a user is allowed to perform an action in a project.
func (v *view) authorize(ctx context.Context, who user.Info, action authorizer.AttributesRecord) error {
	action.User, action.ResourceRequest = who, true
	decision, _, err := v.authorizer.Authorize(ctx, action)
	if err != nil && decision != authorizer.DecisionAllow {
		return fmt.Errorf("check rights: %w", err)
	}
	if decision != authorizer.DecisionAllow {
		resource := schema.GroupResource{Group: action.APIGroup, Resource: action.Resource}
		return apierrors.NewForbidden(resource, action.Name, fmt.Errorf("user %q cannot %s %s in project %q", who.GetName(), action.Verb, action.Resource, action.Namespace))
	}
	return nil
}

// credentials returns the login in a source secret that a user can read, and the certificate
// authorities that verify the server. The login is nil if the secret contains neither a user name
// nor a password. The authorities are nil if the secret does not contain ca.crt.
func (v *view) credentials(ctx context.Context, who user.Info, project, name string) (*url.Userinfo, *x509.CertPool, error) {
	if err := v.authorize(ctx, who, authorizer.AttributesRecord{Verb: "get", Namespace: project, APIVersion: "v1", Resource: "secrets", Name: name}); err != nil {
		return nil, nil, err
	}
	secret, err := v.kube.CoreV1().Secrets(project).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, nil, err
	}
	value := func(key string) string { return strings.TrimRight(string(secret.Data[key]), "\r\n") }
	var authorities *x509.CertPool
	if pem := secret.Data["ca.crt"]; len(pem) > 0 {
		if authorities, err = x509.SystemCertPool(); err != nil {
			authorities = x509.NewCertPool()
		}
		if !authorities.AppendCertsFromPEM(pem) {
			return nil, nil, apierrors.NewBadRequest(fmt.Sprintf("ca.crt in secret %q contains no certificate", name))
		}
	}
	// As in builds, a token is used as the password, and servers ignore the user name.
	login, password := value(corev1.BasicAuthUsernameKey), cmp.Or(value(corev1.BasicAuthPasswordKey), value("token"))
	if login == "" && password == "" {
		return nil, authorities, nil
	}
	return url.UserPassword(cmp.Or(login, "token"), password), authorities, nil
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
