package membership

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-platform/slipway/config"
	"github.com/slipway-platform/slipway/internal/certtest"
	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/network/hostaddr"
	"github.com/slipway-platform/slipway/pki"
	"github.com/slipway-platform/slipway/pki/join"
	"github.com/slipway-platform/slipway/platform/record"
)

const masterConfig = "apiVersion: v1\nkind: MasterConfig\n"

// write creates a file and its parent directories.
func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// newHost returns a host whose master-config.yaml contains the given keys. If keys is "", the file
// does not exist.
func newHost(t *testing.T, keys string) *Host {
	t.Helper()
	dir, err := os.MkdirTemp("", "host") // a short path, because socket paths are limited
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	for _, folder := range []string{"master", "node"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if keys != "" {
		write(t, config.MasterFile(dir), masterConfig+keys)
	}
	c, err := config.Load(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	return &Host{
		Config: c, MembershipFile: filepath.Join(dir, "node", "membership.json"), ClusterFile: filepath.Join(dir, "master", "cluster.json"),
		Credentials: pki.Member{Dir: filepath.Join(dir, "pki"), NodeName: "second"},
	}
}

// newToken returns a token for a cluster with a new CA, and the CA certificate in PEM format.
func newToken(t *testing.T) (join.Token, []byte) {
	t.Helper()
	authority, err := os.ReadFile(certtest.New(t).File)
	if err != nil {
		t.Fatal(err)
	}
	token, err := join.New(authority)
	if err != nil {
		t.Fatal(err)
	}
	return token, authority
}

func expectError(t *testing.T, name string, err error, text string) {
	t.Helper()
	if err == nil != (text == "") || err != nil && !strings.Contains(err.Error(), text) {
		t.Errorf("%s: got %v, want an error with %q", name, err, text)
	}
}

func TestJoinRejectsHostWithCluster(t *testing.T) {
	for name, tt := range map[string]struct {
		membership *record.Membership
		cluster    *record.Cluster
		file, want string
	}{
		"new":                       {nil, nil, "", ""},
		"joined":                    {&record.Membership{}, nil, "", "has already joined a cluster"},
		"one of several masters":    {nil, &record.Cluster{Complete: true}, "", "is already one of the masters"},
		"join was interrupted":      {nil, &record.Cluster{}, "pki/ca.key", ""},
		"has certificates":          {nil, nil, "pki/ca.key", "has its own cluster"},
		"has data of etcd":          {nil, nil, "etcd/member/x", "has its own cluster"},
		"only certificates of node": {nil, nil, "pki/ca.crt", ""},
	} {
		h := newHost(t, "")
		h.Membership, h.Cluster = tt.membership, tt.cluster
		if tt.file != "" {
			write(t, h.path(tt.file), "")
		}
		expectError(t, name, h.CheckNew(), tt.want)
	}
}

func TestJoinFailsWithoutNetwork(t *testing.T) {
	h := newHost(t, "")
	h.Address = hostaddr.OfflineAddress
	_, err := h.Join(t.Context(), "https://192.0.2.1:8443", join.Token{}, false)
	expectError(t, "offline", err, "no address that the master can reach")
}

func TestRepeatedJoinUsesSameKey(t *testing.T) {
	h := newHost(t, "")
	first, err := h.sealKey()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := h.sealKey(); err != nil || !again.Equal(first) {
		t.Errorf("another key, %v", err)
	}
	write(t, h.sealKeyFile(), "damaged")
	if other, err := h.sealKey(); err != nil || other.Equal(first) {
		t.Errorf("after damage: %v", err)
	}
}

func TestNewMasterGetsConfigurationOfOthers(t *testing.T) {
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "users")
	for path, content := range map[string]string{
		outside: "outside", filepath.Join(dir, "pki", "ca.key"): "key", filepath.Join(dir, "pki", "own.key"): "own",
		filepath.Join(dir, "master", "master-config.yaml"): "settings", filepath.Join(dir, "master", "cluster.json"): "record",
		filepath.Join(dir, "master", "large"): strings.Repeat("x", maxSharedFile+1), filepath.Join(dir, "master", "folder", "file"): "below",
	} {
		write(t, path, content)
	}
	paths := []string{outside, filepath.Join(dir, "pki", "ca.key"), filepath.Join(dir, "pki", "none")}
	files, err := SharedFiles(dir, filepath.Join(dir, "master", "cluster.json"), paths)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string][]byte{"pki/ca.key": []byte("key"), "master/master-config.yaml": []byte("settings")}, files); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A master can serve etcd at an address other than the API server's.
func TestOneReachableMemberOfEtcdIsRequired(t *testing.T) {
	h := newHost(t, "")
	own := h.Config.Node.NodeName
	err := h.checkEtcd(t.Context(), "second=https://127.0.0.2:1,third=https://127.0.0.3:1,"+own+"=https://127.0.0.4:1", []string{"127.0.0.1:8443"}, "127.0.0.1:2379")
	expectError(t, "no member", err, "master third does not respond")
	expectError(t, "remedy", err, "allow connections between masters, in both directions")
	if strings.Contains(err.Error(), "127.0.0.4") {
		t.Errorf("the host connects to its own member: %v", err)
	}
}

