package config

import (
	"strings"
	"testing"

	legacyv1 "github.com/openshift/api/legacyconfig/v1"
)

func TestEtcdClientInfoMustDescribeOwnMember(t *testing.T) {
	tests := []struct{ name, keys, address, err string }{
		{"defaults", "", "127.0.0.1:4001", ""},
		{
			"port of OpenShift 3.11",
			"masterPublicURL: https://master.example.com:8443\n" +
				"etcdClientInfo: {ca: master.etcd-ca.crt, certFile: master.etcd-client.crt, keyFile: master.etcd-client.key, urls: ['https://master.example.com:2379']}",
			"127.0.0.1:2379", "",
		},
		{"own address", "kubernetesMasterConfig: {masterIP: 192.0.2.1}\netcdClientInfo: {urls: ['https://192.0.2.1:2379']}", "127.0.0.1:2379", ""},
		{"same port", "etcdConfig: {address: '127.0.0.1:4001'}\netcdClientInfo: {urls: ['https://localhost:4001']}", "127.0.0.1:4001", ""},
		{"other port", "etcdConfig: {address: '127.0.0.1:4001'}\netcdClientInfo: {urls: ['https://localhost:2379']}", "", "etcdConfig.address has the port 4001"},
		{"external etcd", "etcdClientInfo: {urls: ['https://localhost:2379', 'https://etcd.example.com:2379']}", "", "etcdClientInfo.urls[1]: is \"https://etcd.example.com:2379\", but each master runs its own etcd member"},
		{"without TLS", "etcdClientInfo: {urls: ['http://localhost:2379']}", "", "must be a URL such as https://127.0.0.1:4001"},
		{"own certificate", "etcdClientInfo: {certFile: /etc/etcd/mine.crt}", "", "etcd uses the certificates and keys that Slipway issues"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := loadText(t, masterKind, tt.keys)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if c.Master.EtcdAddress() != tt.address || len(c.Ignored()) > 0 {
				t.Errorf("etcd serves clients on %s, want %s; ignored: %v", c.Master.EtcdAddress(), tt.address, c.Ignored())
			}
		})
	}
}

func TestEtcdEndpointIsOnThisHost(t *testing.T) {
	tests := []struct {
		name, address string
		several       bool
		want          string
	}{
		{"loopback address", "127.0.0.1:4001", false, "https://127.0.0.1:4001"},
		{"loopback address of one of several masters", "127.0.0.1:4001", true, "https://127.0.0.1:4001"},
		{"address of the host", "192.0.2.1:2379", false, "https://192.0.2.1:2379"},
		{"address of one of several masters", "192.0.2.1:2379", true, "https://127.0.0.1:2379"},
		{"all addresses", "0.0.0.0:2379", false, "https://127.0.0.1:2379"},
		{"all IPv6 addresses", "[::]:2379", false, "https://127.0.0.1:2379"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := &MasterConfig{}
			c.EtcdConfig = &legacyv1.EtcdConfig{Address: tt.address}
			if got := c.EtcdEndpoint(tt.several); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestInvalidEtcdSettingsAreRejected(t *testing.T) {
	for keys, want := range map[string]string{
		"slipway: {etcdSnapshots: {interval: 10ms}}":  "slipway.etcdSnapshots.interval: is 10ms, must be at least 1s",
		"slipway: {etcdSnapshots: {keep: -1}}":        "slipway.etcdSnapshots.keep: is -1, must be at least 1",
		"slipway: {etcdMaintenance: {interval: 1ms}}": "slipway.etcdMaintenance.interval: is 1ms, must be at least 1s",
		"slipway: {etcdMaintenance: {freeSpace: 5%}}": "slipway.etcdMaintenance.freeSpace: is \"5%\", must be a quantity such as 256Mi",
	} {
		if _, err := loadText(t, masterKind, keys); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", keys, err, want)
		}
	}
}
