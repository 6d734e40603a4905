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

// used waits until a quota over projects says that so much is used in total, and by each project, such as "configmaps=2".
func used(c *kit.Cluster, quota, total string, projects ...string) {
	c.WaitFor("usage of quota "+quota, func(context.Context) error {
		answer, err := c.TryOC("get", "clusterquota", quota, "-o", "json")
		if err != nil {
			return err
		}
		type amounts struct{ Used map[string]string }
		var found struct {
			Status struct {
				Total      amounts
				Namespaces []struct {
					Namespace string
					Status    amounts
				}
			}
		}
		if err := json.Unmarshal([]byte(answer), &found); err != nil {
			return err
		}
		var lines []string
		add := func(name string, used amounts) {
			for resource, amount := range used.Used {
				lines = append(lines, name+resource+"="+amount)
			}
		}
		add("", found.Status.Total)
		for _, one := range found.Status.Namespaces {
			add(one.Namespace+":", one.Status)
		}
		got := " " + strings.Join(lines, " ") + " "
		for _, want := range append(projects, total) {
			if !strings.Contains(got, " "+want+" ") {
				return fmt.Errorf("it says %s, want %s", got, want)
			}
		}
		return nil
	})
}

func TestAQuotaCountsAllProjectsOfARequester(t *testing.T) {
	c := tenants(t)
	c.OC("create", "user", "ann", "-o", "name")
	c.OC("label", "user", "ann", "level=gold")
	ann := as(t, c, "ann")
	ann.project(c, "ann-one")
	ann.project(c, "ann-two")
	c.Apply(`
apiVersion: quota.openshift.io/v1
kind: ClusterResourceQuota
metadata: {name: for-ann}
spec:
  selector: {annotations: {openshift.io/requester: ann}}
  quota: {hard: {configmaps: "6", requests.cpu: "1", openshift.io/imagestreams: "1", count/routes.route.openshift.io: "1"}}
`)
	t.Cleanup(func() { c.OC("delete", "clusterquota", "for-ann", "--ignore-not-found") })
	// Each project has the ConfigMaps of the authorities.
	used(c, "for-ann", "configmaps=4", "ann-one:configmaps=2", "ann-two:configmaps=2", "requests.cpu=0")

	config := func(name string) string { return "{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + "}}" }
	ann.may("POST", core("ann-one", "configmaps"), config("first"))
	ann.may("POST", core("ann-two", "configmaps"), config("second"))
	for _, project := range []string{"ann-one", "ann-two"} {
		ann.mayNot("POST", core(project, "configmaps"), config("third"), "exceeded quota: for-ann, requested: configmaps=1, used: configmaps=6, limited: configmaps=6")
	}
	used(c, "for-ann", "configmaps=6", "ann-one:configmaps=3", "ann-two:configmaps=3")

	pod := func(name, cpu string) string {
		return fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s}, spec: {nodeSelector: {is: nowhere}, containers: [{name: main, image: none,
			resources: {requests: {cpu: %[2]s, memory: 1Mi}, limits: {cpu: %[2]s, memory: 1Mi}}}]}}`, name, cpu)
	}
	// Requests are half of the limits here, by the cluster's configuration.
	ann.may("POST", core("ann-one", "pods"), pod("first", "1600m"))
	ann.mayNot("POST", core("ann-two", "pods"), pod("second", "1600m"), "requested: requests.cpu=800m, used: requests.cpu=800m, limited: requests.cpu=1")
	ann.mayNot("POST", core("ann-two", "pods"), "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: main, image: none}]}}", "must specify requests.cpu")

	stream := "{apiVersion: image.openshift.io/v1, kind: ImageStream, metadata: {name: one}}"
	ann.may("POST", group("image.openshift.io", "ann-one", "imagestreams"), stream)
	ann.mayNot("POST", group("image.openshift.io", "ann-two", "imagestreams"), stream, "openshift.io/imagestreams=1")
	// An import, or a tag, of a stream that is not there makes one.
	ann.mayNot("POST", group("image.openshift.io", "ann-two", "imagestreamtags"),
		"{apiVersion: image.openshift.io/v1, kind: ImageStreamTag, metadata: {name: 'two:latest'}, tag: {reference: true, from: {kind: DockerImage, name: registry.invalid/two}}}", "openshift.io/imagestreams=1")
	ann.mayNot("POST", group("image.openshift.io", "ann-two", "imagestreamimports"),
		"{apiVersion: image.openshift.io/v1, kind: ImageStreamImport, metadata: {name: two}, spec: {import: true, images: [{from: {kind: DockerImage, name: registry.invalid/two}}]}}", "openshift.io/imagestreams=1")
	route := "{apiVersion: route.openshift.io/v1, kind: Route, metadata: {name: one}, spec: {to: {name: web}}}"
	ann.may("POST", group("route.openshift.io", "ann-two", "routes"), route)
	ann.mayNot("POST", group("route.openshift.io", "ann-one", "routes"), route, "count/routes.route.openshift.io=1")

	// What goes is free again, in any of the projects.
	ann.may("DELETE", core("ann-one", "configmaps/first"), "")
	used(c, "for-ann", "configmaps=5", "ann-one:configmaps=2")
	ann.may("POST", core("ann-two", "configmaps"), config("third"))

	applied := ann.may("GET", group("quota.openshift.io", "ann-one", "appliedclusterresourcequotas/for-ann"), "")
	has(t, applied, `"configmaps":"6"`, `"namespace":"ann-two"`)
	ann.mayNot("GET", "/apis/quota.openshift.io/v1/clusterresourcequotas/for-ann", "", "cannot get resource")
	ann.mayNot("PATCH", "/apis/quota.openshift.io/v1/clusterresourcequotas/for-ann", `{"spec":{"quota":{"hard":{"configmaps":"9"}}}}`, "cannot patch resource")

	// A project that goes is counted no more, one that comes is.
	ann.may("DELETE", "/apis/project.openshift.io/v1/projects/ann-two", "")
	used(c, "for-ann", "configmaps=2", "ann-one:configmaps=2")
	ann.project(c, "ann-three")
	used(c, "for-ann", "configmaps=4", "ann-three:configmaps=2")
}

func TestAQuotaSelectsProjectsByLabels(t *testing.T) {
	c := tenants(t)
	c.Apply("{apiVersion: quota.openshift.io/v1, kind: ClusterResourceQuota, metadata: {name: by-label}, spec: {selector: {labels: {matchLabels: {team: blue}}}, quota: {hard: {services: '1'}}}}")
	t.Cleanup(func() { c.OC("delete", "clusterquota", "by-label") })
	c.OC("create", "service", "externalname", "before", "--external-name=example.com")
	c.OC("label", "namespace", c.Namespace, "team=blue")
	used(c, "by-label", "services=1", c.Namespace+":services=1")
	administrator(t, c).mayNot("POST", core(c.Namespace, "services"), "{apiVersion: v1, kind: Service, metadata: {name: after}, spec: {ports: [{port: 80}]}}", "exceeded quota: by-label")
	c.OC("label", "namespace", c.Namespace, "team-")
	used(c, "by-label", "services=0")
	c.OC("create", "service", "externalname", "after", "--external-name=example.com")
}

func TestTheQuotaOfAProjectCountsImageStreams(t *testing.T) {
	c := tenants(t)
	kim := as(t, c, "kim")
	kim.project(c, "kim-shop")
	administrator(t, c).may("POST", core("kim-shop", "resourcequotas"), "{apiVersion: v1, kind: ResourceQuota, metadata: {name: images}, spec: {hard: {openshift.io/imagestreams: 2, secrets: 50}}}")
	uses := func(streams string) {
		t.Helper()
		c.WaitFor("the quota to have "+streams, func(context.Context) error {
			quota := kim.may("GET", core("kim-shop", "resourcequotas/images"), "")
			if !strings.Contains(quota, `"used":{"openshift.io/imagestreams":"`+streams+`","secrets"`) {
				return errors.New(quota)
			}
			return nil
		})
	}
	uses("0")
	streams := group("image.openshift.io", "kim-shop", "imagestreams")
	stream := func(name string) string {
		return "{apiVersion: image.openshift.io/v1, kind: ImageStream, metadata: {name: " + name + "}}"
	}
	kim.may("POST", streams, stream("one"))
	kim.may("POST", group("image.openshift.io", "kim-shop", "imagestreamtags"),
		"{apiVersion: image.openshift.io/v1, kind: ImageStreamTag, metadata: {name: 'two:latest'}, tag: {reference: true, from: {kind: DockerImage, name: registry.invalid/two}}}")
	kim.mayNot("POST", streams, stream("three"), "exceeded quota: images, requested: openshift.io/imagestreams=1, used: openshift.io/imagestreams=2, limited: openshift.io/imagestreams=2")
	uses("2")
	kim.may("DELETE", streams+"/one", "")
	uses("1")
	kim.may("POST", streams, stream("three"))
}
