package command

import (
	"strings"
	"testing"
)

func TestEtcdctlAcceptsArgumentsOfBothVersions(t *testing.T) {
	tests := []struct{ name, args, want, err string }{
		{"version 3", "--cacert ca.crt member list -w table", "--cacert ca.crt member list -w table", ""},
		{"command without flags", "endpoint health --cluster", "endpoint health --cluster", ""},
		{
			"health in version 2", "--cert-file c --key-file k --ca-file ca --peers=https://a:2379,https://b:2379 cluster-health",
			"--cert=c --key=k --cacert=ca --endpoints=https://a:2379,https://b:2379 endpoint health --cluster", "",
		},
		{
			"new member in version 2", "-C https://a:2379 --ca-file=ca member add b https://b:2380",
			"--endpoints=https://a:2379 --cacert=ca member add b --peer-urls=https://b:2380", "",
		},
		{"other address in version 2", "member update 8e9e05c52164694d https://a:2380", "member update 8e9e05c52164694d --peer-urls=https://a:2380", ""},
		{"value is missing", "member list --peers", "", "the flag --peers needs a value"},
		{"former command", "ls /", "", "`get --prefix --keys-only`"},
		{"restore", "snapshot restore a.db", "", "slipway etcd snapshot restore"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := etcdctlArguments(strings.Fields(tt.args), "3")
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got error %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil || strings.Join(got, " ") != tt.want {
				t.Errorf("got %q, %v, want %q", strings.Join(got, " "), err, tt.want)
			}
		})
	}
	if _, err := etcdctlArguments(nil, "4"); err == nil {
		t.Error("API version 4 is accepted")
	}
}
