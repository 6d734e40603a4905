package kube

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
)

// auditLog is a backend that stores events as JSON.
type auditLog struct {
	audit.Backend
	lines []string
}

func (l *auditLog) ProcessEvents(events ...*auditinternal.Event) bool {
	for _, event := range events {
		line, err := json.Marshal(event)
		if err != nil {
			return false
		}
		l.lines = append(l.lines, string(line))
	}
	return true
}

func TestAuditLogDoesNotContainTokens(t *testing.T) {
	const token = "plain-token-of-an-administrator"
	const base = "/apis/oauth.openshift.io/v1/"
	event := func(resource, name, uri string) *auditinternal.Event {
		code := int32(http.StatusOK)
		if name == "sha256~unknown" {
			code = http.StatusNotFound
		}
		return &auditinternal.Event{
			RequestURI:     uri,
			ObjectRef:      &auditinternal.ObjectReference{APIGroup: "oauth.openshift.io", APIVersion: "v1", Resource: resource, Name: name},
			RequestObject:  &runtime.Unknown{Raw: []byte(`"` + name + `"`)},
			ResponseStatus: &metav1.Status{Code: code, Message: resource + ` "` + name + `" not found`, Details: &metav1.StatusDetails{Name: name}},
			Annotations:    map[string]string{"a": name},
		}
	}
	for _, tt := range []struct {
		name, resource, object, uri string
		want                        string // text in the line, which does not contain the token
	}{
		{"access token", "oauthaccesstokens", token, base + "oauthaccesstokens/" + token, base + "oauthaccesstokens/sha256~"},
		{"escaped name", "oauthaccesstokens", token, base + "oauthaccesstokens/%70lain-token-of-an-administrator", base + "oauthaccesstokens/sha256~"},
		{"field selector", "oauthauthorizetokens", token, base + "oauthauthorizetokens?fieldSelector=metadata.name%3D" + token, base + "oauthauthorizetokens/sha256~"},
		{"own token", "useroauthaccesstokens", token, base + "useroauthaccesstokens/" + token, base + "useroauthaccesstokens/sha256~"},
		{"hash", "oauthaccesstokens", "sha256~abc", base + "oauthaccesstokens/sha256~abc?x=y", base + "oauthaccesstokens/sha256~abc?x=y"},
		{"logout of OpenShift 3", "oauthaccesstokens", "sha256~unknown", base + "oauthaccesstokens/sha256~unknown", base + "oauthaccesstokens/sha256~"},
		{"list", "oauthaccesstokens", "", base + "oauthaccesstokens?limit=5", base + "oauthaccesstokens?limit=5"},
		{"another resource", "oauthclients", "console", base + "oauthclients/console", base + "oauthclients/console"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			log, request := &auditLog{}, event(tt.resource, tt.object, tt.uri)
			if !hideTokens(log).ProcessEvents(&auditinternal.Event{RequestURI: "/healthz"}, request) || len(log.lines) != 2 {
				t.Fatalf("the log contains %q", log.lines)
			}
			line := log.lines[1]
			if strings.Contains(line, token) || strings.Contains(line, "lain-token") || strings.Contains(line, "~unknown") || !strings.Contains(line, tt.want) {
				t.Errorf("the log contains %s", line)
			}
			if request.ObjectRef.Name != tt.object || request.RequestURI != tt.uri {
				t.Errorf("the event has changed: %+v", request)
			}
		})
	}
	if hideTokens(nil) != nil {
		t.Error("without an audit log, the backend is not nil")
	}
}
