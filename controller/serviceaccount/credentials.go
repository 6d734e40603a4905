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

	"github.com/slipway-platform/slipway/registry/registryname"
)

// Namespace and name of the integrated registry's service.
const (
	registryNamespace = registryname.Namespace
	registryName      = registryname.Service
)

// dockercfgInfix is part of credential secret names. The annotations tokenName and tokenValue
// contain the name and value of the token.
const (
	dockercfgInfix = "-dockercfg-"
	tokenName      = "openshift.io/token-secret.name"
	tokenValue     = "openshift.io/token-secret.value"
)

// ensureCredentials creates or updates the registry credentials for a token. They contain an entry
// for each registry host.
func (s *Secrets) ensureCredentials(ctx context.Context, account *corev1.ServiceAccount, token *corev1.Secret) (*corev1.Secret, error) {
	value := token.Data[corev1.ServiceAccountTokenKey]
	content, err := encodeDockercfg(s.registryHosts(), string(value))
	if err != nil {
		return nil, err
	}
	is := func(secret *corev1.Secret) bool {
		return belongsTo(secret, account) && secret.Annotations[tokenName] == token.Name && metav1.IsControlledBy(secret, token)
	}
	existing := s.find(ctx, s.credentials, corev1.SecretTypeDockercfg, account, is)
	if existing.err != nil {
		return nil, existing.err
	}
	secrets := s.client.CoreV1().Secrets(account.Namespace)
	if existing.secret == nil {
		created, err := secrets.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				GenerateName: generateName(account, dockercfgInfix),
				Annotations: map[string]string{
					corev1.ServiceAccountNameKey: account.Name, corev1.ServiceAccountUIDKey: string(account.UID),
					tokenName: token.Name, tokenValue: string(value),
				},
				// Deleting the token also deletes its credentials. Deleting the service account
				// deletes the token.
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(token, corev1.SchemeGroupVersion.WithKind("Secret"))},
			},
			Type: corev1.SecretTypeDockercfg,
			Data: map[string][]byte{corev1.DockerConfigKey: content},
		}, metav1.CreateOptions{})
		if err != nil {
			return nil, fmt.Errorf("create service account registry credentials: %w", err)
		}
		return created, nil
	}
	if bytes.Equal(existing.secret.Data[corev1.DockerConfigKey], content) && existing.secret.Annotations[tokenValue] == string(value) {
		return existing.secret, nil
	}
	updated := existing.secret.DeepCopy()
	updated.Data = map[string][]byte{corev1.DockerConfigKey: content}
	updated.Annotations[tokenValue] = string(value)
	if updated, err = secrets.Update(ctx, updated, metav1.UpdateOptions{}); err != nil {
		return nil, fmt.Errorf("update service account registry credentials: %w", err)
	}
	return updated, nil
}

// registryHosts returns the registry's host names and, if the registry service exists, its address.
func (s *Secrets) registryHosts() []string {
	hosts := append([]string{registryname.Address}, s.Hosts...)
	if s.Domain != "" {
		hosts = append(hosts, net.JoinHostPort(registryname.Host+"."+s.Domain, registryname.Port))
	}
	service, err := s.services().Services(registryNamespace).Get(registryName)
	if err == nil && net.ParseIP(service.Spec.ClusterIP) != nil {
		hosts = append(hosts, net.JoinHostPort(service.Spec.ClusterIP, registryname.Port))
	}
	return hosts
}

// encodeDockercfg returns a .dockercfg file in which the token is the password for each host.
func encodeDockercfg(hosts []string, token string) ([]byte, error) {
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
