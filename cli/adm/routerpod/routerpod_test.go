package routerpod

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "github.com/openshift/api/apps/v1"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/slipway-platform/slipway/internal/certtest"
)

// requestOf returns the request for the given `oc adm router` flags.
func requestOf(t *testing.T, args ...string) *Request {
	t.Helper()
	r := &Request{Name: "edge", Namespace: "infra"}
	flags := pflag.NewFlagSet("router", pflag.ContinueOnError)
	r.AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return r
}

// create returns the request's notes and its objects, keyed by KIND/NAME, such as
// Secret/edge-stats.
func create(t *testing.T, args ...string) (map[string]runtime.Object, []string) {
	t.Helper()
	all, notes, err := requestOf(t, args...).Objects()
	if err != nil {
		t.Fatal(err)
	}
	objects := map[string]runtime.Object{}
	for _, object := range all {
		objects[object.GetObjectKind().GroupVersionKind().Kind+"/"+object.(interface{ GetName() string }).GetName()] = object
	}
	return objects, notes
}

// podOf returns the pod's spec and the router's environment variables. The values of secret
// variables are keys in the secret.
func podOf(t *testing.T, objects map[string]runtime.Object) (corev1.PodSpec, map[string]string) {
	t.Helper()
	pod := objects["DeploymentConfig/edge"].(*appsv1.DeploymentConfig).Spec.Template.Spec
	variables := map[string]string{}
	for _, variable := range pod.Containers[0].Env {
		variables[variable.Name] = variable.Value
		if source := variable.ValueFrom; source != nil {
			variables[variable.Name] = source.SecretKeyRef.Name + "/" + source.SecretKeyRef.Key
		}
	}
	return pod, variables
}

func TestVariables(t *testing.T) {
	for _, test := range []struct {
		args []string
		want map[string]string // "" means that the router has no such variable
	}{
		{nil, map[string]string{
			"ROUTER_SERVICE_NAME": "edge", "ROUTER_SERVICE_NAMESPACE": "infra", "ROUTER_SERVICE_HTTP_PORT": "80", "ROUTER_SERVICE_HTTPS_PORT": "443",
			"ROUTER_SERVICE_SNI_PORT": "10444", "ROUTER_SERVICE_NO_SNI_PORT": "10443", "STATS_PORT": "1936", "STATS_USERNAME": "edge-stats/username",
			"STATS_PASSWORD": "edge-stats/password", "ROUTER_LISTEN_ADDR": "0.0.0.0:1936", "ROUTER_STRICT_SNI": "", "ROUTER_WATCH_NAMESPACE": "", "ROUTER_MUTUAL_TLS_AUTH": "",
		}},
		{[]string{"--ports=8080,8443,9000", "--stats-port=8444"}, map[string]string{"ROUTER_SERVICE_SNI_PORT": "8445", "ROUTER_SERVICE_NO_SNI_PORT": "8446", "ROUTER_LISTEN_ADDR": "0.0.0.0:8444"}},
		{[]string{"--ports=8080,65535"}, map[string]string{"ROUTER_SERVICE_SNI_PORT": "10001", "ROUTER_SERVICE_NO_SNI_PORT": "10002"}},
		{[]string{"--stats-port=0"}, map[string]string{"STATS_PORT": "", "STATS_PASSWORD": "", "ROUTER_LISTEN_ADDR": "0.0.0.0:1936"}},
		{[]string{"--subdomain=${name}.a"}, map[string]string{"ROUTER_SUBDOMAIN": "${name}.a", "ROUTER_OVERRIDE_HOSTNAME": ""}},
		{[]string{"--force-subdomain=${name}.b"}, map[string]string{"ROUTER_SUBDOMAIN": "${name}.b", "ROUTER_OVERRIDE_HOSTNAME": "true"}},
		{[]string{"--own-project"}, map[string]string{"ROUTER_WATCH_NAMESPACE": "infra"}},
		{[]string{"--strict-sni", "--disable-namespace-ownership-check"}, map[string]string{"ROUTER_STRICT_SNI": "true", "ROUTER_DISABLE_NAMESPACE_OWNERSHIP_CHECK": "true"}},
		{[]string{"--extended-logging"}, map[string]string{"ROUTER_SYSLOG_ADDRESS": "/var/lib/rsyslog/rsyslog.sock", "ROUTER_LOG_LEVEL": "debug"}},
		{[]string{"--external-host=lb", "--external-host-insecure", "--external-host-password=p"}, map[string]string{
			"ROUTER_EXTERNAL_HOST_HOSTNAME": "lb", "ROUTER_EXTERNAL_HOST_INSECURE": "true", "ROUTER_EXTERNAL_HOST_PASSWORD": "edge-stats/external-host-password",
		}},
		{[]string{"--type=f5-router", "--external-host=lb", "--external-host-username=admin", "--external-host-password=p", "--external-host-vxlan-gw=10.131.0.1/14"}, map[string]string{
			"ROUTER_EXTERNAL_HOST_USERNAME": "admin", "ROUTER_EXTERNAL_HOST_VXLAN_GW_CIDR": "10.131.0.1/14", "ROUTER_SERVICE_HTTP_PORT": "", "DEFAULT_CERTIFICATE_DIR": "",
			"ROUTER_LISTEN_ADDR": "0.0.0.0:1936",
		}},
	} {
		t.Run(fmt.Sprint(test.args), func(t *testing.T) {
			objects, _ := create(t, test.args...)
			_, variables := podOf(t, objects)
			for name, want := range test.want {
				if got := variables[name]; got != want {
					t.Errorf("%s=%q, want %q", name, got, want)
				}
			}
		})
	}
}

