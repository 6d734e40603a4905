// Package application tests how users create applications and work with them: templates and
// template instances, new-app, idling, and the client's commands for running pods.
package application

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

func TestMain(m *testing.M) { kit.Main(m) }

// waitOutput waits until a field of an object has the expected value.
func waitOutput(c *kit.Cluster, object, path, want string) {
	c.WaitFor(object+" to have "+path+" "+want, func(context.Context) error {
		got, err := c.TryOC("get", object, "-o", "jsonpath="+path)
		if err == nil && got != want {
			err = fmt.Errorf("it has %q", got)
		}
		return err
	})
}

// waitBuild follows a build until it is complete, and returns its log.
func waitBuild(c *kit.Cluster, name string) (log string) {
	c.WaitFor("build "+name, func(context.Context) error {
		_, err := c.TryOC("get", "build", name)
		return err
	})
	log = c.OC("logs", "--follow", "build/"+name)
	waitOutput(c, "build/"+name, "{.status.phase}", "Complete")
	return log
}

// shop is a template for an application. Its objects use OpenShift 3's API versions.
const shop = `{apiVersion: v1, kind: Template, metadata: {name: shop}, message: "made ${NAME}", labels: {shop: "${NAME}"},
	parameters: [{name: NAME, required: true}, {name: PORT, value: "8080"}, {name: KEY, generate: expression, from: "[a-f0-9]{16}"}],
	objects: [
		{apiVersion: v1, kind: Secret, metadata: {name: "${NAME}"}, stringData: {key: "${KEY}"}},
		{apiVersion: v1, kind: Service, metadata: {name: "${NAME}"}, spec: {ports: [{port: "${{PORT}}"}]}},
		{apiVersion: v1, kind: Route, metadata: {name: "${NAME}"}, spec: {to: {name: "${NAME}"}}}]}`

