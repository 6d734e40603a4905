package node

import (
	"flag"
	"maps"
	"net"
	"path/filepath"
	"testing"
	"time"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/kubelet"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"

	"github.com/slipway-platform/slipway/internal/arguments"
	"github.com/slipway-platform/slipway/internal/diskspace"
)

func TestUsageIsReadFromContainerdOfHost(t *testing.T) {
	if _, err := newKubelet(t, nil).server(); err != nil {
		t.Fatal(err)
	}
	if socket := flag.Lookup("containerd").Value.String(); socket != "/run/containerd.sock" {
		t.Errorf("cAdvisor connects to %q", socket)
	}
}

func TestKubeletDelegatesPullsToImageService(t *testing.T) {
	dir := t.TempDir()
	k := &Kubelet{
		NodeName: "node", NodeIP: net.IPv4(192, 0, 2, 1), BindAddress: net.IPv4zero, Port: 10250, CgroupRoot: "/slipway",
		RootDirectory: dir, CertDirectory: filepath.Join(dir, "pki"), PodLogsDirectory: filepath.Join(dir, "logs"),
		RuntimeSocket: "/run/containerd.sock", ImageSocket: "/run/images.sock", DNSIP: "169.254.20.10", Domain: "cluster.local",
	}
	server, err := k.server()
	if err != nil {
		t.Fatal(err)
	}
	c := server.KubeletConfiguration
	if c.SerializeImagePulls || c.MaxParallelImagePulls != nil || c.RegistryPullQPS != 0 {
		t.Errorf("kubelet limits pulls: serialize %t, parallel %v, QPS %d", c.SerializeImagePulls, c.MaxParallelImagePulls, c.RegistryPullQPS)
	}
	// Without this check, a pod can run any image on the node if it knows the image's name.
	verify := kubeletconfig.ImagePullCredentialsVerificationPolicy(c.ImagePullCredentialsVerificationPolicy)
	if verify != kubeletconfig.NeverVerifyPreloadedImages || !utilfeature.DefaultFeatureGate.Enabled(features.KubeletEnsureSecretPulledImages) {
		t.Errorf("the kubelet does not check permission to use images that the node already has: %q", verify)
	}
}

func TestKubeletFollowsNodeConfig(t *testing.T) {
	dir, minute := t.TempDir(), time.Minute
	k := &Kubelet{
		NodeName: "node", NodeIP: net.IPv4(192, 0, 2, 1), BindAddress: net.IPv4zero, Port: 10250, CgroupRoot: "/slipway",
		RootDirectory: dir, CertDirectory: filepath.Join(dir, "pki"), PodLogsDirectory: filepath.Join(dir, "logs"),
		RuntimeSocket: "/run/containerd.sock", ImageSocket: "/run/images.sock", DNSIP: "169.254.20.10", Domain: "cluster.local",
	}
	standard, err := k.server()
	if err != nil {
		t.Fatal(err)
	}
	// These are the sample values from OpenShift 3.11's guide.
	k.AuthenticationTTL, k.AuthorizationTTL = &minute, &minute
	k.Connection = Connection{ContentType: "application/json", QPS: 19.5, Burst: 40}
	k.ManifestDirectory, k.ManifestInterval = "/pods", time.Second
	changed, err := k.server()
	if err != nil {
		t.Fatal(err)
	}
	got := changed.KubeletConfiguration
	if got.Authentication.Webhook.CacheTTL.Duration != minute || got.Authorization.Webhook.CacheAuthorizedTTL.Duration != minute ||
		got.ContentType != "application/json" || got.KubeAPIQPS != 20 || got.KubeAPIBurst != 40 || got.FileCheckFrequency.Duration != time.Second {
		t.Errorf("configuration %+v", got)
	}
	defaults := standard.KubeletConfiguration
	if defaults.KubeAPIQPS != 50 || defaults.KubeAPIBurst != 100 || defaults.FileCheckFrequency.Duration != 20*time.Second ||
		defaults.Authentication.Webhook.CacheTTL.Duration != 2*minute || defaults.Authorization.Webhook.CacheAuthorizedTTL.Duration != 5*minute {
		t.Errorf("without settings: %+v", defaults)
	}
	k.Arguments = arguments.Map{"kube-api-qps": {"70"}}
	if argument, err := k.server(); err != nil || argument.KubeAPIQPS != 70 {
		t.Errorf("an argument does not override the setting: %v", err)
	}
}

