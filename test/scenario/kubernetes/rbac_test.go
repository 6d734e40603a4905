package kubernetes

import (
	"context"
	"crypto/tls"
	"fmt"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/test/kit"
)

// can reports whether `oc auth can-i` prints "yes" for a user and an action.
func can(c *kit.Cluster, user string, action ...string) bool {
	// Ignore the error, because the command returns exit code 1 if it prints "no".
	response, _ := c.TryOC(append([]string{"auth", "can-i", "--as", user, "--as-group", "system:authenticated"}, action...)...)
	return strings.TrimSpace(response) == "yes"
}

func TestRolesGrantTheirRules(t *testing.T) {
	c := kit.Shared(t)
	for _, args := range []string{
		"create role podview --verb=get,list --resource=pods",
		"create rolebinding podview --role=podview --user=anna",
		"create rolebinding admin --clusterrole=admin --user=ben",
		"create rolebinding edit --clusterrole=edit --user=carl",
		"create rolebinding view --clusterrole=view --group=readers --user=dora",
		"create rolebinding super --clusterrole=cluster-admin --user=eve",
		"create clusterrole scenario-nodes --verb=get --resource=nodes",
		"create clusterrolebinding scenario-nodes --clusterrole=scenario-nodes --user=anna",
		"create clusterrolebinding scenario-robot --clusterrole=scenario-nodes --serviceaccount=default:robot",
		"create role one --verb=get --resource=configmaps --resource-name=one",
		"create rolebinding one --role=one --user=gina",
		"create clusterrolebinding scenario-admin --clusterrole=cluster-admin --user=fred",
	} {
		c.OC(strings.Fields(args)...)
	}
	t.Cleanup(func() {
		c.OC("delete", "clusterrolebinding", "scenario-nodes", "scenario-robot", "scenario-admin")
		c.OC("delete", "clusterrole", "scenario-nodes")
	})
	c.WaitFor("the roles", func(context.Context) error {
		if !can(c, "fred", "create", "nodes") {
			return fmt.Errorf("not in effect")
		}
		return nil
	})
	const elsewhere = "--namespace=default"
	for _, tt := range []struct {
		user, action string
		want         bool
	}{
		{"anna", "get pods", true}, {"anna", "list pods", true}, {"anna", "delete pods", false}, {"anna", "get secrets", false}, {"anna", "get pods " + elsewhere, false},
		{"anna", "get nodes", true}, {"anna", "list nodes", false}, {"nobody", "get pods", false},
		{"ben", "create deployments.apps", true}, {"ben", "create rolebindings", true}, {"ben", "get secrets", true}, {"ben", "update resourcequotas", false},
		{"ben", "get resourcequotas", true}, {"ben", "get limitranges", true}, {"ben", "get pods " + elsewhere, false}, {"ben", "impersonate serviceaccounts", true},
		{"carl", "create deployments.apps", true}, {"carl", "get rolebindings", false}, {"carl", "create roles", false}, {"carl", "impersonate serviceaccounts", true},
		{"dora", "get pods", true}, {"dora", "create pods", false}, {"dora", "get rolebindings", false}, {"dora", "get secrets", false},
		{"eve", "update resourcequotas", true}, {"eve", "delete pods", true}, {"eve", "update resourcequotas " + elsewhere, false},
		{"gina", "get configmaps/one", true}, {"gina", "get configmaps/two", false}, {"system:serviceaccount:default:robot", "get nodes", true},
		{"fred", "delete pods " + elsewhere, true}, {"fred", "get /metrics", true},
	} {
		if got := can(c, tt.user, strings.Fields(tt.action)...); got != tt.want {
			t.Errorf("may %s %s: %t, want %t", tt.user, tt.action, got, tt.want)
		}
	}
	// The API server must enforce the permissions that `oc auth can-i` reports.
	if _, err := c.TryOC("get", "secrets", "--as", "anna"); err == nil || !strings.Contains(err.Error(), `User "anna" cannot list resource "secrets"`) {
		t.Errorf("a user without the right: %v", err)
	}
	if _, err := c.TryOC("get", "nodes", "--as", "eve"); err == nil {
		t.Error("a role that is bound in a project grants a right in the cluster")
	}
	c.OC("get", "pods", "--as", "stranger", "--as-group", "readers", "--as-group", "others")
	if output := c.OC("auth", "can-i", "--list", "--as", "anna"); !strings.Contains(output, "pods") {
		t.Errorf("rules of anna:\n%s", output)
	}
	// Users must not be able to grant permissions that they do not have.
	if _, err := c.TryOC("create", "clusterrolebinding", "more", "--clusterrole=cluster-admin", "--user=ben", "--as=ben"); err == nil {
		t.Error("an administrator of a project became an administrator of the cluster")
	}

	expect(t, c.OC("describe", "clusterrole.rbac", "view", "cluster-admin"), "Name:", "view", "Labels:", "kubernetes.io/bootstrapping=rbac-defaults",
		"rbac.authorization.kubernetes.io/autoupdate: true", "PolicyRule:", "Resources", "Non-Resource URLs", "Resource Names", "Verbs", "*.*")
	expect(t, c.OC("describe", "rolebinding.rbac", "view"), "Kind:  ClusterRole", "Name:  view", "readers", "dora")
	expect(t, c.OC("describe", "clusterrolebinding.rbac", "cluster-admin"), "system:masters", "kubernetes.io/bootstrapping=rbac-defaults")
}

