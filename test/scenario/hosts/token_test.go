package hosts

import (
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

func TestHostThatCannotJoinReportsReason(t *testing.T) {
	c, _ := kit.SharedHost(t)
	host := c.NewHost("third", kit.Options{})
	revoked := c.Token()
	if list := c.MustSlipway("token", "list"); !strings.Contains(list, strings.Split(revoked, ".")[2]) || strings.Contains(list, strings.Split(revoked, ".")[3]) {
		t.Errorf("slipway token list printed\n%s", list)
	}
	c.MustSlipway("token", "revoke", strings.Split(revoked, ".")[2])
	valid := c.Token()
	parts := strings.Split(valid, ".")
	parts[1] = strings.Repeat("0", len(parts[1]))
	for name, tt := range map[string]struct{ url, token, want string }{
		"no token":         {c.APIURL(), "x", "not a complete token"},
		"revoked token":    {c.APIURL(), revoked, "was revoked"},
		"other cluster":    {c.APIURL(), strings.Join(parts, "."), "does not belong to the token's cluster"},
		"wrong port":       {strings.Replace(c.APIURL(), "8443", "8444", 1), valid, "does not respond"},
		"not a URL":        {"master", valid, "is not the address of a master"},
		"another server":   {"https://" + c.Address.String() + ":5000", valid, "is not the address of a Slipway master"},
		"name of the node": {c.APIURL(), c.Token(), "already has a node second"},
	} {
		t.Run(name, func(t *testing.T) {
			host := host
			if tt.want == "already has a node second" {
				host = c.NewHost(second, kit.Options{})
			}
			result := host.Slipway("up", "--join", tt.url, "--token", tt.token)
			if result.Code != 1 || !strings.Contains(result.Stderr, tt.want) {
				t.Errorf("exit code %d, want 1 and %q:\n%s", result.Code, tt.want, result.Stderr)
			}
			if _, err := os.Stat(host.Path("pki")); !os.IsNotExist(err) {
				t.Errorf("the host has credentials: %v", err)
			}
		})
	}
	stop, err := host.Filter("output", "tcp dport 8443")
	if err != nil {
		t.Fatal(err)
	}
	if result := host.Slipway("up", "--join", c.APIURL(), "--token", valid); result.Code != 1 || !strings.Contains(result.Stderr, "check the address, and that the firewall of the master allows the port") {
		t.Errorf("without responses of the master: %+v", result)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	secrets, err := c.Client.CoreV1().Secrets("kube-system").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	tokens := 0
	for _, secret := range secrets.Items {
		for key, value := range secret.Data {
			if strings.Contains(string(value), parts[3]) {
				t.Errorf("the cluster stores the secret of a token in %s, key %s", secret.Name, key)
			}
			if string(value) == parts[2] {
				tokens++
			}
		}
	}
	if tokens != 1 {
		t.Errorf("%d secrets contain the ID of the token", tokens)
	}
}
