package serviceaccount

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/controller"
)

// cluster runs the controller with a fake API server that ignores field selectors. refresh updates
// the caches.
type cluster struct {
	*Secrets
	t      *testing.T
	server *fake.Clientset
}

func newCluster(t *testing.T, objects ...runtime.Object) *cluster {
	server := fake.NewClientset(objects...)
	server.PrependReactor("list", "secrets", func(action clienttesting.Action) (bool, runtime.Object, error) {
		list := action.(clienttesting.ListAction)
		object, err := server.Tracker().List(list.GetResource(), corev1.SchemeGroupVersion.WithKind("Secret"), list.GetNamespace())
		if err != nil {
			return true, nil, err
		}
		secrets := object.(*corev1.SecretList)
		secrets.Items = slices.DeleteFunc(secrets.Items, func(secret corev1.Secret) bool {
			return !list.GetListRestrictions().Fields.Matches(fields.Set{"type": string(secret.Type)})
		})
		return true, secrets, nil
	})
	server.PrependReactor("create", "secrets", func(action clienttesting.Action) (bool, runtime.Object, error) {
		secret := action.(clienttesting.CreateAction).GetObject().(*corev1.Secret)
		secret.Name, secret.UID = names.SimpleNameGenerator.GenerateName(secret.GenerateName), uuid.NewUUID()
		return false, nil, nil // the fake server then stores the changed object
	})
	informer := func() informers.SharedInformerFactory { return informers.NewSharedInformerFactory(server, 0) }
	s := &Secrets{
		Domain: "cluster.local", Hosts: []string{"registry.example.com"}, client: server, accounts: informer().Core().V1().ServiceAccounts().Informer(),
		tokens: informer().Core().V1().Secrets().Informer(), credentials: informer().Core().V1().Secrets().Informer(),
		registry: informer().Core().V1().Services().Informer(),
	}
	for _, informer := range []cache.SharedIndexInformer{s.tokens, s.credentials} {
		if err := informer.AddIndexers(cache.Indexers{byAccount: accountIndex}); err != nil {
			t.Fatal(err)
		}
	}
	return &cluster{s, t, server}
}

// refresh updates the caches. Like Kubernetes, it also fills in new token secrets.
func (c *cluster) refresh() {
	c.t.Helper()
	ctx := context.Background()
	var tokens, credentials, accounts, services []any
	for _, secret := range c.secrets() {
		if secret.Type == corev1.SecretTypeServiceAccountToken {
			if secret.Data == nil {
				secret.Data = map[string][]byte{corev1.ServiceAccountTokenKey: []byte("token of " + secret.Name)}
				if _, err := c.server.CoreV1().Secrets("shop").Update(ctx, &secret, metav1.UpdateOptions{}); err != nil {
					c.t.Fatal(err)
				}
			}
			tokens = append(tokens, &secret)
			continue
		}
		credentials = append(credentials, &secret)
	}
	accounts = append(accounts, c.account())
	list, err := c.server.CoreV1().Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	for i := range list.Items {
		services = append(services, &list.Items[i])
	}
	for informer, objects := range map[cache.SharedIndexInformer][]any{c.tokens: tokens, c.credentials: credentials, c.accounts: accounts, c.registry: services} {
		if err := informer.GetIndexer().Replace(objects, ""); err != nil {
			c.t.Fatal(err)
		}
	}
}