func TestRolesOfExtensionsAreAggregated(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.scenario.example.com}
spec:
  group: scenario.example.com
  names: {kind: Boat, plural: boats, singular: boat}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {sails: {type: integer}}}}}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: scenario-boats, labels: {rbac.authorization.k8s.io/aggregate-to-view: "true"}}
rules: [{apiGroups: [scenario.example.com], resources: [boats], verbs: [get, list, watch]}]
`)
	t.Cleanup(func() {
		c.OC("delete", "crd", "boats.scenario.example.com")
		c.OC("delete", "clusterrole", "scenario-boats")
	})
	c.OC("wait", "crd", "boats.scenario.example.com", "--for", "condition=Established", "--timeout", "1m")
	c.OC("create", "rolebinding", "view", "--clusterrole=view", "--user=anna")
	boat := "{apiVersion: scenario.example.com/v1, kind: Boat, metadata: {name: one}, spec: {sails: %s}}"
	c.WaitFor("the new kind", func(context.Context) error { return create(t, c, fmt.Sprintf(boat, "2")) })
	c.WaitFor("the right to read the new kind", func(context.Context) error {
		sails, err := c.TryOC("get", "boat", "one", "-o", "jsonpath={.spec.sails}", "--as", "anna")
		if err == nil && sails != "2" {
			err = fmt.Errorf("%s sails", sails)
		}
		return err
	})
	if can(c, "anna", "delete", "boats.scenario.example.com") {
		t.Error("view can delete")
	}
	expectRejected(t, c, fmt.Sprintf(boat, "many"), "must be of type integer")
}

// whoami returns the caller's user name and groups from the API server.
func whoami(t *testing.T, c *kit.Cluster, change func(*rest.Config)) (authenticationv1.UserInfo, error) {
	t.Helper()
	config := rest.AnonymousClientConfig(c.Config)
	config.Dial = c.Dial
	change(config)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return authenticationv1.UserInfo{}, err
	}
	return review.Status.UserInfo, nil
}

func TestEveryRequestHasAUser(t *testing.T) {
	c := kit.Shared(t)
	c.OC("create", "sa", "robot")
	token := strings.TrimSpace(c.OC("create", "token", "robot"))
	certificate, robot := c.Config.TLSClientConfig, "system:serviceaccount:"+c.Namespace+":robot"
	userOf := func(change func(*rest.Config)) string {
		user, err := whoami(t, c, change)
		if err != nil {
			return err.Error()
		}
		return user.Username + " " + strings.Join(user.Groups, " ")
	}
	for name, tt := range map[string]struct {
		change func(*rest.Config)
		want   string
	}{
		"nothing":             {func(*rest.Config) {}, `User "system:anonymous" cannot create resource "selfsubjectreviews"`},
		"a token":             {func(r *rest.Config) { r.BearerToken = token }, robot + " system:serviceaccounts system:serviceaccounts:" + c.Namespace + " system:authenticated"},
		"a wrong token":       {func(r *rest.Config) { r.BearerToken = token + "x" }, "Unauthorized"},
		"a certificate":       {func(r *rest.Config) { r.TLSClientConfig = certificate }, "system:admin system:"},
		"a wrong certificate": {func(r *rest.Config) { r.CertData, r.KeyData = selfSigned(t, "system:admin") }, "Unauthorized"},
		"another user": {func(r *rest.Config) {
			r.TLSClientConfig = certificate
			r.Impersonate = rest.ImpersonationConfig{UserName: "anna", Groups: []string{"one", "two"}}
		}, "anna one two system:authenticated"},
	} {
		if got := userOf(tt.change); !strings.Contains(got, tt.want) {
			t.Errorf("with %s: %s, want %s", name, got, tt.want)
		}
	}
	// Unauthenticated requests belong to a group that can also be granted permissions.
	c.OC("create", "role", "reader", "--verb=get,list", "--resource=configmaps")
	c.OC("create", "rolebinding", "anonymous", "--role=reader", "--group=system:unauthenticated")
	anonymous := rest.AnonymousClientConfig(c.Config)
	anonymous.Dial = c.Dial
	client, err := kubernetes.NewForConfig(anonymous)
	if err != nil {
		t.Fatal(err)
	}
	c.WaitFor("right of unauthenticated users", func(ctx context.Context) error {
		_, err := client.CoreV1().ConfigMaps(c.Namespace).List(ctx, metav1.ListOptions{})
		return err
	})

	asRobot := func(user string) error {
		_, err := whoami(t, c, func(r *rest.Config) { r.BearerToken, r.Impersonate.UserName = token, user })
		return err
	}
	if err := asRobot("anna"); err == nil || !strings.Contains(err.Error(), "cannot impersonate") {
		t.Errorf("impersonation without the right: %v", err)
	}
	c.OC("create", "sa", "other")
	other := "system:serviceaccount:" + c.Namespace + ":other"
	c.OC("create", "rolebinding", "edit", "--clusterrole=edit", "--serviceaccount="+c.Namespace+":robot", "--serviceaccount="+c.Namespace+":other")
	c.WaitFor("right to act as a service account", func(context.Context) error { return asRobot(other) })
	if err := asRobot("system:serviceaccount:default:default"); err == nil {
		t.Error("an editor can act as a service account of another project")
	}
	c.OC("create", "rolebinding", "all-robots", "--clusterrole=view", "--group=system:serviceaccounts:"+c.Namespace)
	if !can(c, "system:serviceaccount:"+c.Namespace+":third", "get", "pods", "--as-group=system:serviceaccounts:"+c.Namespace) {
		t.Error("the group of all service accounts of the project has no right")
	}
	expect(t, c.OC("get", "sa"), "NAME", "robot", "default")
	expect(t, c.OC("describe", "sa", "robot"), "Image pull secrets:")
}

func TestOldVersionsOfTLSAreRejected(t *testing.T) {
	c := kit.Shared(t)
	for _, port := range []string{"8443", "10250"} {
		for version, want := range map[uint16]bool{tls.VersionTLS10: false, tls.VersionTLS11: false, tls.VersionTLS12: true} {
			conn, err := c.Dial(t.Context(), "tcp", c.Address.String()+":"+port)
			if err != nil {
				t.Fatal(err)
			}
			client := tls.Client(conn, &tls.Config{MinVersion: version, MaxVersion: version, InsecureSkipVerify: true})
			if err := client.Handshake(); (err == nil) != want {
				t.Errorf("port %s with %s: %v", port, tls.VersionName(version), err)
			}
			conn.Close()
		}
	}
	for _, suite := range tls.InsecureCipherSuites() {
		if !strings.Contains(suite.Name, "RC4") && !strings.Contains(suite.Name, "3DES") {
			continue
		}
		conn, err := c.Dial(t.Context(), "tcp", c.Address.String()+":8443")
		if err != nil {
			t.Fatal(err)
		}
		if err := tls.Client(conn, &tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{suite.ID}, InsecureSkipVerify: true}).Handshake(); err == nil {
			t.Errorf("%s is accepted", suite.Name)
		}
		conn.Close()
	}
}
