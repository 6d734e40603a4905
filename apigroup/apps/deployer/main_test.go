package deployer

import (
	"errors"
	"maps"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/apigroup/apps/rollout"
)

func TestDeployerUsesTokenInEnvironment(t *testing.T) {
	t.Parallel()
	full := map[string]string{
		rollout.TokenVariable: "token", rollout.AuthorityVariable: "certificates", "KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443",
	}
	config, err := connection(func(name string) string { return full[name] })
	if err != nil || config.Host != "https://[fd00::1]:443" || config.BearerToken != "token" || string(config.CAData) != "certificates" {
		t.Errorf("the client configuration is %v, %v", config, err)
	}
	for _, missing := range []string{rollout.TokenVariable, "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"} {
		part := maps.Clone(full)
		delete(part, missing)
		if _, err := connection(func(name string) string { return part[name] }); !errors.Is(err, rest.ErrNotInCluster) {
			t.Errorf("without %s: %v", missing, err)
		}
	}
}
