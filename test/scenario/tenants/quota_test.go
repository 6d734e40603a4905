package tenants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// checkUsage waits until a ClusterResourceQuota reports the given usage in total and for each
// project. total is a usage such as "configmaps=2".
func checkUsage(c *kit.Cluster, quota, total string, projects ...string) {
	c.WaitFor("usage of quota "+quota, func(context.Context) error {
		response, err := c.TryOC("get", "clusterquota", quota, "-o", "json")
		if err != nil {
			return err
		}
		type amounts struct{ Used map[string]string }
		var existing struct {
			Status struct {
				Total      amounts
				Namespaces []struct {
					Namespace string
					Status    amounts
				}
			}
		}
		if err := json.Unmarshal([]byte(response), &existing); err != nil {
			return err
		}
		var lines []string
		add := func(name string, usage amounts) {
			for resource, amount := range usage.Used {
				lines = append(lines, name+resource+"="+amount)
			}
		}
		add("", existing.Status.Total)
		for _, tt := range existing.Status.Namespaces {
			add(tt.Namespace+":", tt.Status)
		}
		got := " " + strings.Join(lines, " ") + " "
		for _, want := range append(projects, total) {
			if !strings.Contains(got, " "+want+" ") {
				return fmt.Errorf("got %s, want %s", got, want)
			}
		}
		return nil
	})
}

