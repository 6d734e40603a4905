package attack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/slipway-platform/slipway/test/kit"
)

// methods maps verbs to HTTP methods. It omits verbs of long-running requests, and verbs that occur
// only in rules.
var methods = map[string]string{
	"get": http.MethodGet, "list": http.MethodGet, "create": http.MethodPost, "update": http.MethodPut, "patch": http.MethodPatch, "delete": http.MethodDelete,
}

// senders contains the names of the actors that send real requests.
var senders = []string{"anonymous", "user", "viewer", "admin", "deployer", "node"}

// refusal matches the API server's message when it denies authorization.
var refusal = regexp.MustCompile(`cannot [a-z]+ (resource|path)`)

// TestResponsesFollowTheMatrix sends a real request for every verb on every resource. Resources
// whose handlers filter or check requests must reject the same actors as the matrix. The requests
// are dry runs for objects that do not exist.
func TestResponsesFollowTheMatrix(t *testing.T) {
	m := newMatrix(t)
	table, err := readTable(matrixFile)
	if err != nil {
		t.Fatal(err)
	}
	m.tokenOfAnother(t)
	for _, a := range m.actors {
		if slices.Contains(senders, a.name) {
			m.sendAll(t, a, m.expected(t, table, a))
		}
	}
}

// tokenOfAnother creates a token that belongs to another user. The user's name is the name of the
// foreign project.
func (m *matrix) tokenOfAnother(t *testing.T) {
	t.Helper()
	const path = "/apis/oauth.openshift.io/v1/oauthaccesstokens"
	name := "sha256~" + strings.Repeat("m", 43)
	m.Administrator().May("POST", path, "{apiVersion: oauth.openshift.io/v1, kind: OAuthAccessToken, metadata: {name: "+name+"}, clientName: openshift-challenging-client, userName: "+
		m.foreign+", userUID: none, scopes: ['user:full'], redirectURI: 'https://example.com', expiresIn: 600}")
	t.Cleanup(func() { m.Administrator().May("DELETE", path+"/"+name, "") })
}

// sendAll sends all of an actor's requests and checks the responses.
func (m *matrix) sendAll(t *testing.T, a actor, expected rights) {
	t.Helper()
	user := m.connect(t, a)
	attempts := make(chan attempt)
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for q := range attempts {
				rejected, body, err := q.send(user)
				if rejected == expected[q.cell] {
					t.Errorf("%s: %s %s: %v, where %s says that the right to %s is %v", a.name, methods[q.verb], q.path, err, matrixFile, q.cell, expected[q.cell])
				}
				reads := methods[q.verb] == http.MethodGet && q.scope != "foreign"
				// Ignore responses to the node, because it is allowed to read all namespaces and
				// services.
				if err == nil && reads && a.name != "node" && strings.Contains(body, m.foreign) {
					t.Errorf("%s: %s %s shows the project of another tenant: %s", a.name, methods[q.verb], q.path, body)
				}
			}
		})
	}
	for _, k := range m.universe.kinds {
		for _, verb := range k.verbs {
			for _, scope := range []string{"own", "foreign", "cluster"} {
				if q, ok := k.attempt(verb, scope, a); ok {
					attempts <- q
				}
			}
		}
	}
	for _, path := range m.universe.paths {
		attempts <- attempt{cell{"path", "get", "-", path}, path}
	}
	close(attempts)
	workers.Wait()
}

func TestUserListsOwnProjectsOnly(t *testing.T) {
	m := newMatrix(t)
	for _, a := range m.actors {
		if a.name == "anonymous" || a.name == "cluster-reader" {
			continue
		}
		list := m.connect(t, a).May("GET", "/apis/project.openshift.io/v1/projects", "")
		_, member := roleOf[a.name]
		if strings.Contains(list, `"`+m.project+`"`) != member && a.name != "node" && a.name != "node-agent" || strings.Contains(list, `"`+m.foreign+`"`) && !strings.HasPrefix(a.name, "node") {
			t.Errorf("%s sees %s", a.name, list)
		}
	}
}

