package adm

import (
	"context"
	"strings"
	"testing"

	networkv1 "github.com/openshift/api/network/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/slipway-platform/slipway/internal/networkplugin"
)

// networkClient returns a client for a cluster with several projects and, if plugin is not empty, a
// network plugin. The fake control plane completes each change immediately: it removes the
// annotation and sets a label with the same value.
func networkClient(t *testing.T, plugin string) *fake.FakeDynamicClient {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, install := range []func(*runtime.Scheme) error{networkv1.Install, corev1.AddToScheme} {
		if err := install(scheme); err != nil {
			t.Fatal(err)
		}
	}
	var initial []runtime.Object
	if plugin != "" {
		initial = append(initial, &networkv1.ClusterNetwork{ObjectMeta: metav1.ObjectMeta{Name: "default"}, PluginName: plugin})
	}
	for _, name := range []string{"default", "shop", "bank", "gone"} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"share": "true"}}}
		if name == "gone" {
			namespace.Status.Phase = corev1.NamespaceTerminating
		}
		initial = append(initial, namespace, &networkv1.NetNamespace{ObjectMeta: metav1.ObjectMeta{Name: name}, NetName: name})
	}
	client := fake.NewSimpleDynamicClient(scheme, initial...)
	client.PrependReactor("get", "netnamespaces", func(action clienttesting.Action) (bool, runtime.Object, error) {
		object, err := client.Tracker().Get(netNamespaces(), "", action.(clienttesting.GetAction).GetName())
		if err != nil {
			return true, nil, err
		}
		namespace := object.(*unstructured.Unstructured).DeepCopy()
		annotations := namespace.GetAnnotations()
		if change, pending := annotations[networkv1.ChangePodNetworkAnnotation]; pending {
			delete(annotations, networkv1.ChangePodNetworkAnnotation)
			namespace.SetAnnotations(annotations)
			namespace.SetLabels(map[string]string{"change": strings.ReplaceAll(change, ":", "-")})
			err = client.Tracker().Update(netNamespaces(), namespace, "")
		}
		return true, namespace, err
	})
	return client
}

func TestPodNetworkRequestsChanges(t *testing.T) {
	for _, tt := range []struct {
		name     string
		change   networkplugin.Change
		projects []string
		selector string
		want     string // changes to the networks of default, shop, bank and gone
		err      string
	}{
		{"join", networkplugin.Change{Action: networkplugin.Join, Project: "shop"}, []string{"bank"}, "", ", , join-shop, ", ""},
		{"join by selector", networkplugin.Change{Action: networkplugin.Join, Project: "shop"}, nil, "share=true", "join-shop, , join-shop, ", ""},
		{"isolate", networkplugin.Change{Action: networkplugin.Isolate}, []string{"shop", "bank"}, "", ", isolate, isolate, ", ""},
		{"isolate default", networkplugin.Change{Action: networkplugin.Isolate}, []string{"default", "bank"}, "", ", , isolate, ", `network isolation for project "default" is forbidden`},
		{"global", networkplugin.Change{Action: networkplugin.Global}, []string{"shop"}, "", ", global, , ", ""},
		{"join nothing", networkplugin.Change{Action: networkplugin.Join, Project: "other"}, []string{"bank"}, "", ", , , ", `"other" not found`},
		{"unknown project", networkplugin.Change{Action: networkplugin.Global}, []string{"other", "shop"}, "", ", global, , ", `"other" not found`},
		{"no match", networkplugin.Change{Action: networkplugin.Global}, nil, "share=false", ", , , ", `no projects found for selector "share=false"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			client := networkClient(t, networkplugin.Multitenant)
			n := &podNetwork{client: client, change: tt.change, projects: tt.projects, selector: tt.selector}
			err := n.findProjects(t.Context())
			if err == nil {
				err = n.run(t.Context())
			}
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
			if got := changes(t, client); got != tt.want {
				t.Errorf("changes %q, want %q", got, tt.want)
			}
		})
	}
}

// changes returns the "change" label of each project's NetNamespace.
func changes(t *testing.T, client *fake.FakeDynamicClient) string {
	t.Helper()
	var texts []string
	for _, project := range []string{"default", "shop", "bank", "gone"} {
		namespace, err := client.Resource(netNamespaces()).Get(context.Background(), project, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, namespace.GetLabels()["change"])
	}
	return strings.Join(texts, ", ")
}

func TestPodNetworkNeedsArguments(t *testing.T) {
	for want, n := range map[string]*podNetwork{
		"must provide either --selector=<project_selector> or projects":  {change: networkplugin.Change{Action: networkplugin.Isolate}},
		"must provide either --selector=<project_selector> or projects ": {projects: []string{"shop"}, selector: "a=b"},
		"must provide --to=<project_name>":                               {projects: []string{"shop"}, change: networkplugin.Change{Action: networkplugin.Join}},
	} {
		if err := n.validate(); err == nil || err.Error() != strings.TrimSpace(want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestPodNetworkNamesTheNetworkPlugin(t *testing.T) {
	for plugin, want := range map[string]string{
		"":                          "only supported for openshift multitenant network plugin",
		networkplugin.Subnet:        `using plugin: "redhat/openshift-ovs-subnet", managing pod network is only supported`,
		networkplugin.NetworkPolicy: "or isolate projects with network policies",
	} {
		n := &podNetwork{client: networkClient(t, plugin), change: networkplugin.Change{Action: networkplugin.Global}, projects: []string{"shop"}}
		if err := n.findProjects(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
