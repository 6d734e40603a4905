package masters

import (
	"fmt"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
	"github.com/slipway-platform/slipway/test/kit/flannel"
)

// flannelPrefix is the prefix of flannel's keys in etcd. flannel only stores its subnet there; the
// pods in this cluster use Slipway's network.
const flannelPrefix = "/coreos.com/network"

// agent is a flanneld on a host that stores its subnet in the masters' etcd.
type agent struct {
	host   *kit.Cluster
	files  flannel.Files
	daemon *flannel.Daemon
	pki    string // path prefix of the files with etcd's certificates
}

// newFlannel stores flannel's settings in etcd, but does not start flanneld.
func newFlannel(t *testing.T, master, host *kit.Cluster) *agent {
	t.Helper()
	master.MustSlipway("etcdctl", "put", flannelPrefix+"/config", `{"Network": "10.200.0.0/16", "EnableNFTables": true, "Backend": {"Type": "host-gw"}}`)
	return &agent{host: host, files: flannel.NewFiles(t), pki: master.Path("pki", "master")}
}

// start starts or restarts flanneld, which connects to the etcd members of the given masters.
func (a *agent) start(t *testing.T, masters ...*kit.Cluster) {
	t.Helper()
	if a.daemon != nil {
		a.daemon.Stop()
	}
	var endpoints []string
	for _, master := range masters {
		endpoints = append(endpoints, fmt.Sprintf("https://%s:2379", master.Address))
	}
	a.daemon = flannel.Start(t, a.host, a.files,
		"FLANNEL_ETCD_ENDPOINTS="+strings.Join(endpoints, ","), "FLANNEL_ETCD_PREFIX="+flannelPrefix,
		fmt.Sprintf(`FLANNEL_OPTIONS="-etcd-cafile=%[1]s.etcd-ca.crt -etcd-certfile=%[1]s.etcd-client.crt -etcd-keyfile=%[1]s.etcd-client.key"`, a.pki))
}
