package serviceaccount

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

func TestTokenComesFromSecretOfAccount(t *testing.T) {
	meta := func(name, of string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Namespace: "shop", Annotations: map[string]string{corev1.ServiceAccountNameKey: of}}
	}
	token := func(text string) map[string][]byte {
		return map[string][]byte{corev1.ServiceAccountTokenKey: []byte(text)}
	}
	a := account{namespace: "shop", name: "robot", client: fake.NewClientset(
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot", Namespace: "shop"}},
		&corev1.Secret{ObjectMeta: meta("a", "other"), Type: corev1.SecretTypeServiceAccountToken, Data: token("other's")},
		&corev1.Secret{ObjectMeta: meta("b", "robot"), Type: corev1.SecretTypeServiceAccountToken},
		&corev1.Secret{ObjectMeta: meta("c", "robot"), Type: corev1.SecretTypeServiceAccountToken, Data: token("robot's")},
	)}
	if got, lasting, err := a.token(t.Context()); got != "robot's" || !lasting || err != nil {
		t.Errorf("token %q, lasting %t, %v", got, lasting, err)
	}
	a.name = "nobody"
	if _, _, err := a.token(t.Context()); err == nil || !strings.Contains(err.Error(), `"nobody" not found`) {
		t.Errorf("an account that does not exist: %v", err)
	}
}

func TestServiceAccountKubeconfigContainsOnlyToken(t *testing.T) {
	present := api.Config{
		Clusters:       map[string]*api.Cluster{"c": {Server: "https://master:8443"}, "d": {Server: "https://other:8443"}},
		AuthInfos:      map[string]*api.AuthInfo{"me": {Token: "mine"}},
		Contexts:       map[string]*api.Context{"now": {Cluster: "c", AuthInfo: "me", Namespace: "x"}},
		CurrentContext: "now",
	}
	content, err := account{name: "robot"}.kubeconfig(present, "robot's", "shop")
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.Load(content)
	if err != nil {
		t.Fatal(err)
	}
	context := config.Contexts[config.CurrentContext]
	if config.Clusters[context.Cluster].Server != "https://master:8443" || config.AuthInfos[context.AuthInfo].Token != "robot's" || context.Namespace != "shop" {
		t.Errorf("made\n%s", content)
	}
	if len(config.AuthInfos) != 1 || len(config.Clusters) != 1 {
		t.Errorf("the kubeconfig contains more than the token's context:\n%s", content)
	}
	if _, err := (account{}).kubeconfig(api.Config{}, "", ""); err == nil {
		t.Error("a kubeconfig without a cluster is accepted")
	}
}
