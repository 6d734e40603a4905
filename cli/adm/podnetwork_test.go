package adm

import (
	"strings"
	"testing"

	networkv1 "github.com/openshift/api/network/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic/fake"
)

func TestPodNetworkNamesTheNetworkPlugin(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := networkv1.Install(scheme); err != nil {
		t.Fatal(err)
	}
	network := &networkv1.ClusterNetwork{ObjectMeta: metav1.ObjectMeta{Name: "default"}, PluginName: "redhat/openshift-ovs-subnet"}
	for want, client := range map[string]*fake.FakeDynamicClient{
		"to separate projects, create network policies":                                       fake.NewSimpleDynamicClient(scheme),
		`using plugin: "redhat/openshift-ovs-subnet", managing pod network is only supported`: fake.NewSimpleDynamicClient(scheme, network),
	} {
		if err := checkPlugin(t.Context(), client); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
