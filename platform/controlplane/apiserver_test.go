package controlplane

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	legacyv1 "github.com/openshift/api/legacyconfig/v1"

	"github.com/slipway-platform/slipway/config"
	"github.com/slipway-platform/slipway/pki"
	"github.com/slipway-platform/slipway/platform/host"
)

func TestServiceAccountKeysFollowConfiguration(t *testing.T) {
	for name, tt := range map[string]struct {
		private   string
		public    []string
		signing   string
		verifying []string
	}{
		"own":                       {"", nil, "own", []string{"own.pub"}},
		"own key after another key": {"", []string{"old.pub"}, "own", []string{"own.pub", "old.pub"}},
		"configured":                {"new", []string{"new.pub", "old.pub"}, "new", []string{"new.pub", "old.pub"}},
		"without the public key":    {"new", nil, "new", []string{"new"}},
	} {
		h := &Host{Host: &host.Host{Config: &config.Config{Master: &config.MasterConfig{}}}}
		h.Credentials = &pki.Credentials{Files: pki.Files{ServiceAccountKey: "own", ServiceAccountPublicKey: "own.pub"}}
		h.Master.ServiceAccountConfig = legacyv1.ServiceAccountConfig{PrivateKeyFile: tt.private, PublicKeyFiles: tt.public}
		signing, verifying := h.serviceAccountKeys()
		if diff := cmp.Diff([]any{tt.signing, tt.verifying}, []any{signing, verifying}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