func TestQuotaCountsAllProjectsOfRequester(t *testing.T) {
	c := tenants(t)
	c.OC("create", "user", "ann", "-o", "name")
	c.OC("label", "user", "ann", "level=gold")
	ann := c.User("ann")
	ann.RequestProject(c, "ann-one")
	ann.RequestProject(c, "ann-two")
	c.Apply(`
apiVersion: quota.openshift.io/v1
kind: ClusterResourceQuota
metadata: {name: for-ann}
spec:
  selector: {annotations: {openshift.io/requester: ann}}
  quota: {hard: {configmaps: "6", requests.cpu: "1", openshift.io/imagestreams: "1", count/routes.route.openshift.io: "1"}}
`)
	t.Cleanup(func() { c.OC("delete", "clusterquota", "for-ann", "--ignore-not-found") })
	// Each project initially contains two ConfigMaps with CA certificates.
	checkUsage(c, "for-ann", "configmaps=4", "ann-one:configmaps=2", "ann-two:configmaps=2", "requests.cpu=0")

	config := func(name string) string { return "{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + "}}" }
	ann.May("POST", kit.CorePath("ann-one", "configmaps"), config("first"))
	ann.May("POST", kit.CorePath("ann-two", "configmaps"), config("second"))
	for _, project := range []string{"ann-one", "ann-two"} {
		ann.MayNot("POST", kit.CorePath(project, "configmaps"), config("third"), "exceeded quota: for-ann, requested: configmaps=1, used: configmaps=6, limited: configmaps=6")
	}
	checkUsage(c, "for-ann", "configmaps=6", "ann-one:configmaps=3", "ann-two:configmaps=3")

	pod := func(name, cpu string) string {
		return fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s}, spec: {nodeSelector: {is: nowhere}, containers: [{name: main, image: none,
			resources: {requests: {cpu: %[2]s, memory: 1Mi}, limits: {cpu: %[2]s, memory: 1Mi}}}]}}`, name, cpu)
	}
	// The cluster's configuration sets requests to half of the limits, so the first pod requests
	// 800m.
	ann.May("POST", kit.CorePath("ann-one", "pods"), pod("first", "1600m"))
	ann.MayNot("POST", kit.CorePath("ann-two", "pods"), pod("second", "1600m"), "requested: requests.cpu=800m, used: requests.cpu=800m, limited: requests.cpu=1")
	ann.MayNot("POST", kit.CorePath("ann-two", "pods"), "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: main, image: none}]}}", "must specify requests.cpu")

	stream := "{apiVersion: image.openshift.io/v1, kind: ImageStream, metadata: {name: one}}"
	ann.May("POST", kit.GroupPath("image.openshift.io", "ann-one", "imagestreams"), stream)
	ann.MayNot("POST", kit.GroupPath("image.openshift.io", "ann-two", "imagestreams"), stream, "openshift.io/imagestreams=1")
	// An import or a tag also creates the stream, if the stream does not exist.
	ann.MayNot("POST", kit.GroupPath("image.openshift.io", "ann-two", "imagestreamtags"),
		"{apiVersion: image.openshift.io/v1, kind: ImageStreamTag, metadata: {name: 'two:latest'}, tag: {reference: true, from: {kind: DockerImage, name: registry.invalid/two}}}", "openshift.io/imagestreams=1")
	ann.MayNot("POST", kit.GroupPath("image.openshift.io", "ann-two", "imagestreamimports"),
		"{apiVersion: image.openshift.io/v1, kind: ImageStreamImport, metadata: {name: two}, spec: {import: true, images: [{from: {kind: DockerImage, name: registry.invalid/two}}]}}", "openshift.io/imagestreams=1")
	route := "{apiVersion: route.openshift.io/v1, kind: Route, metadata: {name: one}, spec: {to: {name: web}}}"
	ann.May("POST", kit.GroupPath("route.openshift.io", "ann-two", "routes"), route)
	ann.MayNot("POST", kit.GroupPath("route.openshift.io", "ann-one", "routes"), route, "count/routes.route.openshift.io=1")

	// After an object is deleted, a new object can be created in any of the projects.
	ann.May("DELETE", kit.CorePath("ann-one", "configmaps/first"), "")
	checkUsage(c, "for-ann", "configmaps=5", "ann-one:configmaps=2")
	ann.May("POST", kit.CorePath("ann-two", "configmaps"), config("third"))

	quotaJSON := ann.May("GET", kit.GroupPath("quota.openshift.io", "ann-one", "appliedclusterresourcequotas/for-ann"), "")
	has(t, quotaJSON, `"configmaps":"6"`, `"namespace":"ann-two"`)
	ann.MayNot("GET", "/apis/quota.openshift.io/v1/clusterresourcequotas/for-ann", "", "cannot get resource")
	ann.MayNot("PATCH", "/apis/quota.openshift.io/v1/clusterresourcequotas/for-ann", `{"spec":{"quota":{"hard":{"configmaps":"9"}}}}`, "cannot patch resource")

	// The quota must stop counting a deleted project and start counting a new project.
	ann.May("DELETE", "/apis/project.openshift.io/v1/projects/ann-two", "")
	checkUsage(c, "for-ann", "configmaps=2", "ann-one:configmaps=2")
	ann.RequestProject(c, "ann-three")
	checkUsage(c, "for-ann", "configmaps=4", "ann-three:configmaps=2")
}

func TestQuotaSelectsProjectsByLabels(t *testing.T) {
	c := tenants(t)
	c.Apply("{apiVersion: quota.openshift.io/v1, kind: ClusterResourceQuota, metadata: {name: by-label}, spec: {selector: {labels: {matchLabels: {team: blue}}}, quota: {hard: {services: '1'}}}}")
	t.Cleanup(func() { c.OC("delete", "clusterquota", "by-label") })
	c.OC("create", "service", "externalname", "before", "--external-name=example.com")
	c.OC("label", "namespace", c.Namespace, "team=blue")
	checkUsage(c, "by-label", "services=1", c.Namespace+":services=1")
	c.Administrator().MayNot("POST", kit.CorePath(c.Namespace, "services"), "{apiVersion: v1, kind: Service, metadata: {name: after}, spec: {ports: [{port: 80}]}}", "exceeded quota: by-label")
	c.OC("label", "namespace", c.Namespace, "team-")
	checkUsage(c, "by-label", "services=0")
	c.OC("create", "service", "externalname", "after", "--external-name=example.com")
}

func TestProjectQuotaCountsImageStreams(t *testing.T) {
	c := tenants(t)
	kim := c.User("kim")
	kim.RequestProject(c, "kim-shop")
	c.Administrator().May("POST", kit.CorePath("kim-shop", "resourcequotas"), "{apiVersion: v1, kind: ResourceQuota, metadata: {name: images}, spec: {hard: {openshift.io/imagestreams: 2, secrets: 50}}}")
	uses := func(streams string) {
		t.Helper()
		c.WaitFor("the quota to have "+streams, func(context.Context) error {
			quota := kim.May("GET", kit.CorePath("kim-shop", "resourcequotas/images"), "")
			if !strings.Contains(quota, `"used":{"openshift.io/imagestreams":"`+streams+`","secrets"`) {
				return errors.New(quota)
			}
			return nil
		})
	}
	uses("0")
	streams := kit.GroupPath("image.openshift.io", "kim-shop", "imagestreams")
	stream := func(name string) string {
		return "{apiVersion: image.openshift.io/v1, kind: ImageStream, metadata: {name: " + name + "}}"
	}
	kim.May("POST", streams, stream("one"))
	kim.May("POST", kit.GroupPath("image.openshift.io", "kim-shop", "imagestreamtags"),
		"{apiVersion: image.openshift.io/v1, kind: ImageStreamTag, metadata: {name: 'two:latest'}, tag: {reference: true, from: {kind: DockerImage, name: registry.invalid/two}}}")
	kim.MayNot("POST", streams, stream("three"), "exceeded quota: images, requested: openshift.io/imagestreams=1, used: openshift.io/imagestreams=2, limited: openshift.io/imagestreams=2")
	uses("2")
	kim.May("DELETE", streams+"/one", "")
	uses("1")
	kim.May("POST", streams, stream("three"))
}
