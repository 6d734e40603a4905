package kube

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"path"
	"slices"
	"strings"

	oauthv1 "github.com/openshift/api/oauth/v1"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
)

// hashPrefix is the prefix of token names that are hashes.
const hashPrefix = "sha256~"

// tokenHider replaces token names in audit events, because a name can be the token itself. The
// OAuth server uses the token's hash as the name, but if an administrator creates a token, the name
// is the token itself. OpenShift 3's `oc logout` also sends its token as a name. No token with this
// name exists, but the request is logged.
type tokenHider struct{ audit.Backend }

// hideTokens wraps an audit backend. It returns nil if backend is nil.
func hideTokens(backend audit.Backend) audit.Backend {
	if backend == nil {
		return nil
	}
	return tokenHider{backend}
}

// ProcessEvents implements audit.Sink. It does not change the events, because other backends
// receive them as well.
func (h tokenHider) ProcessEvents(events ...*auditinternal.Event) bool {
	if !slices.ContainsFunc(events, namesToken) {
		return h.Backend.ProcessEvents(events...)
	}
	redacted := slices.Clone(events)
	for i, event := range redacted {
		if namesToken(event) {
			redacted[i] = hideToken(event.DeepCopy())
		}
	}
	return h.Backend.ProcessEvents(redacted...)
}

// namesToken reports whether the name of an event's object can be a token.
func namesToken(event *auditinternal.Event) bool {
	ref := event.ObjectRef
	if ref == nil || ref.APIGroup != oauthv1.GroupName || ref.Name == "" {
		return false
	}
	isFound := event.ResponseStatus == nil || event.ResponseStatus.Code != http.StatusNotFound
	return (!isFound || !strings.HasPrefix(ref.Name, hashPrefix)) &&
		slices.Contains([]string{"oauthaccesstokens", "oauthauthorizetokens", "useroauthaccesstokens"}, ref.Resource)
}

// hideToken replaces the name with its hash. It removes the request and response bodies, because
// they also contain the name.
func hideToken(event *auditinternal.Event) *auditinternal.Event {
	ref, sum := event.ObjectRef, sha256.Sum256([]byte(event.ObjectRef.Name))
	name, hash := ref.Name, hashPrefix+base64.RawURLEncoding.EncodeToString(sum[:])
	ref.Name = hash
	event.RequestURI = path.Join("/apis", ref.APIGroup, ref.APIVersion, ref.Resource, hash)
	event.RequestObject, event.ResponseObject = nil, nil
	if status := event.ResponseStatus; status != nil {
		status.Message = strings.ReplaceAll(status.Message, name, hash)
		status.Details = nil
	}
	for key, value := range event.Annotations {
		event.Annotations[key] = strings.ReplaceAll(value, name, hash)
	}
	return event
}
