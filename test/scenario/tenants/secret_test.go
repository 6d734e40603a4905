package tenants

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/test/kit"
)

// secretsOf waits until a service account references a token and registry credentials that exist.
// It returns their secrets. It ignores the secrets whose names are in not.
func secretsOf(c *kit.Cluster, name string, not ...string) (token, credentials *corev1.Secret) {
	c.WaitFor("secrets of service account "+name, func(ctx context.Context) error {
		account, err := c.Client.CoreV1().ServiceAccounts(c.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if len(account.Secrets) != 2 || len(account.ImagePullSecrets) != 1 {
			return fmt.Errorf("the secrets are %v, the pull secrets are %v", account.Secrets, account.ImagePullSecrets)
		}
		for _, reference := range account.Secrets {
			if slices.Contains(not, reference.Name) {
				return fmt.Errorf("the account still has %s", reference.Name)
			}
			secret, err := c.Client.CoreV1().Secrets(c.Namespace).Get(ctx, reference.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			switch {
			case strings.HasPrefix(secret.Name, name+"-token-") && secret.Type == corev1.SecretTypeServiceAccountToken:
				token = secret
			case strings.HasPrefix(secret.Name, name+"-dockercfg-") && secret.Type == corev1.SecretTypeDockercfg:
				credentials = secret
			}
		}
		if token == nil || credentials == nil || account.ImagePullSecrets[0].Name != credentials.Name {
			return fmt.Errorf("the secrets are %v, the pull secrets are %v", account.Secrets, account.ImagePullSecrets)
		}
		return nil
	})
	return token, credentials
}

func TestServiceAccountsHaveTokenAndRegistryCredentials(t *testing.T) {
	c := tenants(t)
	c.OC("create", "serviceaccount", "robot")
	token, credentials := secretsOf(c, "robot")
	value := string(token.Data["token"])
	if got := credentials.Annotations; got["openshift.io/token-secret.name"] != token.Name || got["openshift.io/token-secret.value"] != value {
		t.Error("the annotations of the credentials do not contain the token")
	}
	registry := func(credentials *corev1.Secret) map[string]struct{ Username, Password, Auth string } {
		entries := map[string]struct{ Username, Password, Auth string }{}
		if err := json.Unmarshal(credentials.Data[".dockercfg"], &entries); err != nil {
			t.Fatal(err)
		}
		return entries
	}
	if entry := registry(credentials)["docker-registry.default.svc:5000"]; entry.Password != value || entry.Auth != base64.StdEncoding.EncodeToString([]byte("serviceaccount:"+value)) {
		t.Error("the registry rejects the credentials")
	}
	whoami := func(value string) (string, error) {
		config := rest.AnonymousClientConfig(c.Config)
		config.BearerToken, config.Dial = value, c.Dial
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return "", err
		}
		response, err := client.Discovery().RESTClient().Get().AbsPath("/apis/user.openshift.io/v1/users/~").DoRaw(t.Context())
		return string(response), err
	}
	got, err := whoami(value)
	if err != nil {
		t.Fatal(err)
	}
	has(t, got, "system:serviceaccount:"+c.Namespace+":robot")

	// The credentials must also contain the cluster IP of the registry's service.
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "docker-registry"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 5000}}}}
	result, err := c.Client.CoreV1().Services("default").Create(t.Context(), service, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	if err == nil {
		t.Cleanup(func() {
			_ = c.Client.CoreV1().Services("default").Delete(context.Background(), "docker-registry", metav1.DeleteOptions{})
		})
		c.WaitFor("the address of the registry in the credentials", func(context.Context) error {
			_, credentials := secretsOf(c, "robot")
			if _, ok := registry(credentials)[result.Spec.ClusterIP+":5000"]; !ok {
				return fmt.Errorf("the credentials have entries for %d names", len(registry(credentials)))
			}
			return nil
		})
	}

	// A deleted token must become invalid, and a new token must replace it.
	c.OC("delete", "secret", token.Name)
	other, renewed := secretsOf(c, "robot", token.Name, credentials.Name)
	if string(other.Data["token"]) == value || renewed.Annotations["openshift.io/token-secret.name"] != other.Name {
		t.Error("the token that was removed is still valid")
	}
	c.WaitFor("expiry of the removed token", func(context.Context) error {
		if _, err := whoami(value); !apierrors.IsUnauthorized(err) {
			return fmt.Errorf("the error is %v", err)
		}
		return nil
	})
	c.OC("delete", "serviceaccount", "robot")
	c.WaitFor("the secrets to be deleted with their account", func(ctx context.Context) error {
		secrets, err := c.Client.CoreV1().Secrets(c.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, secret := range secrets.Items {
			if strings.HasPrefix(secret.Name, "robot-") {
				return fmt.Errorf("%s is there", secret.Name)
			}
		}
		return nil
	})
	checkLogs(t, c, value, string(other.Data["token"]))
}

// checkLogs checks that the cluster's logs do not contain the secrets.
func checkLogs(t *testing.T, c *kit.Cluster, secrets ...string) {
	t.Helper()
	files, err := filepath.Glob(c.Path("log", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("logs are %v, %v", files, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range secrets {
			if strings.Contains(string(content), secret) {
				t.Errorf("%s contains a token", filepath.Base(file))
			}
		}
	}
}
