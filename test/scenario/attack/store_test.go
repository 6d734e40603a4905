package attack

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// secretive contains objects with secrets. The word "treasure" marks the values that must stay
// secret.
const secretive = `
apiVersion: v1
kind: Secret
metadata: {name: box}
stringData: {where: treasure-in-a-secret}
---
apiVersion: oauth.openshift.io/v1
kind: OAuthClient
metadata: {name: %[1]s}
secret: treasure-of-a-client
redirectURIs: ["https://%[1]s.example.com/"]
grantMethod: prompt
---
apiVersion: oauth.openshift.io/v1
kind: OAuthAuthorizeToken
metadata: {name: "sha256~qjNVNz3h2KgDfKzNTP4qOWVCaMnq0WwKGhTSIaW6pXk"}
clientName: %[1]s
userName: nobody
userUID: "1"
redirectURI: "https://%[1]s.example.com/"
state: treasure-in-a-code
scopes: ["user:info"]
expiresIn: 300
`

func TestThiefOfDiskCannotReadSecrets(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(fmt.Sprintf(secretive, c.Namespace))
	c.OC("create", "configmap", "map", "--from-literal=where=plainly-on-the-disk")
	t.Cleanup(func() { c.OC("delete", "oauthclient", c.Namespace) })
	onDisk := func(text string) (exists bool) {
		err := filepath.WalkDir(c.Path("etcd"), func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			content, err := os.ReadFile(path)
			exists = exists || bytes.Contains(content, []byte(text))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return exists
	}
	if !onDisk("plainly-on-the-disk") {
		t.Error("the config map is not in the files of the store: the test reads the wrong files")
	}
	for _, secret := range []string{"treasure-in-a-secret", "treasure-of-a-client", "treasure-in-a-code"} {
		if onDisk(secret) {
			t.Errorf("the files of the store contain %s", secret)
		}
	}
}

// line contains the fields of an audit log entry that these tests read.
type line struct {
	Level, Verb string
	ObjectRef   struct{ Resource, Name, Subresource string }

	ImpersonatedUser struct{ Username string }

	RequestObject, ResponseObject json.RawMessage
}

func TestChangesOfRightsAreAudited(t *testing.T) {
	s := tenants(t)
	binding := `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"accomplice"},
		"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"view"},"subjects":[{"kind":"User","name":"eve","apiGroup":"rbac.authorization.k8s.io"}]}`
	s.mallory.May("POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/"+s.evil+"/rolebindings", binding)
	s.mallory.May("POST", kit.CorePath(s.evil, "secrets"), `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"audited"},"stringData":{"where":"treasure-of-mallory"}}`)
	s.mallory.May("POST", kit.CorePath(s.evil, "serviceaccounts/default/token"), `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}`)
	find := func(resource, name string) (l line, err error) {
		content, err := os.ReadFile(s.Path("log", "audit.log"))
		if err != nil {
			return l, err
		}
		for text := range strings.Lines(string(content)) {
			if err := json.Unmarshal([]byte(text), &l); err != nil {
				return l, fmt.Errorf("read line: %w", err) // this entry is incomplete
			}
			if l.Verb == "create" && strings.TrimSuffix(l.ObjectRef.Resource+"/"+l.ObjectRef.Subresource, "/") == resource && l.ObjectRef.Name == name && strings.Contains(text, s.evil) {
				return l, nil
			}
			l = line{}
		}
		return l, fmt.Errorf("the audit log has no line of %s %s", resource, name)
	}
	for _, want := range []struct {
		resource, name, level string
		body                  string
	}{
		{"rolebindings", "accomplice", "Request", "eve"},
		{"secrets", "audited", "Metadata", ""},
		{"serviceaccounts/token", "default", "Metadata", ""},
	} {
		var got line
		s.WaitFor("the line of "+want.resource, func(context.Context) (err error) {
			got, err = find(want.resource, want.name)
			return err
		})
		if got.Level != want.level || got.ImpersonatedUser.Username != "mallory" ||
			(len(got.RequestObject) > 0) != (want.body != "") || !strings.Contains(string(got.RequestObject), want.body) || len(got.ResponseObject) > 0 {
			t.Errorf("%s: the audit log has %+v, %s", want.resource, got, got.RequestObject)
		}
	}
	content, err := os.ReadFile(s.Path("log", "audit.log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"treasure-of-mallory", "dHJlYXN1cmUtb2YtbWFsbG9yeQ"} {
		if bytes.Contains(content, []byte(secret)) {
			t.Errorf("the audit log contains %s", secret)
		}
	}
	if info, err := os.Stat(s.Path("log", "audit.log")); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("the audit log has mode %v, %v", info.Mode(), err)
	}
}

func TestReaderOfLogsCannotLogIn(t *testing.T) {
	c := kit.Shared(t)
	secret := c.DeveloperPassword()
	result := c.Slipway("up")
	if output := result.Stdout + result.Stderr; strings.Contains(output, secret) || !strings.Contains(output, "developer.password") {
		t.Errorf("without a terminal, up prints:\n%s", output)
	}
	logs, err := filepath.Glob(c.Path("log", "*"))
	if err != nil || len(logs) < 4 {
		t.Fatalf("logs %v, %v", logs, err)
	}
	for _, log := range logs {
		content, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(content, []byte(secret)) {
			t.Errorf("%s contains the password", log)
		}
	}
}
