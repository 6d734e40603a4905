package node

import (
	"net"
	"path/filepath"
	"testing"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/features"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"

	"github.com/slipway-platform/slipway/internal/arguments"
	"github.com/slipway-platform/slipway/internal/diskspace"
)

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
	// Without the check, a pod can run any image on the node by its name.
	verify := kubeletconfig.ImagePullCredentialsVerificationPolicy(c.ImagePullCredentialsVerificationPolicy)
	if verify != kubeletconfig.NeverVerifyPreloadedImages || !utilfeature.DefaultFeatureGate.Enabled(features.KubeletEnsureSecretPulledImages) {
		t.Errorf("kubelet does not check the right to images of the node: %q", verify)
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