// newKubelet returns a kubelet with the given arguments.
func newKubelet(t *testing.T, values arguments.Map) *Kubelet {
	t.Helper()
	dir := t.TempDir()
	return &Kubelet{
		NodeName: "node", NodeIP: net.IPv4(192, 0, 2, 1), BindAddress: net.IPv4zero, Port: 10250, CgroupRoot: "/slipway",
		RootDirectory: dir, CertDirectory: filepath.Join(dir, "pki"), PodLogsDirectory: filepath.Join(dir, "logs"),
		RuntimeSocket: "/run/containerd.sock", ImageSocket: "/run/images.sock", DNSIP: "169.254.20.10", Domain: "cluster.local",
		Arguments: values,
	}
}

// TestArgumentsOfGuideConfigureKubelet uses the arguments from OpenShift 3.11 Cluster
// Administration, section 2.11.1.
func TestArgumentsOfGuideConfigureKubelet(t *testing.T) {
	server, err := newKubelet(t, arguments.Map{
		"max-pods": {"40"}, "resolv-conf": {"/etc/resolv.conf"}, "image-gc-high-threshold": {"90"}, "image-gc-low-threshold": {"80"},
		"kube-api-qps": {"20"}, "kube-api-burst": {"40"},
	}).server()
	if err != nil {
		t.Fatal(err)
	}
	c := server.KubeletConfiguration
	if c.MaxPods != 40 || c.ResolverConfig != "/etc/resolv.conf" || c.ImageGCHighThresholdPercent != 90 || c.ImageGCLowThresholdPercent != 80 ||
		c.KubeAPIQPS != 20 || c.KubeAPIBurst != 40 {
		t.Errorf("configuration %+v", c)
	}
	if err := newKubelet(t, arguments.Map{"image-gc-high-threshold": {"70"}, "image-gc-low-threshold": {"80"}}).Check(); err == nil {
		t.Error("thresholds in the wrong order are accepted")
	}
}

func TestKubeletDoesNotSetRoleLabels(t *testing.T) {
	values := arguments.Map{"node-labels": {"node-role.kubernetes.io/infra=true,zone=east", "topology.kubernetes.io/zone=a,example.k8s.io/x=y"}}
	server, err := newKubelet(t, values).server()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"zone": "east", "topology.kubernetes.io/zone": "a"}
	if !maps.Equal(server.NodeLabels, want) {
		t.Errorf("labels are %v, want %v", server.NodeLabels, want)
	}
	if server, err = newKubelet(t, arguments.Map{"node-labels": {"node-role.kubernetes.io/infra=true"}}).server(); err != nil || len(server.NodeLabels) > 0 {
		t.Errorf("labels are %v, want none: %v", server.NodeLabels, err)
	}
}

func TestPullsLeaveReserveForEviction(t *testing.T) {
	const gi = 1 << 30
	for name, tt := range map[string]struct {
		arguments arguments.Map
		want      diskspace.Reserve
	}{
		"default":    {nil, diskspace.Reserve{Share: 0.16, Inodes: 0.06}},
		"percentage": {arguments.Map{"eviction-hard": {"nodefs.available<1%,imagefs.available<20%"}}, diskspace.Reserve{Share: 0.21, Inodes: 0.01}},
		"quantity":   {arguments.Map{"eviction-hard": {"imagefs.available<2Gi", "nodefs.available<1Gi,nodefs.inodesFree<7%"}}, diskspace.Reserve{Bytes: 2 * gi, Share: 0.01, Inodes: 0.08}},
	} {
		got, err := PullReserve(tt.arguments)
		const accuracy = 1e-6
		if err != nil || got.Bytes != tt.want.Bytes || max(got.Share-tt.want.Share, tt.want.Share-got.Share) > accuracy || max(got.Inodes-tt.want.Inodes, tt.want.Inodes-got.Inodes) > accuracy {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, tt.want)
		}
	}
	if _, err := PullReserve(arguments.Map{"eviction-hard": {"imagefs.available<much"}}); err == nil {
		t.Error("an invalid threshold is accepted")
	}
}

// TestRestartsAreDelayedByAtMostFiveMinutes checks upstream's settings. Before the delay reaches
// five minutes, the delays are 10, 20, 40, 80 and 160 seconds.
func TestRestartsAreDelayedByAtMostFiveMinutes(t *testing.T) {
	server, err := newKubelet(t, nil).server()
	if err != nil {
		t.Fatal(err)
	}
	longest := kubelet.MaxCrashLoopBackOff
	if node := server.CrashLoopBackOff.MaxContainerRestartPeriod; node != nil {
		longest = node.Duration
	}
	if longest != 5*time.Minute || utilfeature.DefaultFeatureGate.Enabled(features.ReduceDefaultCrashLoopBackOffDecay) {
		t.Errorf("a restart is delayed by at most %s", longest)
	}
}
