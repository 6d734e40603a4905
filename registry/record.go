package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/distribution/distribution/v3/registry/api/errcode"
	v2 "github.com/distribution/distribution/v3/registry/api/v2"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/slipway-platform/slipway/apigroup/image/record"
	"github.com/slipway-platform/slipway/apiserver"
)

// serveRecorded serves a request. If the request has credentials, the API server's audit log
// records it. An invalid token does not delay other requests from the same address, because a
// node's container runtime pulls for all projects. A delay is not necessary, because no client can
// guess a token: it has 256 random bits or a signature.
func (s *server) serveRecorded(w http.ResponseWriter, r *http.Request) {
	c := callerOf(r)
	if !c.hasCredentials {
		s.serve(w, r)
		return
	}
	entry := apiserver.Recorded{Token: c.token, URL: shownURL(r.URL), Info: s.describe(r)}
	s.Recorder.Serve(w, r, entry, http.HandlerFunc(s.serve), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == tokenPath {
			w.Header().Set("WWW-Authenticate", `Basic realm="openshift"`)
			serveError(w, errcode.ErrorCodeUnauthorized.WithMessage(errUnknown.Error()))
			return
		}
		challenge(w, r, errcode.ErrorCodeUnauthorized.WithMessage(errUnknown.Error()))
	}))
}

// id returns an identifier of the caller that does not disclose the token.
func (c caller) id() string {
	hash := sha256.Sum256([]byte(c.token))
	return hex.EncodeToString(hash[:])
}

// retryAfter is the delay, in seconds, after which a rejected client can retry.
const retryAfter = 30

// serveBusy sends a response that makes the client retry later.
func serveBusy(w http.ResponseWriter, message string) {
	w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
	serveError(w, errcode.ErrorCodeTooManyRequests.WithMessage(message))
}

// shownURL returns the URL to record in the audit log. It omits the upload state, which is long.
func shownURL(address *url.URL) *url.URL {
	query := address.Query()
	query.Del("_state")
	return &url.URL{Path: address.Path, RawPath: address.RawPath, RawQuery: query.Encode()}
}

// describe describes a request in terms of API resources. For example, a push is an update of an
// image stream's layers. For a request without an image stream, it returns only the path and the
// method.
func (s *server) describe(r *http.Request) *request.RequestInfo {
	info := &request.RequestInfo{Path: r.URL.Path, Verb: strings.ToLower(r.Method)}
	resource := func(verb, namespace, resource, subresource, name string) *request.RequestInfo {
		info.IsResourceRequest, info.APIPrefix, info.APIGroup, info.APIVersion = true, "apis", "image.openshift.io", "v1"
		info.Verb, info.Namespace, info.Resource, info.Subresource, info.Name = verb, namespace, resource, subresource, name
		return info
	}
	switch {
	case r.URL.Path == record.GarbagePath:
		return resource("deletecollection", "", "images", "", "")
	case strings.HasPrefix(r.URL.Path, adminBlobsPath):
		return resource("delete", "", "images", "", strings.TrimPrefix(r.URL.Path, adminBlobsPath))
	case strings.HasPrefix(r.URL.Path, signaturesPath):
		parts := strings.Split(strings.TrimPrefix(r.URL.Path, signaturesPath), "/")
		if len(parts) == 4 {
			return resource(verbOf(r), parts[0], "imagestreams", "signatures", parts[1])
		}
	case strings.HasPrefix(r.URL.Path, "/v2/"):
		t, err := targetOf(r)
		switch {
		case err == nil && t.route == v2.RouteNameCatalog:
			return resource("list", "", "imagestreams", "", "")
		case err == nil && r.Method == http.MethodDelete && t.isTag():
			return resource("delete", t.namespace, "imagestreamtags", "", t.stream+":"+t.reference)
		case err == nil:
			return resource(verbOf(r), t.namespace, "imagestreams", "layers", t.stream)
		}
	}
	return info
}

// verbOf returns the API verb for a request's method.
func verbOf(r *http.Request) string {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		return "get"
	case http.MethodDelete:
		return "delete"
	}
	return "update"
}
