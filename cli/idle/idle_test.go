package idle

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/cli/objects/objectstest"
)

// cluster contains services, their pods, and the pods' controllers.
const cluster = `
- {apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop, labels: {app: web}}, spec: {selector: {app: web}}}
- {apiVersion: v1, kind: Service, metadata: {name: admin, namespace: shop, labels: {app: admin}}, spec: {selector: {app: web}}}
- {apiVersion: v1, kind: Service, metadata: {name: external, namespace: shop}, spec: {}}
- {apiVersion: v1, kind: Service, metadata: {name: blog, namespace: blog}, spec: {selector: {app: blog}}}
- {apiVersion: v1, kind: Endpoints, metadata: {name: web, namespace: shop}, subsets: [{addresses: [{ip: 10.0.0.1, targetRef: {kind: Pod, name: web-1-a}}]}]}
- {apiVersion: v1, kind: Endpoints, metadata: {name: orphan, namespace: shop, labels: {app: admin}}, subsets: [{addresses: [{ip: 10.0.0.1, targetRef: {kind: Pod, name: web-1-a}}]}]}
- {apiVersion: v1, kind: Endpoints, metadata: {name: addresses, namespace: shop}, subsets: [{addresses: [{ip: 10.0.0.9}]}]}
- {apiVersion: v1, kind: Pod, metadata: {name: web-1-a, namespace: shop, ownerReferences: [{apiVersion: v1, kind: ReplicationController, name: web-1, controller: true}]}}
- {apiVersion: v1, kind: Pod, metadata: {name: web-1-b, namespace: shop, ownerReferences: [{apiVersion: v1, kind: ReplicationController, name: web-1, controller: true}]}}
- {apiVersion: v1, kind: Pod, metadata: {name: alone, namespace: shop}}
- {apiVersion: v1, kind: Pod, metadata: {name: job, namespace: shop, ownerReferences: [{apiVersion: batch/v1, kind: Job, name: job, controller: true}]}}
- {apiVersion: v1, kind: Pod, metadata: {name: gone, namespace: shop, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: gone, controller: true}]}}
- {apiVersion: v1, kind: Pod, metadata: {name: zero, namespace: shop, ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: zero, controller: true}]}}
- {apiVersion: v1, kind: ReplicationController, metadata: {name: web-1, namespace: shop, ownerReferences: [{apiVersion: apps.openshift.io/v1, kind: DeploymentConfig, name: web, controller: true}]}, spec: {replicas: 2}}
- {apiVersion: apps.openshift.io/v1, kind: DeploymentConfig, metadata: {name: web, namespace: shop}, spec: {replicas: 3}}
- {apiVersion: apps/v1, kind: StatefulSet, metadata: {name: zero, namespace: shop}, spec: {replicas: 0}}
`

// newCommand returns a command whose fake client contains the objects in cluster.
func newCommand(t *testing.T) *command {
	t.Helper()
	var list []map[string]any
	if err := yaml.Unmarshal([]byte(cluster), &list); err != nil {
		t.Fatal(err)
	}
	var all []*unstructured.Unstructured
	for _, object := range list {
		content, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		u := &unstructured.Unstructured{}
		json, err := yaml.YAMLToJSON(content)
		if err != nil {
			t.Fatal(err)
		}
		if err := u.UnmarshalJSON(json); err != nil {
			t.Fatal(err)
		}
		all = append(all, u)
	}
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	return &command{IOStreams: streams, client: objectstest.Client(all, [2]string{"v1", "Service"}, [2]string{"v1", "Pod"}, [2]string{"v1", "Endpoints"})}
}

func TestServicesOfArgumentsAndFlags(t *testing.T) {
	file := filepath.Join(t.TempDir(), "names")
	if err := os.WriteFile(file, []byte("web\n\n blog/blog \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		change func(*command)
		args   []string
		want   []string
		fails  string
	}{
		{"names", nil, []string{"web", "svc/admin", "blog/blog"}, []string{"shop/web", "shop/admin", "blog/blog"}, ""},
		{"labels", func(o *command) { o.selector = "app=admin" }, nil, []string{"shop/admin", "shop/orphan"}, ""},
		{"endpoints without a service", nil, []string{"orphan"}, []string{"shop/orphan"}, ""},
		{"all with pods", func(o *command) { o.all = true }, nil, []string{"shop/admin", "shop/orphan", "shop/web"}, ""},
		{"all of every project", func(o *command) { o.all, o.everywhere = true, true }, nil, []string{"blog/blog", "shop/admin", "shop/orphan", "shop/web"}, ""},
		{"file", func(o *command) { o.file = file }, nil, []string{"shop/web", "blog/blog"}, ""},
		{"nothing", nil, nil, nil, "specify services, or use one of"},
		{"two ways", func(o *command) { o.all = true }, []string{"web"}, nil, "specify services, or use one of"},
		{"missing service", nil, []string{"none"}, nil, `"none" not found`},
		{"missing file", func(o *command) { o.file = "/nowhere" }, nil, nil, "read service names"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := newCommand(t)
			if tt.change != nil {
				tt.change(o)
			}
			services, err := o.services(t.Context(), "shop", tt.args)
			if tt.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fails) {
					t.Errorf("got error %v, want %q", err, tt.fails)
				}
				return
			}
			var got []string
			for _, service := range services {
				got = append(got, service.namespace+"/"+service.name)
			}
			if len(tt.args) == 0 && o.file == "" {
				slices.Sort(got)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
				t.Errorf("error %v, services (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestOutermostControllerOfPodsIsScaled(t *testing.T) {
	o := newCommand(t)
	for _, tt := range []struct {
		name string
		pods []string
		want []string
	}{
		{"pods of one deployment config", []string{"web-1-a", "web-1-b"}, []string{"DeploymentConfig web 3"}},
		{"pod without a controller", []string{"alone"}, nil},
		{"pod of a job", []string{"job"}, nil},
		{"controller that is deleted", []string{"gone"}, nil},
		{"controller without replicas", []string{"zero"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var pods []corev1.Pod
			for _, name := range tt.pods {
				object, err := o.client.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace("shop").Get(t.Context(), name, metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				pods = append(pods, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: object.GetOwnerReferences()}})
			}
			all, err := o.scalables(t.Context(), "shop", pods)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, scalable := range all {
				got = append(got, strings.Join([]string{scalable.Kind, scalable.Name, string(rune('0' + scalable.Replicas))}, " "))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("controllers (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEndpointsWithoutServiceAreIdled(t *testing.T) {
	o := newCommand(t)
	o.dryRun = true
	if err := o.run(t.Context(), "shop", []string{"orphan"}); err != nil {
		t.Fatal(err)
	}
	const want = `The service will unidle DeploymentConfig "shop/web" to 3 replicas once it receives traffic (dry run)`
	if got := o.Out.(*bytes.Buffer).String(); !strings.Contains(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
}
