package membership

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/slipway-platform/slipway/controller/hosts"
	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/pki/join"
	"github.com/slipway-platform/slipway/platform/record"
)

// newMaster returns the only master of a cluster, its client, and a function that reports whether
// its control plane has stopped.
func newMaster(t *testing.T) (master *Master, client *fake.Clientset, stopped func() bool) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "master"), 0o700); err != nil {
		t.Fatal(err)
	}
	client = fake.NewClientset()
	expanded := false
	return &Master{
		DataDir: dir, NodeName: "first", Address: netip.MustParseAddr("192.0.2.1"), ClusterFile: filepath.Join(dir, "master", "cluster.json"),
		ClientAddress: "0.0.0.0:4001", PeerAddress: "0.0.0.0:7001", Client: client, Expand: func() { expanded = true },
	}, client, func() bool { return expanded }
}

func TestSingleMasterBecomesOneOfSeveralFirst(t *testing.T) {
	master, _, stopped := newMaster(t)
	if _, err := master.Admit(t.Context(), join.Request{NodeName: "second", Address: "192.0.2.2"}); !errors.Is(err, hosts.ErrPreparing) {
		t.Errorf("got error %v, want %v", err, hosts.ErrPreparing)
	}
	cluster, err := record.ReadCluster(master.ClusterFile)
	if err != nil || cluster == nil || !cluster.Complete {
		t.Errorf("the record is %+v, error %v", cluster, err)
	}
	if !stopped() {
		t.Error("the control plane still runs")
	}
}

func TestMasterWithConfigFileAdmitsNoMasters(t *testing.T) {
	master, _, stopped := newMaster(t)
	master.ConfigFile = "/etc/slipway.yaml"
	_, err := master.Admit(t.Context(), join.Request{NodeName: "second"})
	var refusal hosts.Refusal
	if !errors.As(err, &refusal) {
		t.Errorf("got error %v, want a refusal", err)
	}
	expectError(t, "file", err, "/etc/slipway.yaml")
	expectError(t, "remedy", err, filepath.Join(master.DataDir, "master", "master-config.yaml"))
	if stopped() {
		t.Error("the control plane has stopped")
	}
}

func TestFailedPreparationKeepsControlPlane(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*Master, *fake.Clientset)
		err    string
	}{
		"the master cannot be recorded in the cluster": {func(_ *Master, client *fake.Clientset) {
			client.PrependReactor("*", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewInternalError(errors.New("no disk space"))
			})
		}, "no disk space"},
		"the record cannot be written": {func(m *Master, _ *fake.Clientset) {
			m.ClusterFile = filepath.Join(m.DataDir, "missing", "cluster.json")
		}, "missing"},
	} {
		master, client, stopped := newMaster(t)
		tt.change(master, client)
		_, err := master.Admit(t.Context(), join.Request{NodeName: "second"})
		expectError(t, name, err, tt.err)
		if stopped() {
			t.Errorf("%s: the control plane has stopped", name)
		}
	}
}

func TestInvalidPeerAddressIsReported(t *testing.T) {
	master, _, _ := newMaster(t)
	master.Several, master.PeerAddress = true, "0.0.0.0"
	_, err := master.Admit(t.Context(), join.Request{NodeName: "second", Address: "192.0.2.2"})
	expectError(t, "no port", err, "read etcd address")
}

// A host has no member yet if the masters cannot connect to it, so it can repeat the request.
func TestHostBehindFirewallBecomesNoMember(t *testing.T) {
	master, _, _ := newMaster(t)
	master.Several = true
	_, err := master.Admit(t.Context(), join.Request{NodeName: "second", Address: unreachable})
	var refusal hosts.Refusal
	if !errors.As(err, &refusal) {
		t.Errorf("got error %v, want a refusal", err)
	}
	expectError(t, "port", err, "master first cannot connect to this host: dial tcp "+unreachable+":4001")
	expectError(t, "remedy", err, "allow connections between masters, in both directions")
}

// unreachable is the broadcast address of the loopback device, to which the kernel makes no TCP
// connections.
const unreachable = "127.255.255.255"

func TestRefusedConnectionMeansOpenPort(t *testing.T) {
	_, unused, err := net.SplitHostPort(componenttest.UnusedAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := checkFirewall(t.Context(), "127.0.0.1", unused); err != nil {
		t.Errorf("port without a server: %v", err)
	}
}