func TestMemberOfEtcdMustServeClients(t *testing.T) {
	peers, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer peers.Close()
	_, port, err := net.SplitHostPort(componenttest.UnusedAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	cluster, apis := "first=https://"+peers.Addr().String(), []string{"127.0.0.1:8443"}
	expectError(t, "client port", newHost(t, "").checkEtcd(t.Context(), cluster, apis, "0.0.0.0:"+port), "master first does not respond: dial tcp 127.0.0.1:"+port)
	expectError(t, "both ports", newHost(t, "").checkEtcd(t.Context(), cluster, apis, peers.Addr().String()), "")
}

func TestNewMasterGetsFilesOfCluster(t *testing.T) {
	etcd, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer etcd.Close()
	for _, tt := range []struct {
		name, keys string
		files      map[string][]byte
		api        string // address of the API server
		damaged    bool
		want       string // part of the error
	}{
		{"no own configuration", "", map[string][]byte{"pki/ca.key": []byte("key")}, "", false, ""},
		{"equal settings", "routingConfig: {subdomain: apps.example.com}", nil, "127.0.0.1:8443", false, ""},
		{"contradiction", "routingConfig: {subdomain: other.example.com}", nil, "", false, "differs from the cluster's: routingConfig.subdomain"},
		{"closed port of etcd", "", map[string][]byte{"pki/ca.key": []byte("key")}, "127.0.0.2:8443", false, "the etcd member of master second does not respond"},
		{"other address of etcd", "", map[string][]byte{"pki/ca.key": []byte("key")}, "127.0.0.3:8443", false, ""},
		{"path outside the data directory", "", map[string][]byte{"../key": nil}, "", false, "is not a file of the data directory"},
		{"damaged response", "", nil, "", true, "is not for this host and token"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHost(t, tt.keys)
			token, _ := newToken(t)
			key, err := h.sealKey()
			if err != nil {
				t.Fatal(err)
			}
			master := join.Master{Etcd: "first=https://" + etcd.Addr().String() + ",second=https://127.0.0.2:1,lost=https://192.0.2.1:2380", Files: map[string][]byte{
				"master/master-config.yaml": []byte(masterConfig + "routingConfig: {subdomain: apps.example.com}\netcdConfig: {address: '" + etcd.Addr().String() + "'}"),
			}}
			for name, content := range tt.files {
				master.Files[name] = content
			}
			message, err := json.Marshal(master)
			if err != nil {
				t.Fatal(err)
			}
			sealed, err := token.Seal(key.PublicKey().Bytes(), message)
			if err != nil {
				t.Fatal(err)
			}
			if tt.damaged {
				sealed[len(sealed)-1]++
			}
			expectError(t, tt.name, h.becomeMaster(t.Context(), token, key, &join.Response{Masters: []string{tt.api}, Registry: "192.0.2.1:5000", Master: sealed}), tt.want)
			cluster, err := record.ReadCluster(h.ClusterFile)
			if err != nil {
				t.Fatal(err)
			}
			if complete := cluster != nil && cluster.Complete; complete != (tt.want == "") {
				t.Errorf("the record is %+v", cluster)
			}
			if tt.want != "" {
				if _, err := os.Stat(h.path("pki", "ca.key")); err == nil {
					t.Error("the host has a private key of the cluster")
				}
				return
			}
			if diff := cmp.Diff(&record.Cluster{Etcd: master.Etcd, Registry: "192.0.2.1:5000", Complete: true}, cluster); diff != "" {
				t.Errorf("record (-want +got):\n%s", diff)
			}
			for name, want := range master.Files {
				if got, err := os.ReadFile(h.path(name)); err != nil || string(got) != string(want) {
					t.Errorf("%s: got %q, %v", name, got, err)
				}
			}
		})
	}
}

func TestFailedJoinLeavesNoCredentials(t *testing.T) {
	h := newHost(t, "")
	token, authority := newToken(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tt := range map[string]struct {
		masters []string
		want    string
	}{
		"no API server":      {nil, "the master's response lists no API server"},
		"address":            {[]string{"192.0.2.1"}, "read API server address"},
		"no certificate yet": {[]string{"192.0.2.1:8443"}, "did not issue the certificates"},
	} {
		err := h.becomeNode(ctx, "https://127.0.0.1:1", token, true, authority, &join.Response{Masters: tt.masters, ServiceCA: string(authority)})
		expectError(t, name, err, tt.want)
		if _, err := os.Stat(h.Credentials.Dir); err == nil {
			t.Errorf("%s: the host has files in %s", name, h.Credentials.Dir)
		}
		if record, err := record.ReadMembership(h.MembershipFile); err != nil || record != nil {
			t.Errorf("%s: the record is %+v, error %v", name, record, err)
		}
	}
}

func TestBalancerUsesPortOfMasters(t *testing.T) {
	if url, err := localURL([]string{"192.0.2.1:9443", "192.0.2.2:443"}); err != nil || url != "https://127.0.0.1:9443" {
		t.Errorf("got %q, %v", url, err)
	}
}
