package loadbalancer

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/slipway-platform/slipway/router/masters"
)

const (
	// accountNamespace and accountName identify the load balancers' service account. Its token is
	// in a Secret with the same name.
	accountNamespace, accountName = "openshift-infra", "load-balancer"
	// roleName is the name of the Role and its RoleBinding in the API servers' namespace.
	roleName = "slipway:load-balancer"
)

const (
	// tokenInterval and tokenTimeout are the poll interval and the timeout for the creation of a
	// new account's token.
	tokenInterval, tokenTimeout = 200 * time.Millisecond, 30 * time.Second
)

// Kubeconfig returns a kubeconfig for load balancers that contains each master as a cluster. The
// kubeconfig's service account is only allowed to read the API server addresses. Kubeconfig creates
// the account if it does not exist.
func Kubeconfig(ctx context.Context, client kubernetes.Interface, authority []byte, servers []masters.Server) ([]byte, error) {
	if len(servers) == 0 {
		return nil, errors.New("create kubeconfig: no API server is registered")
	}
	if err := createAccount(ctx, client); err != nil {
		return nil, fmt.Errorf("create load balancer account: %w", err)
	}
	token, err := token(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("read token of the account %s/%s: %w", accountNamespace, accountName, err)
	}
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.AuthInfos[accountName] = &clientcmdapi.AuthInfo{Token: token}
	for _, server := range servers {
		kubeconfig.Clusters[server.Name] = &clientcmdapi.Cluster{Server: "https://" + server.Address, CertificateAuthorityData: authority}
	}
	kubeconfig.Contexts[accountName] = &clientcmdapi.Context{Cluster: servers[0].Name, AuthInfo: accountName, Namespace: metav1.NamespaceDefault}
	kubeconfig.CurrentContext = accountName
	content, err := clientcmd.Write(*kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("write kubeconfig: %w", err)
	}
	return content, nil
}

// createAccount creates the service account, its role, role binding and token if they are missing,
// and restores the rules of the role.
func createAccount(ctx context.Context, client kubernetes.Interface) error {
	inInfra := metav1.ObjectMeta{Namespace: accountNamespace, Name: accountName}
	inDefault := metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: roleName}
	_, err := client.CoreV1().ServiceAccounts(accountNamespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: inInfra}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	role := &rbacv1.Role{ObjectMeta: inDefault, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{discoveryv1.GroupName}, Resources: []string{"endpointslices"}, Verbs: []string{"get", "list", "watch"},
	}}}
	_, err = client.RbacV1().Roles(role.Namespace).Create(ctx, role, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = client.RbacV1().Roles(role.Namespace).Update(ctx, role, metav1.UpdateOptions{})
	}
	if err != nil {
		return err
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: inDefault,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: roleName},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: accountNamespace, Name: accountName}},
	}
	_, err = client.RbacV1().RoleBindings(binding.Namespace).Create(ctx, binding, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	secret := &corev1.Secret{ObjectMeta: inInfra, Type: corev1.SecretTypeServiceAccountToken}
	secret.Annotations = map[string]string{corev1.ServiceAccountNameKey: accountName}
	_, err = client.CoreV1().Secrets(accountNamespace).Create(ctx, secret, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}

// token waits for the service account's token and returns it.
func token(ctx context.Context, client kubernetes.Interface) (token string, err error) {
	err = wait.PollUntilContextTimeout(ctx, tokenInterval, tokenTimeout, true, func(ctx context.Context) (bool, error) {
		secret, err := client.CoreV1().Secrets(accountNamespace).Get(ctx, accountName, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		token = string(secret.Data[corev1.ServiceAccountTokenKey])
		return token != "", nil
	})
	return token, err
}
