package kit

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// User sends requests with one user's permissions. Its methods fail the user's test on errors.
type User struct {
	// Name is the name by which the API server identifies the user. It is empty for the
	// administrator.
	Name string
	// Rest sends requests to the API server as the user.
	Rest rest.Interface

	t testing.TB
}

// User returns a user who has logged in. groups are added to the two virtual groups of logged-in
// users.
func (c *Cluster) User(name string, groups ...string) *User {
	c.t.Helper()
	return c.Impersonate(rest.ImpersonationConfig{
		UserName: name, Groups: append([]string{"system:authenticated", "system:authenticated:oauth"}, groups...),
	})
}

// DeveloperPassword returns the password of the user "developer", which the cluster's first start
// generates.
func (c *Cluster) DeveloperPassword() string {
	c.t.Helper()
	content, err := os.ReadFile(c.Path("developer.password"))
	if err != nil {
		c.t.Fatal(err)
	}
	return strings.TrimSpace(string(content))
}

// ServiceAccount returns a user with the name and groups of a service account.
func (c *Cluster) ServiceAccount(namespace, name string) *User {
	c.t.Helper()
	return c.Impersonate(rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + namespace + ":" + name,
		Groups:   []string{"system:authenticated", "system:serviceaccounts", "system:serviceaccounts:" + namespace},
	})
}

// Administrator returns the cluster's administrator.
func (c *Cluster) Administrator() *User {
	c.t.Helper()
	return c.Impersonate(rest.ImpersonationConfig{})
}

// Anonymous returns a user without credentials.
func (c *Cluster) Anonymous() *User {
	c.t.Helper()
	config := rest.AnonymousClientConfig(c.Config)
	config.Dial = c.Dial
	return NewUser(c.t, config, rest.ImpersonationConfig{})
}

// Impersonate returns a user whose requests the administrator sends with impersonation.
func (c *Cluster) Impersonate(identity rest.ImpersonationConfig) *User {
	c.t.Helper()
	return NewUser(c.t, c.Config, identity)
}

// NewUser returns a user that connects with the given client configuration. If identity is not
// empty, the user's requests impersonate it.
func NewUser(t testing.TB, connection *rest.Config, identity rest.ImpersonationConfig) *User {
	t.Helper()
	config := rest.CopyConfig(connection)
	config.Impersonate, config.QPS = identity, -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &User{Name: identity.UserName, Rest: client.Discovery().RESTClient(), t: t}
}

// Try sends a request and returns the response body. The request body is YAML or JSON; a PATCH is a
// JSON merge patch. A path that ends with "?" requests a dry run.
func (u *User) Try(verb, path, body string) (string, error) {
	path, dryRun := strings.CutSuffix(path, "?")
	request := u.Rest.Verb(verb).AbsPath(path)
	if dryRun {
		request = request.Param("dryRun", metav1.DryRunAll)
	}
	switch {
	case verb == "PATCH":
		request = request.SetHeader("Content-Type", "application/merge-patch+json").Body([]byte(body))
	case body != "":
		request = request.SetHeader("Content-Type", "application/yaml").Body([]byte(body))
	}
	response, err := request.Do(context.Background()).Raw()
	return string(response), err
}

// May sends a request that must succeed.
func (u *User) May(verb, path, body string) string {
	u.t.Helper()
	response, err := u.Try(verb, path, body)
	if err != nil {
		u.t.Fatalf("%s: %s %s: %v\n%s", u.Name, verb, path, err, response)
	}
	return response
}

// MayNot sends a request that the API server must reject as forbidden. The message must contain
// reason.
func (u *User) MayNot(verb, path, body, reason string) {
	u.t.Helper()
	u.Refused(verb, path, body, reason, apierrors.IsForbidden)
}

// Refused sends a request that must fail with an error of the given kind. The message must contain
// reason.
func (u *User) Refused(verb, path, body, reason string, kind func(error) bool) {
	u.t.Helper()
	response, err := u.Try(verb, path, body)
	var status metav1.Status
	if !kind(err) || json.Unmarshal([]byte(response), &status) != nil || !strings.Contains(status.Message, reason) {
		u.t.Errorf("%s: %s %s: %v, want an error with %q\n%s", u.Name, verb, path, err, reason, response)
	}
}

// RequestProject requests a project, which is deleted when the test ends.
func (u *User) RequestProject(c *Cluster, name string) {
	u.t.Helper()
	u.May("POST", "/apis/project.openshift.io/v1/projectrequests",
		fmt.Sprintf(`{"apiVersion":"project.openshift.io/v1","kind":"ProjectRequest","metadata":{"name":%q},"displayName":"A shop","description":"Sells things"}`, name))
	u.t.Cleanup(func() {
		err := c.Client.CoreV1().Namespaces().Delete(context.Background(), name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			u.t.Error(err)
		}
	})
}

// CorePath returns the path of a core group resource in a namespace.
func CorePath(namespace, resource string) string {
	return "/api/v1/namespaces/" + namespace + "/" + resource
}

// GroupPath returns the path of a namespaced resource in version v1 of an API group other than
// core.
func GroupPath(group, namespace, resource string) string {
	return "/apis/" + group + "/v1/namespaces/" + namespace + "/" + resource
}
