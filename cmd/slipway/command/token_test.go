package command

import (
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/slipway-platform/slipway/controller/hosts"
	"github.com/slipway-platform/slipway/internal/certtest"
	"github.com/slipway-platform/slipway/internal/nodegroup"
	"github.com/slipway-platform/slipway/pki/join"
)

func TestTokensMustNameExistingGroup(t *testing.T) {
	client := fake.NewClientset()
	for _, name := range []string{"node-config-compute", "node-config-infra", "other"} {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: nodegroup.Namespace, Name: name}}
		if _, err := client.CoreV1().ConfigMaps(nodegroup.Namespace).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for group, want := range map[string]string{
		"": "", "compute": "", "node-config-infra": "",
		"gpu": "has no ConfigMap node-config-gpu; use one of node-config-compute, node-config-infra, or create it",
		"A b": `--group "A b": `,
	} {
		err := checkGroup(t.Context(), client, group)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("group %q: got %v, want %q", group, err, want)
		}
	}
}

// newSecretStore returns a client that stores the StringData of secrets as Data, as an API server
// does.
func newSecretStore() *fake.Clientset {
	client := fake.NewClientset()
	client.PrependReactor("create", "secrets", func(action clienttesting.Action) (bool, runtime.Object, error) {
		secret := action.(clienttesting.CreateAction).GetObject().(*corev1.Secret)
		secret.Data = map[string][]byte{}
		for key, value := range secret.StringData {
			secret.Data[key] = []byte(value)
		}
		secret.StringData = nil
		return false, nil, nil
	})
	return client
}

func TestEachMasterHasItsOwnToken(t *testing.T) {
	authority, err := os.ReadFile(certtest.New(t).File)
	if err != nil {
		t.Fatal(err)
	}
	for role, want := range map[string]struct{ tokens, uses int }{join.RoleNode: {1, 3}, join.RoleMaster: {3, 1}} {
		tokens := hosts.Tokens{Client: newSecretStore()}
		var out strings.Builder
		info := hosts.TokenInfo{Role: role, Uses: 3, Expiry: time.Now().Add(time.Hour)}
		if err := createTokens(t.Context(), tokens, authority, info, &out); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(out.String(), "\n"); got != want.tokens {
			t.Errorf("role %s: %d tokens are printed, want %d:\n%s", role, got, want.tokens, out.String())
		}
		list, err := tokens.List(t.Context())
		if err != nil || len(list) != want.tokens {
			t.Fatalf("role %s: %d tokens are stored, %v", role, len(list), err)
		}
		for _, token := range list {
			if token.Uses != want.uses || token.Role != role {
				t.Errorf("the stored token is %+v", token)
			}
			if !strings.Contains(out.String(), token.ID) {
				t.Errorf("the token %s is not printed", token.ID)
			}
		}
	}
}
