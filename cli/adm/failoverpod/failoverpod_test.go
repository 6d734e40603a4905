package failoverpod

import (
	"strings"
	"testing"

	appsv1 "github.com/openshift/api/apps/v1"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// newRequest returns a request with the given arguments and the defaults of all other flags.
func newRequest(t *testing.T, arguments ...string) *Request {
	t.Helper()
	r := &Request{Name: "front", Namespace: "default"}
	flags := pflag.NewFlagSet("ipfailover", pflag.ContinueOnError)
	r.AddFlags(flags)
	if err := flags.Parse(arguments); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestInvalidFlagsAreRejected(t *testing.T) {
	const addresses = "--virtual-ips=192.0.2.1-4"
	tests := []struct {
		name      string
		arguments []string
		want      string // part of the error, or "" if no error is expected
	}{
		{"defaults", []string{addresses}, ""},
		{"no addresses", nil, "you must specify at least one virtual IP address with --virtual-ips"},
		{"invalid addresses", []string{"--virtual-ips=192.0.2.9-4"}, "parse --virtual-ips: "},
		{"other type", []string{addresses, "--type=heartbeat"}, `parse --type "heartbeat": must be keepalived`},
		{"invalid selector", []string{addresses, "--selector=a in (b)"}, "parse --selector: "},
		{"no replica", []string{addresses, "--replicas=0"}, "parse --replicas 0: must be from 1 to 250"},
		{"port out of range", []string{addresses, "--watch-port=70000"}, "parse --watch-port 70000: must be from 0 to 65535"},
		{"no watched port", []string{addresses, "--watch-port=0"}, ""},
		{"interval out of range", []string{addresses, "--check-interval=0"}, "parse --check-interval 0: must be from 1 to 3600"},
		{"highest offset for four addresses", []string{addresses, "--vrrp-id-offset=251"}, ""},
		{"offset too high for four addresses", []string{addresses, "--vrrp-id-offset=252"}, "The vrrp-id-offset must be in the range 0..251"},
		{"same offset for one group", []string{addresses, "--vrrp-id-offset=252", "--virtual-ip-groups=1"}, ""},
		{"more groups than addresses", []string{addresses, "--vrrp-id-offset=251", "--virtual-ip-groups=9"}, ""},
		{"negative offset", []string{addresses, "--vrrp-id-offset=-1"}, "The vrrp-id-offset must be in the range 0..251"},
		{"more addresses than IDs", []string{"--virtual-ips=192.0.2.1-254,198.51.100.1-2"}, "256 addresses need --virtual-ip-groups of at most 255"},
		{"more addresses than IDs in groups", []string{"--virtual-ips=192.0.2.1-254,198.51.100.1-2", "--virtual-ip-groups=8"}, ""},
		{"relative script", []string{addresses, "--check-script=check.sh"}, `parse --check-script "check.sh": must be the path of a script in the pods`},
		{"script with arguments", []string{addresses, "--notify-script=/bin/sh -c x"}, `parse --notify-script "/bin/sh -c x": must be the path`},
		{"preemption with a delay", []string{addresses, "--preemption-strategy=preempt_delay 60"}, ""},
		{"unknown preemption", []string{addresses, "--preemption-strategy=always"}, `parse --preemption-strategy "always": must be`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := newRequest(t, tt.arguments...).Objects()
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("got error %v", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestErrorNamesAllInvalidFlags(t *testing.T) {
	_, err := newRequest(t, "--replicas=0", "--type=heartbeat").Objects()
	if err == nil {
		t.Fatal("got no error")
	}
	for _, want := range []string{"--replicas", "--type", "--virtual-ips"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not name %s: %v", want, err)
		}
	}
}

func TestPodsOfFailover(t *testing.T) {
	r := newRequest(t, "--virtual-ips=192.0.2.1-2", "--selector=zone=edge", "--replicas=3", "--vrrp-id-offset=7",
		"--images=registry.example.com/${component}:${version}", "--latest-images", "--service-account=mover")
	objects, err := r.Objects()
	if err != nil {
		t.Fatal(err)
	}
	account, binding, dc := objects[0].(*corev1.ServiceAccount), objects[1].(*rbacv1.RoleBinding), objects[2].(*appsv1.DeploymentConfig)
	if account.Name != "mover" || binding.Subjects[0].Name != "mover" || binding.Subjects[0].Namespace != "default" {
		t.Errorf("the role is bound to %v, the account is %q", binding.Subjects, account.Name)
	}
	if dc.Spec.Replicas != 3 || dc.Spec.Strategy.Type != appsv1.DeploymentStrategyTypeRecreate {
		t.Errorf("%d replicas with the strategy %s", dc.Spec.Replicas, dc.Spec.Strategy.Type)
	}
	pod := dc.Spec.Template.Spec
	container := pod.Containers[0]
	if !pod.HostNetwork || pod.ServiceAccountName != "mover" || len(pod.NodeSelector) != 1 || pod.NodeSelector["zone"] != "edge" {
		t.Errorf("the pod has host network %t, account %q, nodes %v", pod.HostNetwork, pod.ServiceAccountName, pod.NodeSelector)
	}
	// The host port prevents two pods of the same configuration from running on the same host. Each
	// configuration has a different port.
	if port := container.Ports[0]; port.HostPort != 63007 || port.ContainerPort != 63007 {
		t.Errorf("the port is %+v", port)
	}
	if want := "registry.example.com/keepalived-ipfailover:latest"; container.Image != want {
		t.Errorf("the image is %q, want %q", container.Image, want)
	}
	if container.SecurityContext.Privileged != nil {
		t.Error("the container is privileged")
	}
	want := map[string]string{
		"OPENSHIFT_HA_VIRTUAL_IPS": "192.0.2.1-2", "OPENSHIFT_HA_REPLICA_COUNT": "3", "OPENSHIFT_HA_VRRP_ID_OFFSET": "7",
		"OPENSHIFT_HA_MONITOR_PORT": "80", "OPENSHIFT_HA_CONFIG_NAME": "front", "OPENSHIFT_HA_IPTABLES_CHAIN": "INPUT",
	}
	for _, variable := range container.Env {
		if value, ok := want[variable.Name]; ok && value != variable.Value {
			t.Errorf("%s is %q, want %q", variable.Name, variable.Value, value)
		}
		delete(want, variable.Name)
	}
	if len(want) > 0 {
		t.Errorf("missing variables: %v", want)
	}
}
