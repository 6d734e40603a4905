package f5

import (
	"strings"
	"testing"

	routev1 "github.com/openshift/api/route/v1"

	"github.com/slipway-platform/slipway/internal/bigiptest"
	"github.com/slipway-platform/slipway/router/environment"
)

func TestCertificatesAreUploadedOverSSH(t *testing.T) {
	s, simulated := newShop(t), bigiptest.New(t, bigiptest.Options{})
	s.serve(t, "plain", 1)
	shell, other := simulated.Shell(t), simulated.Shell(t)
	edge := &routev1.TLSConfig{Termination: "edge"}
	edge.Certificate, edge.Key = s.pem(t, "edge.example.com")
	state := s.state(route("edge.example.com", "", "plain", edge))
	appliance := func(knownHosts, insecure string) *Appliance {
		config := configOf(t, simulated, map[string]string{"PRIVKEY": shell.PrivateKey, "KNOWN_HOSTS": knownHosts, "INSECURE": insecure})
		config.sshAddress, config.Insecure = shell.Address, true
		return New(config)
	}
	if err := appliance(other.KnownHosts, "false").Sync(t.Context(), state); err == nil || !strings.Contains(err.Error(), "knownhosts: ") {
		t.Errorf("with the key of another host: %v", err)
	}
	for _, a := range []*Appliance{appliance(shell.KnownHosts, "false"), appliance("", "true")} {
		if changes := sync(t, a, simulated, state); changes == 0 || strings.Contains(strings.Join(simulated.Changes(), " "), "unix-rm") {
			t.Error("the files were not uploaded over SSH")
		}
		if got := s.get(simulated, "https://edge.example.com/"); got != "plain" {
			t.Errorf("the route responds: %s", got)
		}
		if files := simulated.Files(); len(files) > 0 {
			t.Errorf("uploaded files still exist: %v", files)
		}
		simulated.Reset()
	}
	variables, err := environment.Read(map[string]string{prefix + "PRIVKEY": shell.PrivateKey})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Read(variables); err == nil || !strings.Contains(err.Error(), "ssh-keyscan") {
		t.Errorf("a key without known hosts: %v", err)
	}
}