func TestObjects(t *testing.T) {
	for _, test := range []struct {
		name, want string // kinds and names in creation order
		args       []string
		note       string // part of the note
	}{
		{
			name: "host network", note: "the host ports 80, 443, 1936",
			want: "ServiceAccount/router ClusterRoleBinding/router-edge-role RoleBinding/router-edge-hostnetwork Secret/edge-stats Service/edge DeploymentConfig/edge",
		},
		{
			name: "own project and network", args: []string{"--own-project", "--host-network=false", "--host-ports=false", "--service-account=web"},
			want: "ServiceAccount/web Role/router-edge-role RoleBinding/router-edge-role Secret/edge-stats Service/edge DeploymentConfig/edge",
		},
		{
			name: "other ports of the host", args: []string{"--ports=8080,8443", "--stats-port=8444"},
			want: "ServiceAccount/router ClusterRoleBinding/router-edge-role RoleBinding/router-edge-hostnetwork Secret/edge-stats Service/edge DeploymentConfig/edge",
		},
		{
			name: "appliance", args: []string{"--type=f5-router", "--external-host=lb", "--external-host-username=admin", "--external-host-password=p", "--external-host-vxlan-gw=10.131.0.1/14"},
			want: "ServiceAccount/router ClusterRoleBinding/router-edge-role ClusterRoleBinding/router-edge-sdn-reader Secret/edge-stats Service/edge DeploymentConfig/edge",
		},
		{
			name: "only ports of the host", args: []string{"--host-network=false", "--ports=8080:80,8443"}, note: "the host ports 80, 1936 can serve",
			want: "ServiceAccount/router ClusterRoleBinding/router-edge-role RoleBinding/router-edge-hostnetwork Secret/edge-stats Service/edge DeploymentConfig/edge",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			all, notes, err := requestOf(t, test.args...).Objects()
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, object := range all {
				names = append(names, object.GetObjectKind().GroupVersionKind().Kind+"/"+object.(interface{ GetName() string }).GetName())
			}
			if got := strings.Join(names, " "); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			if note := strings.Join(notes, "\n"); !strings.Contains(note, test.note) || test.note == "" && note != "" {
				t.Errorf("note %q, want %q", note, test.note)
			}
		})
	}
}

func TestPod(t *testing.T) {
	objects, _ := create(t, "--extended-logging", "--selector=region=infra", "--images=registry/${component}:${version}", "--latest-images", "--replicas=3")
	config := objects["DeploymentConfig/edge"].(*appsv1.DeploymentConfig)
	pod, _ := podOf(t, objects)
	if config.Spec.Replicas != 3 || config.Spec.Strategy.RollingParams.MaxSurge.IntValue() != 0 {
		t.Errorf("the deployment config has %d replicas and the strategy %v", config.Spec.Replicas, config.Spec.Strategy.RollingParams)
	}
	if !pod.HostNetwork || pod.DNSPolicy != corev1.DNSClusterFirstWithHostNet || pod.NodeSelector["region"] != "infra" {
		t.Errorf("the pod has the host network %t, DNS policy %s and node selector %v", pod.HostNetwork, pod.DNSPolicy, pod.NodeSelector)
	}
	if len(pod.Containers) != 2 || pod.Containers[0].Image != "registry/haproxy-router:latest" || pod.Containers[1].Name != "syslog" {
		t.Errorf("the pod has the containers %v", pod.Containers)
	}
	if probe := pod.Containers[0].LivenessProbe; probe.HTTPGet.Host != "localhost" || probe.HTTPGet.Port.IntValue() != 1936 {
		t.Errorf("the liveness probe requests %v", probe.HTTPGet)
	}

	for flag, want := range map[string]int32{"--stats-port=1937": 1937, "--stats-port=0": 0} {
		objects, _ = create(t, "--host-network=false", flag)
		pod, _ = podOf(t, objects)
		ports := pod.Containers[0].Ports
		if stats := ports[len(ports)-1]; stats.Name != "stats" || stats.HostPort != want {
			t.Errorf("%s: the last port is %+v, want the host port %d", flag, stats, want)
		}
	}
	objects, _ = create(t, "--host-network=false", "--host-ports=false")
	pod, _ = podOf(t, objects)
	for _, port := range pod.Containers[0].Ports {
		if port.HostPort != 0 {
			t.Errorf("port %d has the host port %d", port.ContainerPort, port.HostPort)
		}
	}
	if config := objects["DeploymentConfig/edge"].(*appsv1.DeploymentConfig); config.Spec.Strategy.RollingParams.MaxSurge != nil {
		t.Error("a router without host ports replaces pods only after they end")
	}
}