func TestTemplatesAreProcessedAndCreatedByCommand(t *testing.T) {
	c := kit.Shared(t)
	file := c.Path("shop.yaml")
	write(t, file, shop)
	c.OC("create", "-f", file)
	list := c.OC("process", "shop", "-p", "NAME=one", "-l", "made=here")
	if _, err := c.TryOCWithInput(list, "create", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	waitOutput(c, "svc/one", "{.spec.ports[0].port} {.metadata.labels}", `8080 {"made":"here","shop":"one"}`)
	waitOutput(c, "route/one", "{.spec.to.name}", "one")
	if _, err := c.TryOC("process", c.Namespace+"//shop", "-n", "default"); err == nil || !strings.Contains(err.Error(), "parameter NAME is required and must be specified") {
		t.Errorf("without a required value: %v", err)
	}
	for range 2 { // a second apply must change nothing
		if _, err := c.TryOCWithInput(c.OC("process", "-f", file, "-p", "NAME=two", "-p", "KEY=k", "-o", "yaml"), "apply", "-f", "-"); err != nil {
			t.Fatal(err)
		}
	}
	waitOutput(c, "secret/two", "{.data.key}", "aw==")
}

// instance returns a TemplateInstance for the objects. further contains additional fields for the
// instance's spec.
func instance(name, further, objects string) string {
	return fmt.Sprintf(`{apiVersion: template.openshift.io/v1, kind: TemplateInstance, metadata: {name: %s}, spec: {%s template: {metadata: {name: t},
		parameters: [{name: NAME, value: %[1]s}, {name: KEY, generate: expression, from: "[a-f0-9]{16}"}], objects: [%[3]s]}}}`, name, further, objects)
}

// apply creates an object as a user.
func apply(c *kit.Cluster, user, manifest string) error {
	_, err := c.TryOCWithInput(manifest, "create", "-f", "-", "--as="+user, "--as-group=system:authenticated", "--as-group=system:authenticated:oauth")
	return err
}

func TestTemplateInstanceCreatesAndRemovesObjects(t *testing.T) {
	c := kit.Shared(t)
	c.OC("policy", "add-role-to-user", "admin", "alice")
	c.OC("create", "secret", "generic", "values", "--from-literal=NAME=given")
	err := apply(c, "alice", instance("first", "secret: {name: values}, requester: {username: somebody}, ", `
		{apiVersion: v1, kind: Secret, metadata: {name: "${NAME}"}, stringData: {key: "${KEY}"}},
		{apiVersion: v1, kind: Route, metadata: {name: "${NAME}", annotations: {template.alpha.openshift.io/wait-for-ready: "true"}}, spec: {to: {name: a}}},
		{apiVersion: extensions/v1beta1, kind: Deployment, metadata: {name: "${NAME}"}, spec: {replicas: 0, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}},
		{apiVersion: batch/v1, kind: Job, metadata: {name: "${NAME}", annotations: {template.alpha.openshift.io/wait-for-ready: "true"}}, spec: {suspend: true, template: {
			spec: {restartPolicy: Never, containers: [{name: c, image: "`+kit.ToolsImage+`", command: ["true"]}]}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	const readiness = `{.status.conditions[?(@.type=="Ready")].status} {.status.conditions[?(@.type=="Ready")].reason}`
	waitOutput(c, "templateinstance/first", readiness, "False Waiting")
	waitOutput(c, "templateinstance/first", "{.spec.requester.username} {.status.objects[*].ref.kind}", "alice Secret Route Deployment Job")
	uid := c.OC("get", "templateinstance/first", "-o", "jsonpath={.metadata.uid}")
	waitOutput(c, "secret/given", `{.metadata.labels.template\.openshift\.io/template-instance-owner}`, uid)
	c.OC("patch", "job/given", "-p", `{"spec": {"suspend": false}}`)
	waitOutput(c, "templateinstance/first", readiness, "True Created")

	if _, err := c.TryOC("patch", "templateinstance/first", "--type=merge", "-p", `{"spec": {"requester": {"username": "root"}}}`); err == nil || !strings.Contains(err.Error(), "immutable") {
		t.Errorf("changing the specification: %v", err)
	}
	c.OC("delete", "templateinstance/first")
	c.WaitFor("the objects to be removed", func(context.Context) error {
		if rest := c.OC("get", "secret/given", "route/given", "deployment/given", "job/given", "-o", "name", "--ignore-not-found"); rest != "" {
			return fmt.Errorf("there are %s", rest)
		}
		return nil
	})
}

func TestTemplateInstanceHasRightsOfRequester(t *testing.T) {
	c := kit.Shared(t)
	c.OC("policy", "add-role-to-user", "edit", "bob")
	secret := `{apiVersion: v1, kind: Secret, metadata: {name: "made-${NAME}"}}`
	for name, refused := range map[string]struct{ object, want string }{
		"right":   {`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: more}, roleRef: {kind: ClusterRole, name: admin}, subjects: [{kind: User, name: bob}]}`, `user "bob" may not create rolebindings "more"`},
		"cluster": {`{apiVersion: v1, kind: Namespace, metadata: {name: bobs}}`, `user "bob" may not create namespaces "bobs"`},
		"other":   {`{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: "${PROJECT}"}}`, `may not create secrets "s" in project "default"`},
		"unknown": {`{apiVersion: example.com/v1, kind: Thing, metadata: {name: a}}`, `no matches for kind "Thing"`},
	} {
		manifest := instance(name, "", secret+", "+refused.object)
		if err := apply(c, "bob", strings.Replace(manifest, "parameters: [", "parameters: [{name: PROJECT, value: default}, ", 1)); err != nil {
			t.Fatal(err)
		}
		c.WaitFor("instance "+name+" to fail", func(context.Context) error {
			got := c.OC("get", "templateinstance/"+name, "-o", `jsonpath={.status.conditions[?(@.type=="InstantiateFailure")].message}`)
			if !strings.Contains(got, refused.want) {
				return fmt.Errorf("got %q, want %q", got, refused.want)
			}
			return nil
		})
		waitOutput(c, "templateinstance/"+name, `{.status.conditions[?(@.type=="Ready")].reason}`, "Failed")
		if result := c.OC("get", "secret/made-"+name, "--ignore-not-found"); result != "" {
			t.Errorf("%s: the instance created %s", name, result)
		}
	}
	// The instance must not adopt an existing object with the same name. The object must remain
	// when the instance is deleted.
	c.OC("create", "secret", "generic", "made-taken")
	if err := apply(c, "bob", instance("taken", "", secret)); err != nil {
		t.Fatal(err)
	}
	waitOutput(c, "templateinstance/taken", `{.status.conditions[?(@.type=="InstantiateFailure")].message}`, `create Secret "made-taken": secrets "made-taken" already exists`)
	c.OC("delete", "templateinstance/taken")
	waitOutput(c, "secret/made-taken", "{.metadata.name}", "made-taken")
	// The instance can be deleted even though its object, a review, can be neither read nor
	// deleted.
	review := `{apiVersion: authorization.k8s.io/v1, kind: SelfSubjectAccessReview, metadata: {name: a}, spec: {nonResourceAttributes: {path: /, verb: get}}}`
	if err := apply(c, "bob", instance("asks", "", secret+", "+review)); err != nil {
		t.Fatal(err)
	}
	waitOutput(c, "templateinstance/asks", `{.status.conditions[?(@.type=="InstantiateFailure")].reason}`, "Failed")
	c.OC("delete", "templateinstance/asks")
	c.WaitFor("the other object to be removed", func(context.Context) error {
		if rest := c.OC("get", "secret/made-asks", "-o", "name", "--ignore-not-found"); rest != "" {
			return fmt.Errorf("there is %s", rest)
		}
		return nil
	})
}
