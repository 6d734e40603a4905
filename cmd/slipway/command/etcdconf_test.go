package command

import (
	"bytes"
	"strings"
	"testing"
)

// documentConf is an etcd.conf with the environment variables in OpenShift 3.11's administration
// guide.
const documentConf = `# [member]
ETCD_NAME=master-0.example.com
ETCD_LISTEN_PEER_URLS=https://192.0.2.11:2380
ETCD_DATA_DIR=/var/lib/etcd/
ETCD_LISTEN_CLIENT_URLS="https://192.0.2.11:2379,https://127.0.0.1:2379"
#ETCD_QUOTA_BACKEND_BYTES=4294967296

ETCD_INITIAL_CLUSTER="master-1=https://192.0.2.12:2380,master-0=https://192.0.2.11:2380"
ETCD_INITIAL_CLUSTER_STATE="existing"
ETCD_PEER_CERT_FILE=/etc/etcd/peer.crt
ETCD_DEBUG=False
`

func TestEtcdConfBecomesMasterConfig(t *testing.T) {
	variables, err := readVariables(strings.NewReader(documentConf))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := printEtcdConf(&out, variables); err != nil {
		t.Fatal(err)
	}
	want := `etcdConfig:
  address: 192.0.2.11:2379
  peerAddress: 192.0.2.11:2380
  storageDirectory: /var/lib/etcd/
# ETCD_DEBUG: has no counterpart
# ETCD_INITIAL_CLUSTER: not needed, because new members join with: slipway token create --role master, then slipway up --join
# ETCD_INITIAL_CLUSTER_STATE: not needed, because new members join with: slipway token create --role master, then slipway up --join
# ETCD_NAME: a member has the name of its node: nodeName in node-config.yaml
# ETCD_PEER_CERT_FILE: Slipway issues the certificates of etcd, and members always need one
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &out, want)
	}
}

func TestInvalidEtcdConfIsRejected(t *testing.T) {
	if _, err := readVariables(strings.NewReader("A=b\nlisten here")); err == nil || !strings.Contains(err.Error(), `line 2 is "listen here"`) {
		t.Errorf("got %v", err)
	}
	err := printEtcdConf(&bytes.Buffer{}, map[string]string{"ETCD_LISTEN_PEER_URLS": "http://127.0.0.1:2380"})
	if err == nil || !strings.Contains(err.Error(), "etcd serves TLS only") {
		t.Errorf("got %v", err)
	}
}
