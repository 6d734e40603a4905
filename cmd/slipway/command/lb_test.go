package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/router/haproxy"
)

func TestBalancerIsConfiguredForNamedMasters(t *testing.T) {
	output, err := verbOutput(t.TempDir(), "lb", "config", "--listen", "*:443", "--master", "m1=192.0.2.11", "--master", "192.0.2.12:9443", "--master", "m3=[2001:db8::3]:8443")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"bind *:443", "  server m1 192.0.2.11:8443\n", "  server 192.0.2.12 192.0.2.12:9443\n", "  server m3 [2001:db8::3]:8443\n"} {
		if !strings.Contains(output, want) {
			t.Errorf("%q is missing in\n%s", want, output)
		}
	}
}

func TestBalancerFileIsReplacedOnlyIfItChanges(t *testing.T) {
	if _, err := haproxy.FindProgram(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "haproxy.cfg")
	config := func(masters ...string) (string, error) {
		args := []string{"lb", "config", "--output", file}
		for _, master := range masters {
			args = append(args, "--master", master)
		}
		return verbOutput(dir, args...)
	}
	for _, step := range []struct {
		masters []string
		want    string
	}{
		{[]string{"m1=192.0.2.11"}, "has changed; apply it with: systemctl reload haproxy"},
		{[]string{"m1=192.0.2.11"}, "is unchanged"},
		{[]string{"m1=192.0.2.11", "m2=192.0.2.12"}, "has changed"},
	} {
		if output, err := config(step.masters...); err != nil || output == "" || !strings.Contains(output, file+" "+step.want) {
			t.Errorf("masters %q: %v, output %q, want %q", step.masters, err, output, step.want)
		}
	}
	content, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(content), "server m2 192.0.2.12:8443") {
		t.Errorf("%v, the file is\n%s", err, content)
	}
}

func TestBalancerWithoutMastersNamesRemedy(t *testing.T) {
	if _, err := verbOutput(t.TempDir(), "lb", "config"); err == nil || !strings.Contains(err.Error(), "to specify them, use --master") {
		t.Errorf("got %v", err)
	}
}

func TestMasterHasNameOfItsNode(t *testing.T) {
	node := func(name string, addresses ...corev1.NodeAddress) corev1.Node {
		return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Addresses: addresses}}
	}
	nodes := []corev1.Node{
		node("first", corev1.NodeAddress{Type: corev1.NodeHostName, Address: "192.0.2.12"}, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: "192.0.2.11"}),
		node("second", corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: "192.0.2.12"}),
	}
	for address, want := range map[string]string{"192.0.2.11:8443": "first", "192.0.2.12:8443": "second", "192.0.2.13:8443": "", "192.0.2.11": ""} {
		if got := nodeWith(nodes, address); got != want {
			t.Errorf("%s: got %q, want %q", address, got, want)
		}
	}
}