func TestNodeCannotReachOtherNodes(t *testing.T) {
	m := newMatrix(t)
	m.Administrator().May("POST", kit.CorePath(m.foreign, "secrets"), "{apiVersion: v1, kind: Secret, metadata: {name: private}}")
	m.Administrator().May("POST", "/api/v1/nodes", "{apiVersion: v1, kind: Node, metadata: {name: matrix-other}}")
	t.Cleanup(func() { m.Administrator().May("DELETE", "/api/v1/nodes/matrix-other", "") })
	node := m.connect(t, m.actors[slices.IndexFunc(m.actors, func(a actor) bool { return a.name == "node" })])
	const pod = "{apiVersion: v1, kind: Pod, metadata: {name: p, annotations: {kubernetes.io/config.mirror: x}}, spec: {nodeName: matrix-other, containers: [{name: a, image: a}]}}"
	for _, request := range [][4]string{
		{"GET", kit.CorePath(m.foreign, "secrets/private"), "", "no relationship found"},
		{"GET", kit.CorePath(m.foreign, "secrets"), "", "cannot list resource"},
		{"PATCH", "/api/v1/nodes/matrix-other", `{"metadata":{"labels":{"a":"b"}}}`, "is not allowed to modify node"},
		{"PATCH", "/api/v1/nodes/" + m.node, `{"metadata":{"labels":{"node-restriction.kubernetes.io/a":"b"}}}`, "is not allowed to modify labels"},
		{"PATCH", "/api/v1/nodes/" + m.node, `{"spec":{"taints":[{"key":"a","effect":"NoSchedule"}]}}`, "is not allowed to modify taints"},
		{"DELETE", "/api/v1/nodes/matrix-other", "", "cannot delete resource"},
		{"POST", kit.CorePath(m.foreign, "pods"), pod, "node"},
		{"POST", kit.CorePath(m.foreign, "serviceaccounts/default/token"), "{apiVersion: authentication.k8s.io/v1, kind: TokenRequest, spec: {}}", "no relationship found"},
	} {
		node.MayNot(request[0], request[1], request[2], request[3])
	}
}

func TestUserCannotReviewRightsOfAnother(t *testing.T) {
	m := newMatrix(t)
	for _, name := range []string{"anonymous", "user", "viewer"} {
		user := m.connect(t, m.actors[slices.IndexFunc(m.actors, func(a actor) bool { return a.name == name })])
		for _, review := range []string{
			"{apiVersion: authorization.openshift.io/v1, kind: SubjectAccessReview, user: alice, verb: get, resource: pods, namespace: " + m.foreign + "}",
			"{apiVersion: authorization.openshift.io/v1, kind: SubjectAccessReview, groups: ['system:masters'], verb: get, resource: pods, namespace: " + m.foreign + "}",
		} {
			user.MayNot("POST", "/apis/authorization.openshift.io/v1/subjectaccessreviews", review, "may only review their own permissions")
		}
	}
}

// connect returns an API client for the actor. The node authenticates with its certificate.
func (m *matrix) connect(t *testing.T, a actor) *kit.User {
	t.Helper()
	switch a.name {
	case "anonymous":
		return m.Anonymous()
	case "node":
		config, err := clientcmd.BuildConfigFromFlags("", m.Path("pki", "node", "node.kubeconfig"))
		if err != nil {
			t.Fatal(err)
		}
		config.Dial = m.Dial
		return kit.NewUser(t, config, rest.ImpersonationConfig{})
	}
	return m.Impersonate(a.ImpersonationConfig)
}

// attempt is a request with the permission that it requires.
type attempt struct {
	cell
	path string
}

// attempt returns the request for a verb. ok is false if the verb does not correspond to a request.
func (k kind) attempt(verb, scope string, a actor) (q attempt, ok bool) {
	base, subresource, _ := strings.Cut(k.resource, "/")
	collection := verb == "list" || verb == "create" && subresource == ""
	inProject := scope != "cluster"
	isWhole := isNamespace(base)
	switch {
	case k.path == "" || methods[verb] == "" || strings.Contains(k.resource, "["):
		return q, false
	case verb == "list" && subresource != "": // rules can contain this, but requests cannot
		return q, false
	case isWhole && (collection == inProject): // only collections of namespaces are cluster-scoped
		return q, false
	case !isWhole && inProject && !k.namespaced:
		return q, false
	case !isWhole && !inProject && k.namespaced && verb != "list":
		// Namespaced objects have no URL outside a project.
		return q, false
	}
	parts := []string{k.path}
	if inProject && !isWhole {
		parts = append(parts, "namespaces", a.namespace(scope))
	}
	parts = append(parts, base)
	switch {
	case isWhole && inProject:
		parts = append(parts, a.namespace(scope))
	case !collection:
		parts = append(parts, "matrix-none")
	}
	return attempt{cell{scope, verb, k.group, k.resource}, path.Join(append(parts, subresource)...)}, true
}

// send sends the request as a dry run, and reports whether the API server's authorization rejects
// it.
func (q attempt) send(user *kit.User) (rejected bool, body string, err error) {
	method := methods[q.verb]
	request := user.Rest.Verb(method).AbsPath(q.path)
	if method != http.MethodGet {
		request = request.Param("dryRun", metav1.DryRunAll)
	}
	// Send a delete request without a body. If it had a body, the API server would ignore dryRun in
	// the query.
	if method != http.MethodGet && method != http.MethodDelete {
		request = request.SetHeader("Content-Type", "application/json").Body([]byte(`{"metadata":{"name":"matrix-none"}}`))
	}
	if q.verb == "patch" {
		request = request.SetHeader("Content-Type", "application/merge-patch+json")
	}
	var status apierrors.APIStatus
	response, err := request.Do(context.Background()).Raw()
	if errors.As(err, &status) && (apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)) {
		var message metav1.Status
		_ = json.Unmarshal(response, &message)
		return apierrors.IsUnauthorized(err) || refusal.MatchString(message.Message), "", fmt.Errorf("%w: %s", err, message.Message)
	}
	return false, string(response), err
}