func (c *cluster) step() {
	c.t.Helper()
	if err := c.reconcile(context.Background(), controller.Key{Namespace: "shop", Name: "robot"}); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) account() *corev1.ServiceAccount {
	c.t.Helper()
	account, err := c.server.CoreV1().ServiceAccounts("shop").Get(context.Background(), "robot", metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return account
}

func (c *cluster) secrets() []corev1.Secret {
	c.t.Helper()
	list, err := c.server.CoreV1().Secrets("shop").List(context.Background(), metav1.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return list.Items
}

// onlySecret returns the only secret of a type.
func (c *cluster) onlySecret(secretType corev1.SecretType) corev1.Secret {
	c.t.Helper()
	secrets := slices.DeleteFunc(c.secrets(), func(secret corev1.Secret) bool { return secret.Type != secretType })
	if len(secrets) != 1 {
		c.t.Fatalf("got %d secrets of type %s, want 1", len(secrets), secretType)
	}
	return secrets[0]
}

func robot(names ...string) *corev1.ServiceAccount {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "robot", UID: "1"}}
	for _, name := range names {
		account.Secrets = append(account.Secrets, corev1.ObjectReference{Name: name})
		if strings.Contains(name, dockercfgInfix) {
			account.ImagePullSecrets = append(account.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
		}
	}
	return account
}

func TestTokenAndCredentials(t *testing.T) {
	c := newCluster(t, robot())
	c.refresh()
	c.step()
	c.step() // the cache does not contain the token yet
	c.refresh()
	c.step()
	c.step() // the cache does not contain the credentials yet
	c.refresh()
	c.step()
	token, credentials, account := c.onlySecret(corev1.SecretTypeServiceAccountToken), c.onlySecret(corev1.SecretTypeDockercfg), c.account()
	if !strings.HasPrefix(token.Name, "robot-token-") || !strings.HasPrefix(credentials.Name, "robot-dockercfg-") {
		t.Errorf("got names %q and %q", token.Name, credentials.Name)
	}
	if got := account.Secrets; len(got) != 2 || got[0].Name != token.Name || got[1].Name != credentials.Name {
		t.Errorf("got secrets %v in the account", got)
	}
	if got := account.ImagePullSecrets; len(got) != 1 || got[0].Name != credentials.Name {
		t.Errorf("got pull secrets %v in the account", got)
	}
	if credentials.Annotations[tokenName] != token.Name || credentials.Annotations[tokenValue] != "token of "+token.Name {
		t.Errorf("got annotations %v of the credentials", credentials.Annotations)
	}
	if !metav1.IsControlledBy(&credentials, &token) {
		t.Error("deletion of the token would not delete the credentials")
	}
}

func TestCredentialsForEachRegistryHost(t *testing.T) {
	c := newCluster(t, robot())
	hosts := func(want ...string) {
		t.Helper()
		for range 3 {
			c.refresh()
			c.step()
		}
		content := map[string]map[string]string{}
		secret := c.onlySecret(corev1.SecretTypeDockercfg)
		if err := json.Unmarshal(secret.Data[corev1.DockerConfigKey], &content); err != nil || len(content) != len(want) {
			t.Fatalf("%v, %v", content, err)
		}
		for _, host := range want {
			if content[host]["password"] != secret.Annotations[tokenValue] || content[host]["username"] != "serviceaccount" || content[host]["auth"] == "" {
				t.Errorf("%s: %v", host, content[host])
			}
		}
	}
	hosts("docker-registry.default.svc:5000", "docker-registry.default.svc.cluster.local:5000", "registry.example.com")
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "docker-registry"}, Spec: corev1.ServiceSpec{ClusterIP: "172.30.1.1"}}
	if err := c.server.Tracker().Add(service); err != nil {
		t.Fatal(err)
	}
	hosts("docker-registry.default.svc:5000", "docker-registry.default.svc.cluster.local:5000", "registry.example.com", "172.30.1.1:5000")
}

func TestDeletedSecretsAreReplaced(t *testing.T) {
	c := newCluster(t, robot("robot-token-gone1", "robot-dockercfg-gone2", "robot-dockercfg-mine", "other"))
	unrelated := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "robot-dockercfg-mine"}, Type: corev1.SecretTypeDockercfg}
	if err := c.server.Tracker().Add(unrelated); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		c.refresh()
		c.step()
	}
	var references []string
	for _, reference := range c.account().Secrets {
		references = append(references, reference.Name)
	}
	for _, reference := range c.account().ImagePullSecrets {
		references = append(references, reference.Name)
	}
	if slices.Contains(references, "robot-dockercfg-gone2") || !slices.Contains(references, "robot-dockercfg-mine") || !slices.Contains(references, "other") {
		t.Errorf("got secrets %v in the account", references)
	}
	if token := c.onlySecret(corev1.SecretTypeServiceAccountToken); token.Name == "robot-token-gone1" || !slices.Contains(references, token.Name) {
		t.Errorf("got token %q among %v", token.Name, references)
	}
}

func TestSecretsOfPreviousAccountAreIgnored(t *testing.T) {
	former := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "robot-token-old", Annotations: map[string]string{
			corev1.ServiceAccountNameKey: "robot", corev1.ServiceAccountUIDKey: "0", createdBy: creator,
		}},
		Type: corev1.SecretTypeServiceAccountToken, Data: map[string][]byte{corev1.ServiceAccountTokenKey: []byte("old")},
	}
	c := newCluster(t, robot(), former)
	for range 3 {
		c.refresh()
		c.step()
	}
	if secret := c.onlySecret(corev1.SecretTypeDockercfg); secret.Annotations[tokenName] == former.Name {
		t.Error("the token of a previous account is used")
	}
}
