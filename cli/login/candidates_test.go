package login

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd/api"
)

func TestTokensAreOnlySentToTheirServer(t *testing.T) {
	const here, elsewhere = "https://here.example.com:8443", "https://elsewhere.example.com:8443"
	config := api.NewConfig()
	config.Clusters["here"], config.Clusters["elsewhere"] = &api.Cluster{Server: here}, &api.Cluster{Server: elsewhere}
	config.AuthInfos["alice/here"] = &api.AuthInfo{Token: "token-here"}
	config.AuthInfos["alice/elsewhere"] = &api.AuthInfo{Token: "token-elsewhere"}
	config.AuthInfos["system:admin/here"] = &api.AuthInfo{ClientCertificateData: []byte("certificate")}
	config.Contexts["shop/here/alice"] = &api.Context{Cluster: "here", AuthInfo: "alice/here"}
	config.Contexts["shop/elsewhere/alice"] = &api.Context{Cluster: "elsewhere", AuthInfo: "alice/elsewhere"}
	config.CurrentContext = "shop/here/alice"
	for name, tt := range map[string]struct {
		user, server string
		want         []string
	}{
		"current context":                   {"", here, []string{"token-here"}},
		"current context of another server": {"", elsewhere, nil},
		"user of this server":               {"alice", here, []string{"token-here"}},
		"user of another server":            {"alice", elsewhere, []string{"token-elsewhere"}},
		"user of other servers only":        {"alice", "https://new.example.com:8443", nil},
		"client certificate":                {"system:admin", elsewhere, []string{"certificate"}},
	} {
		o := &loginOptions{user: tt.user, config: config, merged: config}
		var got []string
		for _, info := range o.candidates(&api.Cluster{Server: tt.server}) {
			got = append(got, info.Token+string(info.ClientCertificateData))
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: credentials (-want +got):\n%s", name, diff)
		}
	}
}
