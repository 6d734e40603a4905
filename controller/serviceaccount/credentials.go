package serviceaccount

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The integrated registry's service.
const (
	registryNamespace = metav1.NamespaceDefault
	registryName      = "docker-registry"
	registryPort      = "5000"
)

// dockercfg stands in the names of credentials; tokenName and tokenValue are the annotations that tell which token they hold.
const (
	dockercfg  = "-dockercfg-"
	tokenName  = "openshift.io/token-secret.name"
	tokenValue = "openshift.io/token-secret.value"
)

// login finds or makes the credentials of the registry for a token, with an entry for each name of the registry.
func (s *Secrets) login(ctx context.Context, account *corev1.ServiceAccount, token *corev1.Secret) (*corev1.Secret, error) {
	value := token.Data[corev1.ServiceAccountTokenKey]
	content, err := entries(s.hosts(), string(value))
	if err != nil {
		return nil, err
	}
	is := func(secret *corev1.Secret) bool {
		return ofAccount(secret, account) && secret.Annotations[tokenName] == token.Name && metav1.IsControlledBy(secret, token)
	}
	found := s.find(ctx, s.credentials, corev1.SecretTypeDockercfg, account, is)
	if found.err != nil {
		return nil, found.err
	}
	secrets := s.client.CoreV1().Secrets(account.Namespace)
	if found.secret == nil {
		made, err := secrets.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				GenerateName: prefix(account, dockercfg),
				Annotations: map[string]string{
					corev1.ServiceAccountNameKey: account.Name, corev1.ServiceAccountUIDKey: string(account.UID),
					tokenName: token.Name, tokenValue: string(value),
				},
				// Credentials go with their token, and the token with its account.
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(token, corev1.SchemeGroupVersion.WithKind("Secret"))},
			},
			Type: corev1.SecretTypeDockercfg,
			Data: map[string][]byte{corev1.DockerConfigKey: content},
		}, metav1.CreateOptions{})
		if err != nil {
			return nil, fmt.Errorf("make registry credentials of service account: %w", err)
		}
		return made, nil
	}
	if bytes.Equal(found.secret.Data[corev1.DockerConfigKey], content) && found.secret.Annotations[tokenValue] == string(value) {
		return found.secret, nil
	}
	changed := found.secret.DeepCopy()
	changed.Data = map[string][]byte{corev1.DockerConfigKey: content}
	changed.Annotations[tokenValue] = string(value)
	if changed, err = secrets.Update(ctx, changed, metav1.UpdateOptions{}); err != nil {
		return nil, fmt.Errorf("update registry credentials of service account: %w", err)
	}
	return changed, nil
}

// hosts are the names of the registry, and its address when the service exists.
func (s *Secrets) hosts() []string {
	host := registryName + "." + registryNamespace + ".svc"
	hosts := append([]string{net.JoinHostPort(host, registryPort)}, s.Hosts...)
	if s.Domain != "" {
		hosts = append(hosts, net.JoinHostPort(host+"."+s.Domain, registryPort))
	}
	service, err := s.services().Services(registryNamespace).Get(registryName)
	if err == nil && net.ParseIP(service.Spec.ClusterIP) != nil {
		hosts = append(hosts, net.JoinHostPort(service.Spec.ClusterIP, registryPort))
	}
	return hosts
}

// entries is the content of credentials in the form of a .dockercfg file: a user and a password, which is the token, for each host.
func entries(hosts []string, token string) ([]byte, error) {
	type entry struct {
		Username string `json:"username"`
		Password string `json:"password"`
		Email    string `json:"email"`
		Auth     string `json:"auth"`
	}
	const user = "serviceaccount"
	content := map[string]entry{}
	for _, host := range hosts {
		content[host] = entry{user, token, user + "@example.org", base64.StdEncoding.EncodeToString([]byte(user + ":" + token))}
	}
	return json.Marshal(content)
}