func TestCertificates(t *testing.T) {
	authority := certtest.New(t)
	pair := authority.Issue(t, "router", "*.apps.example.com")
	var content []byte
	for _, file := range []string{pair.CertFile, pair.KeyFile} {
		part, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		content = append(content, part...)
	}
	both := filepath.Join(t.TempDir(), "both.pem")
	if err := os.WriteFile(both, content, 0o600); err != nil {
		t.Fatal(err)
	}

	objects, _ := create(t, "--default-cert="+both, "--mutual-tls-auth=required", "--mutual-tls-auth-ca="+authority.File, "--mutual-tls-auth-crl="+authority.File)
	secret := objects["Secret/edge-certs"].(*corev1.Secret)
	if text := string(secret.Data[corev1.TLSCertKey]); strings.Contains(text, "PRIVATE KEY") || !strings.Contains(text, "CERTIFICATE") {
		t.Error("the certificate in the secret contains more than a certificate")
	}
	if !strings.Contains(string(secret.Data[corev1.TLSPrivateKeyKey]), "PRIVATE KEY") {
		t.Error("the secret has no key")
	}
	if _, requested := objects["Service/edge"].(*corev1.Service).Annotations[servingCertificate]; requested {
		t.Error("the service also requests a certificate")
	}
	_, variables := podOf(t, objects)
	if variables["ROUTER_MUTUAL_TLS_AUTH"] != "required" || variables["ROUTER_MUTUAL_TLS_AUTH_CRL"] != clientDir+"/crl.pem" || objects["ConfigMap/edge-client-ca"] == nil {
		t.Errorf("clients are not verified: %v", variables)
	}

	_, _, err := requestOf(t, "--default-cert="+authority.File).Objects()
	if err == nil || !strings.Contains(err.Error(), "must contain a private key") {
		t.Errorf("a certificate without key: %v", err)
	}
}

func TestRequestReportsAllProblems(t *testing.T) {
	for _, test := range []struct {
		args []string
		want []string // parts of the error
	}{
		{[]string{"--type=nginx", "--replicas=-1", "--mutual-tls-auth=maybe"}, []string{`--type "nginx"`, "--replicas -1", `--mutual-tls-auth "maybe"`, "--mutual-tls-auth-ca"}},
		{[]string{"--router-canonical-hostname=10.0.0.1"}, []string{"canonical hostname must not be an IP address: 10.0.0.1"}},
		{[]string{"--router-canonical-hostname=a_b"}, []string{"invalid canonical hostname: a_b"}},
		{[]string{"--stats-port=70000"}, []string{"--stats-port 70000"}},
		{[]string{"--ports=80"}, []string{"a port for HTTP and one for HTTPS"}},
		{[]string{"--ports=80,http"}, []string{`"http" is neither PORT nor CONTAINER:HOST`}},
		{[]string{"--ports=0,443"}, []string{`"0" is neither`}},
		{[]string{"--ports=8080:80,443"}, []string{"container port 8080 and host port 80 must be equal"}},
		{[]string{"--ports=80,443,80"}, []string{"port 80 appears twice"}},
		{[]string{"--ports=80,1936"}, []string{"is the port of --stats-port"}},
		{[]string{"--labels=a", "--selector==b"}, []string{"parse --labels", "parse --selector"}},
		{[]string{"--mutual-tls-auth=optional", "--mutual-tls-auth-ca=/nonexistent"}, []string{"read --mutual-tls-auth-ca: open /nonexistent"}},
	} {
		t.Run(fmt.Sprint(test.args), func(t *testing.T) {
			_, _, err := requestOf(t, test.args...).Objects()
			for _, want := range test.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want %q", err, want)
				}
			}
		})
	}
	if _, _, err := (&Request{Name: "Edge"}).Objects(); err == nil || !strings.Contains(err.Error(), `parse name "Edge"`) {
		t.Errorf("an invalid name: %v", err)
	}
}

// The pods of a router that configures an external appliance need no ports, because they only send
// requests. Their SSH keys are mounted as files.
func TestPodOfRouterForAppliance(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("key"), 0o600); err != nil {
		t.Fatal(err)
	}
	objects, _ := create(t, "--type=f5-router", "--external-host=lb", "--external-host-username=admin", "--external-host-password=p",
		"--external-host-private-key="+key, "--external-host-known-hosts="+key)
	pod, variables := podOf(t, objects)
	container := pod.Containers[0]
	if pod.HostNetwork || len(container.Ports) != 1 || len(container.Args) != 1 || container.Args[0] != "--type=f5-router" {
		t.Errorf("the pod is %+v", pod)
	}
	if len(pod.Volumes) != 1 || len(pod.Volumes[0].Secret.Items) != 2 ||
		variables["ROUTER_EXTERNAL_HOST_PRIVKEY"] != secretDir+"/router.pem" || variables["ROUTER_EXTERNAL_HOST_KNOWN_HOSTS"] != secretDir+"/known_hosts" {
		t.Errorf("the SSH keys are missing: %+v, %v", pod.Volumes, variables)
	}
}
