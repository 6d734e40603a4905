package deployment

import (
	"testing"

	appsv1 "github.com/openshift/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/apigroup/apps/rollout"
)

// TestDeployerPodHasTokenInEnvironment checks how a deployer pod gets its API token. The pod has
// the usual token volume only if the account has no token secret, or if the strategy has custom
// parameters.
func TestDeployerPodHasTokenInEnvironment(t *testing.T) {
	token := func(name, of string, data map[string][]byte) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Annotations: map[string]string{corev1.ServiceAccountUIDKey: of}},
			Type:       corev1.SecretTypeServiceAccountToken, Data: data,
		}
	}
	full := map[string][]byte{corev1.ServiceAccountTokenKey: []byte("token"), corev1.ServiceAccountRootCAKey: []byte("certificates")}
	login := token("login", "us", full)
	login.Type = corev1.SecretTypeDockercfg
	for name, tt := range map[string]struct {
		custom  *appsv1.CustomDeploymentStrategyParams
		account bool
		secrets []*corev1.Secret
		want    string
	}{
		"no account":                   {nil, false, nil, ""},
		"nothing":                      {nil, true, nil, ""},
		"token is missing":             {nil, true, []*corev1.Secret{token("a", "us", nil)}, ""},
		"secret of a previous account": {nil, true, []*corev1.Secret{token("a", "before", full)}, ""},
		"no token":                     {nil, true, []*corev1.Secret{login}, ""},
		"a token":                      {nil, true, []*corev1.Secret{login, token("a", "us", full)}, "a"},
		"a token, another deployer":    {&appsv1.CustomDeploymentStrategyParams{Image: "mine:1"}, true, []*corev1.Secret{token("a", "us", full)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dc := configuration(1)
			dc.Spec.Strategy.CustomParams = tt.custom
			l := newLoops(t, dc, []*corev1.ReplicationController{deployed(t, dc, appsv1.DeploymentStatusNew)})
			us := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "deployer", UID: "us"}, Secrets: []corev1.ObjectReference{{Name: "gone"}}}
			for _, secret := range tt.secrets {
				us.Secrets = append(us.Secrets, corev1.ObjectReference{Name: secret.Name})
				if _, err := l.core.Secrets("shop").Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			if tt.account {
				if _, err := l.core.ServiceAccounts("shop").Create(t.Context(), us, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			if err := l.deployer.reconcile(t.Context(), key("web-1")); err != nil {
				t.Fatal(err)
			}
			pod, err := l.core.Pods("shop").Get(t.Context(), "web-1-deploy", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			from := map[string]string{}
			for _, variable := range pod.Spec.Containers[0].Env {
				if variable.ValueFrom != nil {
					from[variable.Name] = variable.ValueFrom.SecretKeyRef.Name + "/" + variable.ValueFrom.SecretKeyRef.Key
				}
			}
			mounted := ptr.Deref(pod.Spec.AutomountServiceAccountToken, true)
			switch {
			case tt.want == "" && (!mounted || len(from) > 0):
				t.Errorf("mounted: %t, variables %v", mounted, from)
			case tt.want != "" && (mounted || from[rollout.TokenVariable] != tt.want+"/token" || from[rollout.AuthorityVariable] != tt.want+"/ca.crt"):
				t.Errorf("mounted: %t, variables %v", mounted, from)
			}
		})
	}
}
